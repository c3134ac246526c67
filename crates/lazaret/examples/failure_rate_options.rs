//! Process-wide options of TransportFailureRate.

use std::time::Duration;

use lazaret::config::TransportFailureRateOptions;
use lazaret::{Builder, Lazaret};

/// Looks at 30 s, from 5 attempts on, and trips at half of them.
pub fn build() -> Builder {
    Lazaret::builder().transport_failure_rate(TransportFailureRateOptions {
        detection_window_size: Some(Duration::from_secs(30)),
        minimal_total_count_threshold: Some(5),
        default_failure_rate_limit: Some(0.5),
    })
}

#[allow(dead_code, clippy::print_stdout)]
fn main() -> Result<(), lazaret::Error> {
    let running = build().listener("web", "127.0.0.1:0").build()?.start()?;
    if let Some(address) = running.address("web") {
        println!("listening on http://{address}/, control API on http://{}/", running.control_address());
    }
    running.wait();
    Ok(())
}
