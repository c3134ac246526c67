//! `recorder`: how much of what the health core is told is kept, and where.

use std::time::Duration;

use model::config::Recorder;

use crate::raw::Value;
use crate::raw::section::{Field, Reading};

/// Resolves the block, or `off`.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Recorder> {
    let mut recorder = Recorder::default();
    match &field.node.value {
        Value::Null => return Some(recorder),
        Value::Bool(false) => return None,
        Value::Text(text) if text == "off" => return None,
        Value::Bool(true) | Value::Text(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {}
    }
    let mut s = field.section(r)?;
    if let Some(field) = s.take(r, "keep")
        && let Some(keep) = field.duration(r)
    {
        if (SHORTEST..=LONGEST).contains(&keep) {
            recorder.keep = keep;
        } else {
            field.refuse(r, "`keep` is out of range", "expected 1m to 24h");
        }
    }
    if let Some(field) = s.take(r, "size")
        && let Some(size) = field.bytes(r)
    {
        if (SMALLEST..=LARGEST).contains(&size) {
            recorder.size = size;
        } else {
            field.refuse(r, "`size` is out of range", "expected 1MiB to 1GiB");
        }
    }
    recorder.folder = s.take(r, "folder").and_then(|field| field.file(r));
    s.finish(r);
    Some(recorder)
}

const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(86_400);
const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 1 << 30;
