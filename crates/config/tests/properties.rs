//! Whatever the bytes: no panic, every place lies within the file, and what `check` writes reads back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use config::{Diagnostic, FileKind, PolicyNames, Report, Source, Style, check, load, load_rhi, render};
use proptest::prelude::*;

const NATIVE: [&str; 3] = [
    include_str!("fixtures/reference.yaml"),
    include_str!("fixtures/nginx-article.yaml"),
    include_str!("../../../examples/lazaret.yaml"),
];
const YARP: [&str; 4] = [
    include_str!("fixtures/yarp/active.json"),
    include_str!("fixtures/yarp/passive.json"),
    include_str!("fixtures/yarp/available.json"),
    r#"{"Urls": "http://*:80", "ReverseProxy": {"Routes": {"r": {"ClusterId": "c", "Match": {"Path": "/{**x}"}, "Timeout": "00:00:05"}},
        "Clusters": {"c": {"SessionAffinity": {"Enabled": true, "AffinityKeyName": "k"}, "Destinations": {"d": {"Address": "http://h"}}}}}}"#,
];
const RHI: [&str; 2] = [include_str!("fixtures/rhi/example.yaml"), include_str!("../../../examples/rhi.yaml")];

/// What is put into a file: pieces that mean something to a parser, and noise.
const PIECES: [&str; 32] = [
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    ",",
    "\"",
    "'",
    "#",
    "&a",
    "*a",
    "<<: *a",
    "!!int",
    "|",
    "- ",
    "---",
    "0",
    "-1",
    "1e999",
    "null",
    "true",
    "é",
    "\u{2028}",
    "\u{0}",
    "99999999999999999999",
    "//",
];

fn places_lie_within(source: &Source, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let related = diagnostic.related.as_ref().map(|related| related.span);
        for span in diagnostic.span.into_iter().chain(related) {
            assert!(span.start <= span.end && span.end as usize <= source.text().len(), "{diagnostic:?}");
            assert!(source.text().get(span.range()).is_some(), "{diagnostic:?}");
        }
    }
    let _ = render(source, diagnostics, Style::Plain);
}

fn refused(report: &Report) {
    assert!(report.errors().count() > 0);
    places_lie_within(&report.source, &report.diagnostics);
}

fn read(bytes: &[u8], kind: FileKind) {
    match load("file", bytes, kind, &PolicyNames::default(), None) {
        Err(report) => refused(&report),
        Ok(loaded) => {
            places_lie_within(&loaded.source, &loaded.warnings);
            let _ = check::json(&loaded);
            let written = check::text(&loaded);
            if kind == FileKind::Native {
                let again = load("written", written.as_bytes(), FileKind::Native, &PolicyNames::default(), None);
                let again = again.unwrap_or_else(|report| panic!("{report}\n{written}"));
                assert_eq!(again.config, loaded.config, "{written}");
            }
        }
    }
}

fn read_rhi(bytes: &[u8]) {
    match load_rhi("file", bytes) {
        Err(report) => refused(&report),
        Ok(loaded) => places_lie_within(&loaded.source, &loaded.warnings),
    }
}

/// `text` with some of its bytes cut out and a piece put in, several times.
fn mutated(text: &str, edits: &[(usize, usize, usize)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(at, cut, piece) in edits {
        let start = at % (bytes.len() + 1);
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, PIECES[piece % PIECES.len()].bytes());
    }
    bytes
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    proptest::collection::vec((0usize..100_000, 0usize..12, 0usize..PIECES.len()), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for kind in [FileKind::Auto, FileKind::Native, FileKind::Yarp] {
            read(&bytes, kind);
        }
        read_rhi(&bytes);
    }

    #[test]
    fn no_text_panics(pieces in proptest::collection::vec(0usize..PIECES.len(), 0..60)) {
        let text: String = pieces.iter().map(|&piece| PIECES[piece]).collect();
        for kind in [FileKind::Auto, FileKind::Native, FileKind::Yarp] {
            read(text.as_bytes(), kind);
        }
        read_rhi(text.as_bytes());
    }

    #[test]
    fn mutated_native_files_are_read_or_refused(file in 0usize..NATIVE.len(), edits in edits()) {
        read(&mutated(NATIVE[file], &edits), FileKind::Native);
    }

    #[test]
    fn mutated_yarp_files_are_read_or_refused(file in 0usize..YARP.len(), edits in edits()) {
        read(&mutated(YARP[file], &edits), FileKind::Yarp);
    }

    #[test]
    fn mutated_rhi_files_are_read_or_refused(file in 0usize..RHI.len(), edits in edits()) {
        read_rhi(&mutated(RHI[file], &edits));
    }
}
