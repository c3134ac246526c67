//! What is refused, and how it is drawn: place, line, what was expected, what may have been meant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;

use config::{FileKind, PolicyNames, Report, Style, load, load_rhi};
use model::config::ControlSocket;

fn refused(bytes: &[u8], kind: FileKind) -> Box<Report> {
    match load("lazaret.yaml", bytes, kind, &PolicyNames::default(), None) {
        Ok(_) => panic!("was taken: {}", String::from_utf8_lossy(bytes)),
        Err(report) => report,
    }
}

#[test]
fn native_files_are_refused_with_every_mistake_in_its_place() {
    golden::check("native.txt", |_, input| refused(input.as_bytes(), FileKind::Native).render(Style::Plain));
}

#[test]
fn rhi_files_are_refused_with_every_mistake_in_its_place() {
    golden::check("rhi.txt", |name, input| match load_rhi("rhi.yaml", input.as_bytes()) {
        Ok(_) => panic!("was taken: {name}"),
        Err(report) => report.render(Style::Plain),
    });
}

#[test]
fn yarp_files_are_refused_with_every_mistake_in_its_place() {
    golden::check("yarp.txt", |_, input| refused(input.as_bytes(), FileKind::Auto).render(Style::Plain));
}

#[test]
fn an_empty_file_is_an_error_and_not_no_routes() {
    for text in ["", " \n", "\u{feff}", "# a comment\n", "---\n", "null", "{}", "~"] {
        let report = refused(text.as_bytes(), FileKind::Native);
        assert!(report.diagnostics[0].message.contains("empty"), "{text:?}: {report}");
    }
}

#[test]
fn a_yarp_file_with_neither_routes_nor_clusters_is_an_error() {
    for text in ["{}", r#"{"ReverseProxy": {}}"#, r#"{"ReverseProxy": {"Clusters": {}}}"#, r#"{"Logging": {}}"#, "// x"]
    {
        let report = refused(text.as_bytes(), FileKind::Yarp);
        assert_eq!(report.errors().count(), 1, "{text:?}: {report}");
    }
}

#[test]
fn no_more_is_told_than_a_person_can_read() {
    let text: String = (0..5_000).map(|n| format!("key{n}: 1\n")).collect();
    let report = refused(text.as_bytes(), FileKind::Native);
    assert_eq!(report.diagnostics.len(), 201);
    assert!(report.to_string().contains("there is more to say, 4800 times"), "{report}");
    assert!(report.render(Style::Plain).contains("lazaret.yaml:200:1"));
}

#[test]
fn a_mistake_on_an_endless_line_is_placed_in_words() {
    let many: String = (0..2_000).map(|n| format!("c{n}: {{}}, ")).collect();
    let report = refused(format!("{{clusters: {{{many}}}, wibbel: 1}}").as_bytes(), FileKind::Native);
    let drawn = report.render(Style::Plain);
    assert!(
        drawn.contains("--> lazaret.yaml:1:20906") && drawn.contains("`wibbel`: not known at the top of the file"),
        "{drawn}"
    );
}

#[test]
fn what_is_no_text_is_refused_with_its_place() {
    let report = refused(b"version: 1\nclusters: \xff\xfe\n", FileKind::Auto);
    assert_eq!(report.diagnostics[0].position.unwrap().to_string(), "2:11");
    assert!(report.to_string().contains("not UTF-8"), "{report}");
    assert!(report.render(Style::Plain).contains("lazaret.yaml:2:11"), "{}", report.render(Style::Plain));
    let report = refused(b"version: 1\x00\n", FileKind::Native);
    assert!(report.errors().count() >= 1);
}

#[test]
fn a_file_beyond_16_mib_is_refused_unread() {
    let bytes = vec![b' '; 50 << 20];
    let report = refused(&bytes, FileKind::Auto);
    assert_eq!(report.diagnostics.len(), 1);
    assert!(report.to_string().contains("at most 16 MiB"), "{report}");
}

#[test]
fn a_half_written_file_is_refused() {
    let whole = include_str!("fixtures/reference.yaml");
    let half = &whole[..whole.find("session_affinity").unwrap()];
    let report = refused(&half.as_bytes()[..half.len() - 20], FileKind::Auto);
    assert!(report.errors().count() >= 1, "{report}");
}

#[test]
fn alias_bombs_are_bounded() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", below.trim_end_matches(", ")));
    }
    let report = refused(bomb.as_bytes(), FileKind::Native);
    assert_eq!(report.diagnostics.len(), 1, "{report}");
}

#[test]
fn deep_nesting_is_bounded() {
    for open in ["[", "{a: ", "- ", "a:\n"] {
        let deep = match open {
            "a:\n" => (0..300).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
            other => other.repeat(100_000),
        };
        let report = refused(deep.as_bytes(), FileKind::Native);
        assert_eq!(report.errors().count(), 1, "{open}");
    }
    let report = refused("{\"Clusters\":".repeat(100_000).as_bytes(), FileKind::Yarp);
    assert_eq!(report.errors().count(), 1);
}

#[test]
fn a_second_document_is_refused() {
    let report = refused(b"version: 1\n---\nversion: 1\n", FileKind::Native);
    assert_eq!(report.errors().count(), 1, "{report}");
}

#[test]
fn colours_are_the_callers_choice() {
    let report = refused(b"wibble: 1", FileKind::Native);
    assert!(!report.render(Style::Plain).contains('\u{1b}'));
    assert!(report.render(Style::Coloured).contains('\u{1b}'));
}

#[test]
fn diagnostics_are_plain_data_for_json() {
    let report = refused(b"clusters:\n  a: {retri: off}\n", FileKind::Native);
    let json = serde_json::to_value(&report.diagnostics[0]).unwrap();
    assert_eq!(json["severity"], "error");
    assert_eq!(json["file"], "lazaret.yaml");
    assert_eq!(json["position"], serde_json::json!({"line": 2, "column": 7}));
    assert_eq!(json["message"], "unknown key `retri`");
    assert_eq!(json["help"], "did you mean `retry`?");
}

#[test]
fn options_of_max_fails_beside_the_policies_are_told_where_they_belong() {
    for (passive, help) in [
        ("{max_fails: 3, fail_timeout: 30s}", "write `policies: [{name: MaxFails, max_fails: 3, fail_timeout: 30s}]`"),
        ("{fail_timeout: 30s, policies: [MaxFails]}", "write `policies: [{name: MaxFails, fail_timeout: 30s}]`"),
    ] {
        let text = format!(
            "clusters:\n  a: {{health_check: {{passive: {passive}}}, destinations: {{b: {{address: \"http://10.0.0.1/\"}}}}}}\n"
        );
        let report = refused(text.as_bytes(), FileKind::Native);
        let helps: Vec<_> = report.errors().map(|error| error.help.as_deref()).collect();
        assert_eq!(helps, [Some(help)], "{report}");
    }
    let report = refused(b"clusters:\n  a: {health_check: {passive: {wibble: 3}}}\n", FileKind::Native);
    assert!(!report.to_string().contains("max_fails"), "{report}");
}

#[test]
fn a_refused_file_still_tells_where_the_control_api_is() {
    let of = |text: &str| config::control_of("lazaret.yaml", text.as_bytes());
    let broken = "control: { address: 127.0.0.1:9191, socket: /tmp/own.sock, nonsense: 1 }\nwibbel: 1\nroutes: [1]\n";
    let control = of(broken).unwrap();
    assert_eq!(control.address.to_string(), "127.0.0.1:9191");
    assert_eq!(control.socket, ControlSocket::Path("/tmp/own.sock".into()));
    let silent = of("wibbel: 1\n").unwrap();
    assert_eq!(silent.address.to_string(), "127.0.0.1:9090");
    assert!(matches!(silent.socket, ControlSocket::Default(_)));
    for unreadable in ["", "control: [", "control: 1\n", "control: { address: nowhere }\n", "- 1\n"] {
        assert_eq!(of(unreadable), None, "{unreadable}");
    }
}
