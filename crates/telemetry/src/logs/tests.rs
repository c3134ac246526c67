//! Lines as they come out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn text_of(format: LogFormat, stamp: Stamp, log: impl FnOnce()) -> String {
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber = tracing_subscriber::registry().with(layer(format, stamp, move || writer.clone()));
    tracing::subscriber::with_default(subscriber, log);
    let bytes = captured.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn lines_for_the_systems_journal_carry_a_priority() {
    let text = text_of(LogFormat::Text, Stamp::LevelPrefix, || {
        tracing::warn!(target: "health", cluster = "api", "health changed");
        tracing::info!(target: "config", "configuration applied");
    });
    assert_eq!(text, "<4>health: health changed cluster=\"api\"\n<6>config: configuration applied\n");
}

#[test]
fn json_lines_have_fields_at_the_top() {
    let text = text_of(LogFormat::Json, Stamp::Time, || tracing::warn!(target: "health", failed = 3, "health changed"));
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["failed"], 3);
    assert_eq!(line["message"], "health changed");
}

#[test]
fn a_log_that_cannot_be_opened_stops_the_start() {
    let options = LogOptions { main: Some("/nonexistent/main.log".into()), ..LogOptions::default() };
    assert!(matches!(start(&options), Err(LogError::Open { .. })));
    let options = LogOptions { filter: Some("health=loud".to_owned()), ..LogOptions::default() };
    assert!(matches!(start(&options), Err(LogError::Filter { .. })));
}

#[test]
fn the_error_log_takes_warnings_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let (main, error) = (folder.path().join("main.log"), folder.path().join("error.log"));
    let options = LogOptions { main: Some(main.clone()), error: Some(error.clone()), ..LogOptions::default() };
    let logs = start(&options).unwrap();
    tracing::info!("fine");
    tracing::warn!("odd");
    tracing::error!("bad");
    tracing::debug!("detail");
    logs.flush(std::time::Duration::from_secs(10));
    let read = |path| std::fs::read_to_string(path).unwrap();
    let words = |text: String| text.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        words(read(main)).iter().filter(|word| ["fine", "odd", "bad", "detail"].contains(&word.as_str())).count(),
        3
    );
    let errors = words(read(error));
    assert!(
        errors.contains(&"odd".to_owned())
            && errors.contains(&"bad".to_owned())
            && !errors.contains(&"fine".to_owned())
    );
}
