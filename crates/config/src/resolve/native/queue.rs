//! `queue`: how requests wait that no destination can take at once.

use std::time::Duration;

use model::cluster::{Compat, Queue};

use crate::raw::Value;
use crate::raw::section::{Field, Reading};

/// Resolves it; `off`: nobody waits.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>, compat: Compat) -> Option<Queue> {
    if field.node.scalar() == Some("off") || matches!(field.node.value, Value::Bool(false)) {
        return Some(Queue::OFF);
    }
    if compat == Compat::Nginx {
        field.refuse(r, "`queue` says nothing under `compat: nginx`", "expected off: nginx answers at once");
        return None;
    }
    let mut s = field.section(r)?;
    let length = s.take(r, "length").and_then(|f| f.whole(r, 0..=MOST_WAITING)).and_then(|n| u32::try_from(n).ok());
    let busy_timeout = s.take(r, "busy_timeout").and_then(|f| span(r, &f));
    let unavailable_timeout = s.take(r, "unavailable_timeout").and_then(|f| span(r, &f));
    s.finish(r);
    if length == Some(0) {
        return Some(Queue::OFF);
    }
    Some(Queue {
        length: length.unwrap_or(Queue::DEFAULT.length),
        busy_timeout: busy_timeout.unwrap_or(Queue::DEFAULT.busy_timeout),
        unavailable_timeout: unavailable_timeout.unwrap_or(Queue::DEFAULT.unavailable_timeout),
    })
}

/// A duration that may be zero, and a minute at most: who waits longer has left.
fn span(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Duration> {
    let span = ZERO_WORDS.contains(&field.node.scalar().unwrap_or_default()).then_some(Duration::ZERO);
    let span = span.or_else(|| field.duration(r))?;
    if span > LONGEST_WAIT {
        field.refuse(r, format!("`{}` is out of range", field.name), "expected 1m at most");
        return None;
    }
    Some(span)
}

/// Most requests that may wait for one cluster.
const MOST_WAITING: i64 = 10_000;
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const ZERO_WORDS: [&str; 3] = ["0", "0s", "0ms"];
