//! Durations as the file writes them.

use std::time::Duration;

use serde::Serializer;

/// Writes `1500ms`; finer than a millisecond in the constant form `00:00:00.0005000`, which holds 100 ns.
pub(super) fn write<S: Serializer>(span: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    match span {
        None => out.serialize_none(),
        Some(span) => out.serialize_str(&text(*span)),
    }
}

fn text(span: Duration) -> String {
    if span.subsec_nanos().is_multiple_of(1_000_000) {
        return format!("{}ms", span.as_millis());
    }
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    format!("{days}.{hours:02}:{minutes:02}:{:02}.{:07}", seconds % 60, span.subsec_nanos() / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_words_that_the_file_reads() {
        assert_eq!(text(Duration::from_secs(90)), "90000ms");
        assert_eq!(text(Duration::from_millis(250)), "250ms");
        assert_eq!(text(Duration::from_micros(1500)), "0.00:00:00.0015000");
    }
}
