//! `lazaret demo`: three destinations that die, hang, fail and pause on a script, the proxy before them, a bounded client,
//! and a live table of what the proxy makes of it. No root, no files, free ports.
//!
//! ```text
//!   client threads ──> Running (the real proxy) ──> patients (a thread of their own) <── script
//!          └─ seen ────────────┐       └─ journal, view ─┐                                 │
//!                              v                         v                                 v
//!                            main thread: screen, then summary  <──────────────────── what they do
//! ```

mod client;
mod screen;
mod script;
mod summary;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lazaret::config::{
    ActiveHealthCheckConfig, ClusterConfig, DestinationConfig, HealthCheckConfig, PassiveHealthCheckConfig, RetryConfig,
};
use lazaret::running::Running;
use lazaret::{Builder, Lazaret};

use self::client::Client;
use self::screen::{Frame, Row};
use self::script::Ward;
use self::summary::Story;
use super::client::FormatWord;
use super::exit::Exit;

/// What `demo` is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Ends after this time (20s, 1m30s); without it, with ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Requests a second, 1 to 2000.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2000))]
    rate: u32,
    /// How it is told; as JSON, the summary alone.
    #[arg(long, value_enum, default_value_t)]
    format: FormatWord,
}

/// Runs the demo.
pub(super) fn run(arguments: &Arguments) -> Exit {
    match play(arguments) {
        Ok(()) => Exit::Done,
        Err(error) => {
            super::complain(&error);
            Exit::Failed
        }
    }
}

fn play(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let ward = Ward::open()?;
    let running = builder(&ward).build()?.start()?;
    let to = running.address(LISTENER).ok_or("the demo's listener is not there")?;
    let interrupted = interrupted()?;
    let is_told = arguments.format == FormatWord::Text;
    let is_live = is_told && std::io::stdout().is_terminal();
    let head = format!(
        "proxy {to}, control API http://{} (try: lazaret status --control {})\n\n",
        running.control_address(),
        running.control_address()
    );
    if is_told {
        super::say(&head);
    }
    if is_told && !is_live {
        super::say("of each destination: active value/passive value, whether traffic may use it, and why\n\n");
    }
    wait_until_probed(&running);
    let mut client = Client::start(to, CONNECTIONS, arguments.rate);
    ward.play();
    let start = Instant::now();
    let mut story = Story::new(running.journal());
    let mut drawn = 0;
    while arguments.time.is_none_or(|time| start.elapsed() < time) && !interrupted.load(Ordering::Relaxed) {
        let news = story.read(running.journal(), &ward);
        let frame = Frame {
            elapsed: start.elapsed(),
            rows: rows(&running, &ward),
            seen: client.seen(),
            lines: story.last(LINES),
        };
        if is_live {
            drawn = redraw(&screen::draw(&frame), drawn);
        } else if is_told {
            news.iter().for_each(|line| super::say(&format!("{line}\n")));
            if story.is_second(frame.elapsed) {
                super::say(&format!("{}\n", screen::line(&frame)));
            }
        }
        std::thread::sleep(FRAME);
    }
    let end = start.elapsed();
    client.stop();
    story.read(running.journal(), &ward);
    let summary = story.summary(&client.seen(), &ward, end);
    super::say(&match arguments.format {
        FormatWord::Text => summary.text(),
        FormatWord::Json => summary.json(),
    });
    running.stop();
    Ok(())
}

fn builder(ward: &Ward) -> Builder {
    Lazaret::builder()
        .workers(1)
        .listener(LISTENER, "127.0.0.1:0")
        .control("127.0.0.1:0")
        .control_socket("off")
        .route("all", "/{**rest}", "app")
        .cluster(ClusterConfig {
            cluster_id: "app".to_owned(),
            health_check: Some(HealthCheckConfig {
                active: Some(ActiveHealthCheckConfig {
                    interval: Some(Duration::from_millis(500)),
                    timeout: Some(Duration::from_millis(400)),
                    confirm_interval: Some(Duration::from_millis(250)),
                    path: Some("/health".to_owned()),
                    ..Default::default()
                }),
                // The default set.
                passive: Some(PassiveHealthCheckConfig::default()),
                ..Default::default()
            }),
            retry: Some(RetryConfig {
                conditions: Some(
                    ["error", "timeout", "http_500", "http_502", "http_503", "http_504"].map(String::from).to_vec(),
                ),
                per_try_timeout: Some(Duration::from_millis(500)),
                ..Default::default()
            }),
            destinations: ward.patients().map(|(id, patient)| DestinationConfig::new(id, &patient.url())).collect(),
            ..Default::default()
        })
}

fn rows(running: &Running, ward: &Ward) -> Vec<Row> {
    let view = running.view();
    let destinations = view.clusters.iter().flat_map(|cluster| &cluster.destinations);
    destinations
        .map(|destination| {
            let word = if destination.is_available { "yes" } else { "no" };
            Row {
                id: destination.id.to_string(),
                does: ward.does(destination.id.as_str()),
                active: destination.health.active.to_string(),
                passive: destination.health.passive.to_string(),
                available: format!("{word} ({})", destination.because.as_str()),
                served: running.served(destination.slot),
            }
        })
        .collect()
}

/// Waits until each destination was probed once, 2 s at most: the demo begins with everybody healthy.
fn wait_until_probed(running: &Running) {
    let start = Instant::now();
    let is_probed = || {
        let view = running.view();
        view.clusters.iter().flat_map(|cluster| &cluster.destinations).all(|d| d.probed_at.is_some())
    };
    while !is_probed() && start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Draws over the `drawn` lines of the frame before; the number of lines now.
fn redraw(text: &str, drawn: usize) -> usize {
    let mut out = String::new();
    if drawn > 0 {
        out.push_str(&format!("\x1b[{drawn}A"));
    }
    for line in text.lines() {
        out.push_str(line);
        out.push_str("\x1b[K\n");
    }
    // What is left of a longer frame.
    out.push_str("\x1b[J");
    super::say(&out);
    let _ = std::io::stdout().flush();
    text.lines().count()
}

/// A flag that ctrl-C sets.
fn interrupted() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                set.store(true, Ordering::Relaxed);
            }
        });
    })?;
    Ok(flag)
}

fn time(text: &str) -> Result<Duration, String> {
    config::timespan::parse(text).map_err(|error| error.to_string())
}

const LISTENER: &str = "web";
/// Clients at a time.
const CONNECTIONS: u32 = 16;
/// Time from one look to the next.
const FRAME: Duration = Duration::from_millis(200);
/// Lines of news on the screen.
const LINES: usize = 12;
