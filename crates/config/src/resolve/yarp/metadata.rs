//! `Metadata` of a cluster: free text, in which YARP's health policies look for their numbers.
//!
//! They read them as .NET reads a floating number; what they cannot read they replace by their default without a word,
//! and nothing is checked for its range. The same effects here, with a warning each.

use std::collections::BTreeMap;

use crate::raw::section::{Field, Reading};
use crate::report::{Diagnostic, suggest};

/// The entries of one cluster.
pub struct Metadata<'n> {
    entries: Vec<(Field<'n>, &'n str)>,
}

impl<'n> Metadata<'n> {
    /// Reads the block.
    pub fn read(r: &mut Reading<'_>, field: Option<&Field<'n>>) -> Self {
        let mut entries = Vec::new();
        if let Some(mut section) = field.and_then(|field| field.section(r)) {
            for entry in section.take_all(r) {
                if let Some(text) = entry.any_text(r) {
                    entries.push((entry, text));
                }
            }
        }
        Self { entries }
    }

    /// The threshold of ConsecutiveFailures, and where it stands.
    pub fn threshold(&self, r: &mut Reading<'_>, default: u32) -> Option<(u32, &Field<'n>)> {
        let (field, text) = self.entry(THRESHOLD)?;
        let mut warn = |effect: String| {
            let diagnostic = Diagnostic::warning(format!("the threshold is `{text}`")).label(effect);
            r.note(field.node.span, diagnostic.help("write a whole number of 1 or more"));
        };
        let threshold = match number(text) {
            None => {
                warn(format!("unreadable, so {default} holds"));
                default
            }
            Some(number) if number.is_nan() || number < 1.0 => {
                warn("acts as 1: the first failed probe is enough".to_owned());
                1
            }
            Some(number) if number > f64::from(u32::MAX) => {
                warn("no destination is ever found Unhealthy".to_owned());
                u32::MAX
            }
            Some(number) => {
                // The counter is compared with the number itself, so 1.5 is reached by 2.
                let whole = number.ceil() as u32;
                if f64::from(whole) != number {
                    warn(format!("acts as {whole}"));
                }
                whole
            }
        };
        Some((threshold, field))
    }

    /// The limit of TransportFailureRate, and where it stands.
    pub fn rate_limit(&self, r: &mut Reading<'_>, default: f64) -> Option<(f64, &Field<'n>)> {
        let (field, text) = self.entry(RATE_LIMIT)?;
        Some((rate(r, field, text, default), field))
    }

    /// Warns of entries that look like a policy's number and are none.
    pub fn name_strangers(&self, r: &mut Reading<'_>) {
        for (field, _) in &self.entries {
            let is_known = KEYS.iter().any(|key| key.eq_ignore_ascii_case(&field.name));
            let near = suggest::nearest(&field.name, KEYS).filter(|_| !is_known);
            if let Some(key) = near {
                let diagnostic = Diagnostic::warning(format!("no policy reads the metadata `{}`", field.name));
                r.note(field.key_span, diagnostic.label("has no effect").help(format!("did you mean `{key}`?")));
            }
        }
    }

    /// As texts.
    pub fn into_texts(self) -> BTreeMap<String, String> {
        self.entries.into_iter().map(|(field, text)| (field.name, text.to_owned())).collect()
    }

    fn entry(&self, key: &str) -> Option<(&Field<'n>, &'n str)> {
        self.entries.iter().find(|(field, _)| field.name.eq_ignore_ascii_case(key)).map(|(field, text)| (field, *text))
    }
}

/// A failure rate as YARP acts on it. NaN, which makes every comparison false, acts as 0.
pub fn rate(r: &mut Reading<'_>, field: &Field<'_>, text: &str, default: f64) -> f64 {
    let mut warn = |effect: String| {
        let diagnostic = Diagnostic::warning(format!("the rate limit is `{text}`")).label(effect);
        r.note(field.node.span, diagnostic.help("write a number between 0 and 1"));
    };
    match number(text) {
        None => {
            warn(format!("unreadable, so {default} holds"));
            default
        }
        Some(rate) if rate.is_nan() || rate <= 0.0 => {
            warn("the first request ejects a destination, failed or not".to_owned());
            0.0
        }
        Some(rate) if rate > 1.0 => {
            warn("no destination is ever ejected".to_owned());
            rate.min(f64::MAX)
        }
        Some(rate) => {
            if rate >= 1.0 {
                warn("a destination is ejected only when all requests fail".to_owned());
            }
            rate
        }
    }
}

/// A floating number as .NET's invariant culture reads it.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_word = text.bytes().any(|b| b.is_ascii_alphabetic() && !b"eE".contains(&b));
    if is_word {
        return match text.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str() {
            "nan" => Some(f64::NAN),
            "infinity" if text.starts_with('-') => Some(f64::NEG_INFINITY),
            "infinity" => Some(f64::INFINITY),
            _ => None,
        };
    }
    text.parse().ok()
}

const THRESHOLD: &str = "ConsecutiveFailuresHealthPolicy.Threshold";
const RATE_LIMIT: &str = "TransportFailureRateHealthPolicy.RateLimit";
const KEYS: [&str; 2] = [THRESHOLD, RATE_LIMIT];
