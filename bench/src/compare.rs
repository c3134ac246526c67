//! Before anything is measured: what comes out of each proxy, on both sides, so that all do the same work.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::engine::{Engine, Pace};
use crate::proxy::Proxy;

/// Sends some requests through each proxy and prints what differs from the first one.
pub(crate) fn compare(engine: &mut Engine, proxies: &[Proxy]) -> Result<()> {
    let mut first: Option<(Vec<String>, Vec<String>)> = None;
    for proxy in proxies {
        engine.aim(proxy.addr, 1)?;
        let moment = Duration::from_millis(100);
        for _ in 0..MOMENTS {
            engine.run(Pace::Closed, moment, moment, |_| {})?;
            if engine.tally.answered > 0 {
                break;
            }
        }
        engine.settle()?;
        ensure!(engine.tally.answered > 0, "{} answers nothing", proxy.name);
        ensure!(engine.tally.failed == 0, "{} fails {} requests", proxy.name, engine.tally.failed);
        let (request, response) = (&engine.seen.request, &engine.seen.response);
        ensure!(!request.is_empty(), "{} sends no request of the load to a destination", proxy.name);
        println!("{}: {} bytes to the destination, {} to the client", proxy.name, request.len(), response.len());
        let lines = (lines(request), lines(response));
        match &first {
            None => first = Some(lines),
            Some((requests, responses)) => {
                print_difference("to the destination", requests, &lines.0);
                print_difference("to the client", responses, &lines.1);
            }
        }
    }
    Ok(())
}

/// Head lines with field names in lower case, sorted: neither case nor order makes a difference.
fn lines(message: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(message);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let mut lines: Vec<String> = head
        .split("\r\n")
        .map(|line| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
            None => line.to_owned(),
        })
        .collect();
    lines.sort();
    lines
}

/// A body of 100 MiB or a handshake takes its time.
const MOMENTS: usize = 50;

fn print_difference(side: &str, first: &[String], other: &[String]) {
    for line in first.iter().filter(|line| !other.contains(line)) {
        println!("  {side} - {line}");
    }
    for line in other.iter().filter(|line| !first.contains(line)) {
        println!("  {side} + {line}");
    }
}
