//! Keys that YARP honours and this proxy does not: each is named, none is passed over in silence.

use crate::raw::Value;
use crate::raw::section::{Reading, Section};
use crate::report::Diagnostic;

/// A key and what its absence means. `harmless` are values that ask for nothing.
pub struct Ignored {
    /// The key.
    pub key: &'static str,
    /// What happens without it.
    pub effect: &'static str,
    /// Values (without case) that ask for nothing.
    pub harmless: &'static [&'static str],
    /// How loudly it is said.
    pub tone: Tone,
}

/// How loudly a key is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A warning.
    Warning,
    /// Ignoring it lets someone in or removes a limit.
    Alarm,
}

/// A plain warning.
pub const fn warning(key: &'static str, effect: &'static str, harmless: &'static [&'static str]) -> Ignored {
    Ignored { key, effect, harmless, tone: Tone::Warning }
}

/// A loud one.
pub const fn alarm(key: &'static str, effect: &'static str, harmless: &'static [&'static str]) -> Ignored {
    Ignored { key, effect, harmless, tone: Tone::Alarm }
}

/// Takes the keys and names those that ask for something.
pub fn name(r: &mut Reading<'_>, s: &mut Section<'_>, keys: &[Ignored]) {
    for ignored in keys {
        let Some(field) = s.take(r, ignored.key) else { continue };
        let asks = match &field.node.value {
            Value::Null => false,
            Value::Bool(_) | Value::Number(_) | Value::Text(_) => {
                let text = field.node.scalar().unwrap_or_default();
                !text.is_empty() && !ignored.harmless.iter().any(|word| word.eq_ignore_ascii_case(text))
            }
            Value::List(items) => !items.is_empty(),
            Value::Map(entries) => !entries.is_empty(),
        };
        if asks {
            let message = format!("`{}` is not honoured", ignored.key);
            let diagnostic = match ignored.tone {
                Tone::Warning => Diagnostic::warning(message),
                Tone::Alarm => Diagnostic::alarm(message),
            };
            r.note(field.key_span, diagnostic.label(ignored.effect));
        }
    }
}
