//! `buffering` of a route: which bodies are taken ahead, and how much of them.

use model::route::Buffering;

use crate::raw::Value;
use crate::raw::section::{Field, Reading};

/// `on`, `off`, or `{request: 64KiB, response: 256KiB}`; a size that is left out is that of `on`.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Buffering> {
    if !matches!(field.node.value, Value::Map(_)) {
        let sizes = Some("{request: 64KiB, response: 256KiB}");
        return field.word_or(r, &[("on", Buffering::ON), ("off", Buffering::Off)], sizes);
    }
    let mut s = field.section(r)?;
    let request = s.take(r, "request").map_or(Some(Buffering::REQUEST), |field| size(r, &field));
    let response = s.take(r, "response").map_or(Some(Buffering::RESPONSE), |field| size(r, &field));
    s.finish(r);
    Some(Buffering::On { request: request?, response: response? })
}

fn size(r: &mut Reading<'_>, field: &Field<'_>) -> Option<u64> {
    let bytes = field.bytes(r)?;
    if bytes > MOST {
        field.refuse(r, format!("`{}` is too much for memory", field.name), "expected 16MiB or less");
        return None;
    }
    Some(bytes)
}

/// A quarter of what one worker sets aside for all.
const MOST: u64 = 16 << 20;
