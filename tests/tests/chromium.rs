//! A browser before the real program: a page with its assets, a WebSocket and events over HTTP/2 with TLS, and what the
//! page's script sees of answers that break off.

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use end_to_end::clients::exists;
use end_to_end::clients::site::Site;
use end_to_end::clients::websocket::Echo;
use testkit::destination::{Destination, Moment, answer};

#[test]
fn chromium_loads_a_page_with_assets_a_websocket_and_events_over_http2() {
    if !exists("chromium") {
        return testkit::skip("chromium_loads_a_page_with_assets_a_websocket_and_events_over_http2", "chromium");
    }
    let echo = Echo::start();
    let (reported, is_reported) = mpsc::channel();
    // The page counts as loaded when its last image is there, and this one waits for the script's report.
    let report = Destination::start(move |moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => {
            let _ = reported.send(());
            answer(200, "")
        }
    });
    let wait = Destination::start(move |moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => {
            let _ = is_reported.recv_timeout(Duration::from_secs(30));
            answer(404, "")
        }
    });
    let (route, cluster) = echo.config();
    let site = Site::start(
        &format!(
            "{route}  report: {{match: {{path: /report}}, cluster: report}}\n  wait: {{match: {{path: /wait}}, cluster: wait}}\n"
        ),
        &format!(
            "{cluster}  report: {{destinations: {{d: {{address: \"{}\"}}}}}}\n  wait: {{destinations: {{d: {{address: \
             \"{}\"}}}}}}\n",
            report.url(),
            wait.url()
        ),
    );
    let page = visit(&site);

    for (id, text) in [
        ("images", "20 images"),
        ("style", "rgb(1, 2, 3)"),
        ("protocols", "h2"),
        ("socket", "abc 1000 true"),
        ("events", "event 1, event 2, event 3"),
        ("broken", "TypeError TypeError TypeError"),
    ] {
        assert!(page.contains(&format!("<p id=\"{id}\">{text}</p>")), "{id} is not {text:?}: {page}");
    }
    site.lazaret.wait_until("all requests are logged", || {
        let log = site.lazaret.access_log();
        let ended = |path: &str, status: u16| log.iter().any(|line| line["path"] == path && line["status"] == status);
        ended("/page", 200)
            && ended("/style.css", 200)
            && ended("/page.js", 200)
            && (1..=20).all(|number| ended(&format!("/image/{number}.svg"), 200))
            && log.iter().any(|line| line["path"] == "/socket" && line["status"] == 101)
            && log.iter().any(|line| line["path"] == "/events")
    });
}

/// The page as it stands when everything was loaded.
fn visit(site: &Site) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-dev-shm-usage", "--ignore-certificate-errors", "--timeout=40000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg(site.tls_url("/page"));
    // What a browser reads from the user's folders is none of ours.
    command.env("HOME", profile.path());
    let output = command.output().expect("coreutils are there");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("<title>site</title>"), "{page}\n{}", String::from_utf8_lossy(&output.stderr));
    page
}
