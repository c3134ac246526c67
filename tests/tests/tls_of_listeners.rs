//! TLS of listeners in the real program: certificates are renewed while it runs, bad files change nothing, settings hold
//! before and after a reload, handshakes end, and clients of other makers come through.
//! (zentinelproxy/zentinel #350, cloudamqp/lavinmq #2080, hyperium/hyper #2675)

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use end_to_end::process::{Lazaret, poll};
use end_to_end::secured::{Offer, der};
use nix::sys::signal::Signal;
use rustls::SupportedProtocolVersion;
use testkit::certificates::{Authority, Leaf};
use testkit::skip::skip;

static TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
static TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// A listener whose certificate is `a` in `folder`, with `more` among its settings, and a route that answers `body`.
fn config(folder: &Path, more: &str, limits: &str, body: &str) -> String {
    let at = folder.display();
    format!(
        "listeners:\n  web:\n    address: \"$PROXY\"\n    limits: {{{limits}}}\n    tls:\n      certificates:\n        - \
         {{certificate: \"{at}/a.pem\", key: \"{at}/a.key\"}}\n{more}routes:\n  all: {{match: {{path: \
         \"/{{**rest}}\"}}, respond: {{status: 200, body: \"{body}\"}}}}\n"
    )
}

fn write(folder: &Path, leaf: &Leaf) {
    leaf.write(folder, "a");
}

#[test]
fn a_renewed_certificate_is_served_without_a_restart_and_a_bad_one_is_told() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let (old, new, newer) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    write(folder.path(), &old);
    let lazaret = Lazaret::start(&config(folder.path(), "", "", "one"));
    let offer = Offer::new(&authority);
    let shown = || offer.ask(lazaret.proxy, "/").expect("a handshake").leaf;
    assert_eq!(shown(), der(&old));

    write(folder.path(), &new);
    assert!(poll(IN_FORCE, || shown() == der(&new)), "not within {IN_FORCE:?}: {}", lazaret.process.output());
    assert_eq!(lazaret.metric("lazaret_certificate_reloads_total", &["applied"]), 1.0);

    // Half of a pair, and what is no certificate at all.
    for bad in [newer.certificate.as_str(), "nothing"] {
        let refused = lazaret.metric("lazaret_certificate_reloads_total", &["refused"]);
        fs::write(folder.path().join("a.pem"), bad).expect("the folder is ours");
        lazaret.wait_until("it is counted", || {
            lazaret.metric("lazaret_certificate_reloads_total", &["refused"]) > refused
        });
        assert_eq!(lazaret.metric("lazaret_certificates_stale", &[]), 1.0);
        assert_eq!(shown(), der(&new));
    }
    let log = lazaret.process.output();
    assert!(log.contains("a.key: not the key of") && log.contains("a.pem: there is no certificate in it"), "{log}");

    write(folder.path(), &newer);
    assert!(poll(IN_FORCE, || shown() == der(&newer)), "not within {IN_FORCE:?}: {}", lazaret.process.output());
    lazaret.wait_until("nothing is stale", || lazaret.metric("lazaret_certificates_stale", &[]) == 0.0);
}

/// Looked at every 2 s and taken at the second look, on a machine that does other things as well.
const IN_FORCE: Duration = Duration::from_secs(10);

#[test]
fn a_reload_with_bad_certificates_changes_nothing() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let (leaf, other) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let lazaret = {
        write(folder.path(), &leaf);
        Lazaret::start(&config(folder.path(), "", "", "good"))
    };
    let pid = lazaret.process.id();
    let offer = Offer::new(&authority);
    let answers = |body: &str| {
        let shown = offer.ask(lazaret.proxy, "/").expect("a handshake");
        assert_eq!(shown.leaf, der(&leaf));
        assert!(shown.text.ends_with(body), "{}", shown.text);
    };
    answers("good");
    let bad = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| fs::write(bad.path().join(name), text).expect("the folder is ours");
    let ca = "      client_auth: {mode: required, ca: \"/nowhere/ca.pem\"}\n";
    for (name, certificate, key, more, words) in [
        ("no certificate", None, Some(&leaf.key), "", "a.pem: cannot read the certificate"),
        ("no key", Some(&leaf.certificate), None, "", "a.key: cannot read the key"),
        ("another key", Some(&leaf.certificate), Some(&other.key), "", "a.key: not the key of"),
        ("no PEM", Some(&leaf.key), Some(&leaf.key), "", "a.pem: there is no certificate in it"),
        ("no authority", Some(&leaf.certificate), Some(&leaf.key), ca, "/nowhere/ca.pem"),
        ("misspelt", Some(&leaf.certificate), Some(&leaf.key), "      min_versoin: \"1.3\"\n", "min_versoin"),
    ] {
        for (what, text) in [("a.pem", certificate), ("a.key", key)] {
            match text {
                Some(text) => file(what, text),
                None => fs::remove_file(bad.path().join(what)).unwrap_or_default(),
            }
        }
        lazaret.write(&config(bad.path(), more, "", "bad"));
        let stale = || lazaret.metric("lazaret_config_stale", &[]);
        lazaret.process.signal(Signal::SIGHUP);
        lazaret.wait_until("the signal's reload is refused", || stale() == 1.0);
        let reload = lazaret.reload();
        assert_eq!(reload.code, Some(3), "{name}: {}", reload.text);
        assert!(reload.text.contains("lazaret.yaml:") && reload.text.contains(words), "{name}: {}", reload.text);
        let check = lazaret.check();
        assert_eq!(check.code, Some(3), "{name}: {}", check.text);
        assert!(check.text.contains(words), "{name}: {}", check.text);
        answers("good");

        lazaret.apply(&config(folder.path(), "", "", "good"));
        assert_eq!(stale(), 0.0, "{name}");
        answers("good");
    }
    assert_eq!(lazaret.process.id(), pid);
}

#[test]
fn what_a_reload_demands_of_clients_is_demanded() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let clients = Authority::new();
    let ca = clients.write(folder.path());
    write(folder.path(), &authority.issue(&["a.test"]));
    let lazaret = Lazaret::start(&config(folder.path(), "", "", "one"));
    let (good, stranger) = (clients.issue(&["client.test"]), Authority::new().issue(&["client.test"]));
    let with = |certificate, versions, protocol| Offer {
        certificate,
        versions,
        protocols: vec![protocol],
        ..Offer::new(&authority)
    };
    assert!(with(None, TLS12, "h2").ask(lazaret.proxy, "/").is_ok());

    let strict = format!(
        "      min_version: \"1.3\"\n      client_auth: {{mode: required, ca: \"{}\"}}\n      protocols: [h2, http/1.1]\n",
        ca.display()
    );
    for round in ["after the reload", "after the same once more"] {
        lazaret.apply(&config(folder.path(), &strict, "", "two"));
        for protocol in ["h2", "http/1.1"] {
            let refused =
                |certificate, versions| with(certificate, versions, protocol).ask(lazaret.proxy, "/").is_err();
            assert!(refused(None, TLS13), "{round}, {protocol}: no certificate");
            assert!(refused(Some(&stranger), TLS13), "{round}, {protocol}: a stranger's certificate");
            assert!(refused(Some(&good), TLS12), "{round}, {protocol}: TLS 1.2");
            let served = with(Some(&good), TLS13, protocol).ask(lazaret.proxy, "/");
            assert!(served.is_ok(), "{round}, {protocol}: {:?}", served.err());
        }
    }
    let results = |result: &str| lazaret.metric("lazaret_tls_handshakes_total", &[result]);
    assert_eq!((results("no-client-certificate"), results("bad-client-certificate")), (4.0, 4.0));
}

#[test]
fn handshakes_that_do_not_end_are_gone_after_their_time() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    write(folder.path(), &authority.issue(&["a.test"]));
    let lazaret = Lazaret::start(&config(folder.path(), "", "tls_handshake: 2s", "one"));
    let offer = Offer::new(&authority);
    assert!(offer.ask(lazaret.proxy, "/").is_ok());
    let before = lazaret.descriptors();
    let mut crowd: Vec<TcpStream> = (0..CROWD)
        .map(|number| {
            let mut stream = TcpStream::connect(lazaret.proxy).expect("queued");
            // Some say nothing, some begin a ClientHello.
            if number % 2 == 0 {
                stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").expect("a fresh connection takes it");
            }
            stream
        })
        .collect();
    assert!(offer.ask(lazaret.proxy, "/").is_ok(), "a crowd locks nobody out");
    lazaret.wait_until("all are gone", || {
        lazaret.metric("lazaret_tls_handshakes_total", &["tls-handshake-timeout"]) == f64::from(CROWD)
    });
    lazaret.wait_until("their descriptors are free", || lazaret.descriptors() <= before + 2);
    for stream in &mut crowd {
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time above zero");
        let end = stream.read(&mut [0; 16]);
        assert!(!matches!(&end, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock), "{end:?}: it is open");
    }
    assert!(offer.ask(lazaret.proxy, "/").is_ok());
}

const CROWD: u32 = 300;

#[test]
fn http2_is_spoken_when_alpn_says_so() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    write(folder.path(), &authority.issue(&["a.test"]));
    let lazaret = Lazaret::start(&config(folder.path(), "", "", "over HTTP/2"));
    let config = Offer { protocols: vec!["h2", "http/1.1"], ..Offer::new(&authority) }.config();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let exchange = async {
        let tcp = tokio::net::TcpStream::connect(lazaret.proxy).await.expect("it listens");
        let name = rustls::pki_types::ServerName::try_from("a.test").expect("a name");
        let stream = tokio_rustls::TlsConnector::from(config).connect(name, tcp).await.expect("hands are shaken");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let (requests, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let driver = tokio::spawn(connection);
        for _ in 0..3 {
            let mut requests = requests.clone().ready().await.expect("a stream is free");
            let request = http::Request::get("https://a.test/x").body(()).expect("a request");
            let (answer, _) = requests.send_request(request, true).expect("it is sent");
            let answer = answer.await.expect("an answer");
            assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
            let body = answer.into_body().data().await.expect("content").expect("content");
            assert_eq!(body, "over HTTP/2");
        }
        driver.abort();
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), exchange).await }).expect("within 20 s");
}

#[test]
fn openssl_is_served_and_goes_on_with_its_session_at_another_process() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("openssl_is_served_and_goes_on_with_its_session_at_another_process", "openssl");
    }
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    authority.write(folder.path());
    write(folder.path(), &authority.issue(&["a.test"]));
    let keys = folder.path().join("tickets.keys");
    fs::write(&keys, "c5".repeat(32)).expect("the folder is ours");
    let shared = format!("      ticket_keys: \"{}\"\n", keys.display());
    let sites = ["one", "two"].map(|body| Lazaret::start(&config(folder.path(), &shared, "", body)));
    for (version, word) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let first = openssl(folder.path(), sites[0].proxy, &[version, "-sess_out", "session"]);
        assert!(first.contains(&format!("New, {word}")) && first.contains("HTTP/1.1 200"), "{first}");
        assert!(first.contains("Verify return code: 0 (ok)"), "{first}");
        let second = openssl(folder.path(), sites[1].proxy, &[version, "-sess_in", "session"]);
        assert!(second.contains(&format!("Reused, {word}")) && second.contains("HTTP/1.1 200"), "{second}");
    }
    assert_eq!(sites[1].metric("lazaret_tls_handshakes_total", &["resumed"]), 2.0);
}

#[test]
fn the_example_is_taken_with_the_files_that_it_says_how_to_make() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("the_example_is_taken_with_the_files_that_it_says_how_to_make", "openssl");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let example = include_str!("../../examples/tls.yaml").replace("/etc/lazaret", &folder.path().display().to_string());
    let file = folder.path().join("tls.yaml");
    fs::write(&file, &example).expect("the folder is ours");
    let check = || {
        let mut command = Command::new(end_to_end::binaries::path("lazaret"));
        let output = command.arg("check").arg(&file).output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = check();
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("site.pem") && text.contains("openssl rand -hex 32 >"), "{text}");
    let commands: Vec<_> = example.lines().filter_map(|line| line.strip_prefix("#   ")).collect();
    let made = Command::new("sh").arg("-ec").arg(commands.join("\n")).output().expect("there is a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (code, text) = check();
    assert_eq!((code, text.as_str()), (Some(0), ""));
}

/// One request by `openssl s_client`, and all that it prints.
fn openssl(folder: &Path, to: SocketAddr, arguments: &[&str]) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &to.to_string(), "-servername", "a.test", "-CAfile", "ca.pem", "-ign_eof"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl starts");
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    child.stdin.take().expect("it is piped").write_all(request).expect("it reads");
    // The connection ends with the answer, within the listener's own times.
    let output = child.wait_with_output().expect("it is our child");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
