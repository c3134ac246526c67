//! curl and nghttp before the real program, over HTTP/1.1, HTTP/2 with TLS and HTTP/2 by prior knowledge: what they get is
//! whole or an error, never a part that looks whole.

use end_to_end::clients::site::{LARGE, Site, large};
use end_to_end::clients::{Ran, exists, run};

/// Each way to speak, and what curl calls the version then.
const WAYS: [(&str, Entry, &str); 4] = [
    ("--http1.1", Entry::Plain, "1.1"),
    ("--http1.1", Entry::Tls, "1.1"),
    ("--http2", Entry::Tls, "2"),
    ("--http2-prior-knowledge", Entry::Plain, "2"),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    Plain,
    Tls,
}

fn url(site: &Site, entry: Entry, path: &str) -> String {
    match entry {
        Entry::Plain => site.plain_url(path),
        Entry::Tls => site.tls_url(path),
    }
}

fn curl(site: &Site, way: &str, words: &[&str]) -> Ran {
    let roots = site.roots.display().to_string();
    run("curl", [&["-sS", "--max-time", "30", "--cacert", &roots, way], words].concat())
}

#[test]
fn curl_speaks_every_version_and_gets_bodies_whole() {
    if !exists("curl") {
        return testkit::skip("curl_speaks_every_version_and_gets_bodies_whole", "curl");
    }
    let site = Site::start("", "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large").display().to_string();
    for (way, entry, version) in WAYS {
        let show = ["-w", "%{http_version} %{http_code}", "-o", &file];
        let ran = curl(&site, way, &[&show[..], &[&url(&site, entry, "/large")]].concat());
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), format!("{version} 200").as_str()),
            "{way} {entry:?}: {ran:?}"
        );
        assert!(std::fs::read(&file).unwrap() == large(), "{way} {entry:?}: {LARGE} bytes were changed");
    }
}

#[test]
fn curl_uploads_twenty_megabytes_and_waits_for_100_continue() {
    if !exists("curl") {
        return testkit::skip("curl_uploads_twenty_megabytes_and_waits_for_100_continue", "curl");
    }
    let site = Site::start("", "");
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = large().into_iter().cycle().take(20_000_000).collect();
    let file = folder.path().join("content");
    std::fs::write(&file, &content).unwrap();
    let file = file.display().to_string();
    for (number, (way, entry, _)) in WAYS.into_iter().enumerate() {
        let path = format!("/upload?{number}");
        let ran = curl(&site, way, &["-T", &file, &url(&site, entry, &path)]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello"), "{way} {entry:?}: {ran:?}");
        let got = site.requests_to(&path);
        assert_eq!(got.len(), 1, "{way} {entry:?}: an upload must not be repeated");
        assert!(got[0].message.body == content, "{way} {entry:?}: the upload was changed");

        let path = format!("/continue?{number}");
        let words = ["-v", "-H", "Expect: 100-continue", "--data-binary", "waits", &url(&site, entry, &path)];
        let ran = curl(&site, way, &words);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "continued"), "{way} {entry:?}: {ran:?}");
        let interim = ran.errors.lines().filter(|line| line.starts_with("< HTTP/") && line.contains(" 100")).count();
        assert_eq!(interim, 1, "{way} {entry:?}: {ran:?}");
        assert_eq!(site.requests_to(&path)[0].message.text(), "waits");
    }
}

#[test]
fn curl_sees_an_error_when_a_destination_breaks_off_and_nothing_when_another_could_answer() {
    if !exists("curl") {
        let name = "curl_sees_an_error_when_a_destination_breaks_off_and_nothing_when_another_could_answer";
        return testkit::skip(name, "curl");
    }
    let site = Site::start("", "");
    for (way, entry, _) in WAYS {
        for path in ["/cut/head", "/cut/body", "/cut/chunk"] {
            let ran = curl(&site, way, &["--fail", &url(&site, entry, path)]);
            // 18: a part of the body; 22: our own 502; 52 and 56: closed; 92: RST_STREAM.
            assert!(matches!(ran.code, Some(18 | 22 | 52 | 56 | 92)), "{way} {entry:?} {path}: {ran:?}");
        }
        // Apart: where most attempts fail, on whatever path, nothing is repeated any more. Three: no more than the budget of a
        // proxy that has just begun repeats; in turn, so at least one goes to the destination that resets.
        let repeating = Site::start("", "");
        for _ in 0..3 {
            let ran = curl(&repeating, way, &["--fail", &url(&repeating, entry, "/retry")]);
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello"), "{way} {entry:?}: {ran:?}");
        }
        assert!(!repeating.bad.requests_to("/retry").is_empty(), "the resetting destination was never asked");
    }
}

#[test]
fn nghttp_gets_a_page_with_its_assets_on_one_connection_and_sends_trailers() {
    if !exists("nghttp") {
        let name = "nghttp_gets_a_page_with_its_assets_on_one_connection_and_sends_trailers";
        return testkit::skip(name, "nghttp (package nghttp2-client)");
    }
    let wait = "  wait: {match: {path: /wait}, respond: {status: 200, body: over}}\n";
    let site = Site::start(wait, "");
    for entry in [Entry::Plain, Entry::Tls] {
        let ran = run("nghttp", ["-ans", "--no-verify-peer", "-t", "30", &url(&site, entry, "/page")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // The table at the end has a line for each: id, times, code, size, path.
        let good = ran.out.lines().filter(|line| line.split_whitespace().nth(4) == Some("200")).count();
        assert_eq!(good, 24, "the page, a style sheet, a script, and 21 images: {ran:?}");

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("content");
        std::fs::write(&file, "content").unwrap();
        let path = format!("/trailers?{entry:?}");
        let words = ["-nv", "--no-verify-peer", "-t", "30", "--trailer", "x-checksum: 7", "--no-content-length", "-d"];
        let ran = run("nghttp", words.into_iter().chain([file.to_str().unwrap(), &url(&site, entry, &path)]));
        assert!(ran.out.contains(":status: 200"), "{ran:?}");
        let got = &site.requests_to(&path)[0].message;
        assert_eq!(got.text(), "content");
        let raw = String::from_utf8_lossy(&got.raw_body).into_owned();
        assert!(raw.ends_with("0\r\nx-checksum: 7\r\n\r\n"), "{raw:?}");
    }
    let ran = run("nghttp", ["-nv", "--no-verify-peer", "-t", "30", &url(&site, Entry::Tls, "/cut/body")]);
    assert!(ran.out.contains("RST_STREAM"), "{ran:?}");
}

#[test]
fn h2load_and_wrk_count_no_failure() {
    if !exists("h2load") || !exists("wrk") {
        return testkit::skip("h2load_and_wrk_count_no_failure", "h2load (package nghttp2-client) or wrk");
    }
    let site = Site::start("", "");
    for (words, entry) in [
        (&["-n2000", "-c4", "-m16"][..], Entry::Tls),
        (&["-n2000", "-c4", "-m16"], Entry::Plain),
        (&["-n1000", "-c4", "--h1"], Entry::Tls),
    ] {
        let ran = run("h2load", [words, &[&url(&site, entry, "/")]].concat());
        let total = &words[0][2..];
        let line =
            format!("requests: {total} total, {total} started, {total} done, {total} succeeded, 0 failed, 0 errored");
        assert!(ran.out.contains(&line), "{words:?} {entry:?}: {ran:?}");
        assert!(ran.out.contains(&format!("status codes: {total} 2xx")), "{words:?} {entry:?}: {ran:?}");
    }
    for entry in [Entry::Plain, Entry::Tls] {
        let ran = run("wrk", ["-t1", "-c16", "-d1s", &url(&site, entry, "/")]);
        assert!(ran.code == Some(0) && ran.out.contains("Requests/sec"), "{ran:?}");
        assert!(!ran.out.contains("Socket errors") && !ran.out.contains("Non-2xx"), "{entry:?}: {ran:?}");
    }
    // Half of the destinations reset: others answer in their place.
    let ran = run("wrk", ["-t1", "-c16", "-d1s", &url(&site, Entry::Plain, "/retry")]);
    assert!(!ran.out.contains("Socket errors") && !ran.out.contains("Non-2xx"), "{ran:?}");
    assert!(!site.bad.requests_to("/retry").is_empty());
}
