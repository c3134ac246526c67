//! Typed reads of single values. Each notes its own error and then gives `None`, so that the caller goes on with a
//! default: a file with errors is refused as a whole anyway.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use model::address::Url;

use crate::raw::section::{Dialect, Field, Reading, Section};
use crate::raw::{Node, Value};
use crate::report::{Diagnostic, suggest};
use crate::timespan::{self, DotNetForm};

impl<'n> Field<'n> {
    /// A field for an item of a list; it keeps the list's name.
    pub fn item(&self, node: &'n Node) -> Self {
        Self { node, ..self.clone() }
    }

    /// Notes an error at the value.
    pub fn refuse(&self, r: &mut Reading<'_>, what: impl Into<String>, expected: impl Into<String>) {
        r.error(self.node.span, what, expected);
    }

    /// A text that is not empty; numbers and truth values count as what was written.
    pub fn text(&self, r: &mut Reading<'_>) -> Option<&'n str> {
        match self.node.scalar() {
            Some("") => {
                self.refuse(r, format!("`{}` is empty", self.name), "expected a text");
                None
            }
            Some(text) => Some(text),
            None => self.wrong_kind(r, "a text"),
        }
    }

    /// A text that may be empty.
    pub fn any_text(&self, r: &mut Reading<'_>) -> Option<&'n str> {
        self.node.scalar().or_else(|| self.wrong_kind(r, "a text"))
    }

    /// `true` or `false`; a text of that counts, too.
    pub fn flag(&self, r: &mut Reading<'_>) -> Option<bool> {
        match &self.node.value {
            Value::Bool(value) => Some(*value),
            Value::Text(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
            Value::Text(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
            Value::Text(_) | Value::Null | Value::Number(_) | Value::List(_) | Value::Map(_) => {
                self.wrong_kind(r, "true or false")
            }
        }
    }

    /// A whole number within `range`.
    pub fn whole(&self, r: &mut Reading<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let parsed = self.node.scalar().and_then(|text| text.trim().parse::<i64>().ok());
        match parsed {
            Some(number) if range.contains(&number) => Some(number),
            Some(_) | None => {
                let expected = if *range.end() >= i64::from(u32::MAX) {
                    format!("a whole number of {} or more", range.start())
                } else if range.start() == range.end() {
                    range.start().to_string()
                } else {
                    format!("a whole number from {} to {}", range.start(), range.end())
                };
                match parsed {
                    Some(_) => {
                        self.refuse(r, format!("`{}` is out of range", self.name), format!("expected {expected}"));
                        None
                    }
                    None => self.wrong_kind(r, &expected),
                }
            }
        }
    }

    /// A whole number of 32 bits, `min` or more.
    pub fn whole_u32(&self, r: &mut Reading<'_>, min: u32) -> Option<u32> {
        self.whole(r, i64::from(min)..=i64::from(u32::MAX)).and_then(|n| u32::try_from(n).ok())
    }

    /// A number strictly between 0 and 1.
    pub fn rate(&self, r: &mut Reading<'_>) -> Option<f64> {
        match self.node.scalar().and_then(|text| text.trim().parse::<f64>().ok()) {
            Some(rate) if rate > 0.0 && rate < 1.0 => Some(rate),
            Some(_) => {
                self.refuse(r, format!("`{}` is out of range", self.name), "expected a number between 0 and 1");
                None
            }
            None => self.wrong_kind(r, "a number between 0 and 1"),
        }
    }

    /// A number above zero.
    pub fn above_zero(&self, r: &mut Reading<'_>) -> Option<f64> {
        match self.node.scalar().and_then(|text| text.trim().parse::<f64>().ok()) {
            Some(number) if number > 0.0 && number.is_finite() => Some(number),
            Some(_) => {
                self.refuse(r, format!("`{}` is out of range", self.name), "expected a number above 0");
                None
            }
            None => self.wrong_kind(r, "a number above 0"),
        }
    }

    /// A span of time above zero.
    pub fn duration(&self, r: &mut Reading<'_>) -> Option<Duration> {
        let span = self.duration_or_zero(r)?;
        if span.is_zero() {
            self.refuse(r, format!("`{}` is zero", self.name), "expected a duration above zero");
            return None;
        }
        Some(span)
    }

    /// A span of time, zero included.
    pub fn duration_or_zero(&self, r: &mut Reading<'_>) -> Option<Duration> {
        let Some(text) = self.node.scalar() else {
            return self.wrong_kind(r, "a duration");
        };
        let parsed = match r.dialect {
            Dialect::Native => timespan::parse(text),
            Dialect::Rhi => timespan::parse_seconds(text),
            Dialect::Yarp => timespan::parse_dotnet(text).and_then(|span| {
                if span.form == DotNetForm::BareDays {
                    let days = text.trim();
                    let warning = Diagnostic::warning(format!("`{}` is {days} days", self.name))
                        .label("a bare number is days")
                        .help(format!("write \"00:00:{days:0>2}\" for seconds"));
                    r.note(self.node.span, warning);
                }
                span.to_duration().ok_or(timespan::TimeSpanError::Negative)
            }),
        };
        match parsed {
            Ok(span) => Some(span),
            Err(error) => {
                let expected = match (r.dialect, error) {
                    (Dialect::Yarp, timespan::TimeSpanError::Syntax) => {
                        "expected [d.]hh:mm:ss, such as 00:00:10".into()
                    }
                    (Dialect::Yarp | Dialect::Native | Dialect::Rhi, _) => error.to_string(),
                };
                self.refuse(r, format!("`{}` is no duration: `{text}`", self.name), expected);
                None
            }
        }
    }

    /// A number of bytes: bare, or with B, KiB, MiB, GiB (1024) or kB, MB, GB (1000).
    pub fn bytes(&self, r: &mut Reading<'_>) -> Option<u64> {
        let text = self.node.scalar().or_else(|| self.wrong_kind(r, "a size such as 64KiB"))?;
        let parsed = parse_bytes(text);
        if parsed.is_none() {
            self.refuse(r, format!("`{}` is no size: `{text}`", self.name), "expected bytes, such as 65536 or 64KiB");
        }
        parsed
    }

    /// The value of one of `words`; case, `_` and `-` count for nothing.
    pub fn word<T: Copy>(&self, r: &mut Reading<'_>, words: &[(&str, T)]) -> Option<T> {
        self.word_or(r, words, None)
    }

    /// The same where something else is possible, too: `other` is for the message.
    pub fn word_or<T: Copy>(&self, r: &mut Reading<'_>, words: &[(&str, T)], other: Option<&str>) -> Option<T> {
        let text = self.text(r)?;
        let folded = suggest::fold(text);
        let found = words.iter().find(|(word, _)| suggest::fold(word) == folded).map(|(_, value)| *value);
        if found.is_none() {
            let list: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let diagnostic = Diagnostic::error(format!("`{}` cannot be `{text}`", self.name))
                .label(format!("expected {}", join_or(&list.iter().copied().chain(other).collect::<Vec<_>>())))
                .maybe_help(suggest::did_you_mean(text, list.iter().copied()));
            r.note(self.node.span, diagnostic);
        }
        found
    }

    /// An address and port to listen on.
    pub fn socket_address(&self, r: &mut Reading<'_>) -> Option<SocketAddr> {
        let text = self.text(r)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            let what = format!("`{}` is no address to listen on: `{text}`", self.name);
            let mut diagnostic =
                Diagnostic::error(what).label("expected an IP address and a port, such as 127.0.0.1:8080");
            if let Some(port) = text.strip_prefix("localhost:") {
                diagnostic = diagnostic.help(format!("did you mean `127.0.0.1:{port}`?"));
            } else if let Some(port) = text.strip_prefix("*:").or(text.strip_prefix(':')) {
                diagnostic = diagnostic.help(format!("did you mean `0.0.0.0:{port}` or `[::]:{port}`?"));
            }
            r.note(self.node.span, diagnostic);
        }
        parsed
    }

    /// An http or https URL.
    pub fn url(&self, r: &mut Reading<'_>) -> Option<Url> {
        let text = self.text(r)?;
        match Url::parse(text) {
            Ok(url) => {
                if url.query.is_some() {
                    r.warn(self.node.span, format!("the query of `{}` is never sent", self.name));
                }
                Some(url)
            }
            Err(error) => {
                let mut diagnostic =
                    Diagnostic::error(format!("`{}` is no URL: `{text}`", self.name)).label(error.to_string());
                if error == model::address::UrlError::Scheme && !text.contains("://") {
                    diagnostic = diagnostic.help(format!("did you mean `http://{text}`?"));
                }
                r.note(self.node.span, diagnostic);
                None
            }
        }
    }

    /// A path of the file system.
    pub fn file(&self, r: &mut Reading<'_>) -> Option<PathBuf> {
        self.text(r).map(PathBuf::from)
    }

    /// The items of a list; a single value counts as a list of one.
    pub fn list(&self, r: &mut Reading<'_>) -> Vec<Self> {
        match &self.node.value {
            Value::List(items) => items.iter().map(|node| self.item(node)).collect(),
            Value::Text(_) | Value::Number(_) | Value::Bool(_) if r.dialect != Dialect::Yarp => vec![self.clone()],
            Value::Null | Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Map(_) => {
                let _: Option<()> = self.wrong_kind(r, "a list");
                Vec::new()
            }
        }
    }

    /// A block of keys; a mistake is told with an `example` of one.
    pub fn section_like(&self, r: &mut Reading<'_>, example: &str) -> Option<Section<'n>> {
        match self.node.value {
            Value::Map(_) => self.section(r),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                self.wrong_kind(r, example)
            }
        }
    }

    /// A block of keys.
    pub fn section(&self, r: &mut Reading<'_>) -> Option<Section<'n>> {
        Section::open(r, self.node, self.path.clone())
    }

    fn wrong_kind<T>(&self, r: &mut Reading<'_>, expected: &str) -> Option<T> {
        let what = match self.node.scalar() {
            Some(text) => format!("`{}` is `{text}`", self.name),
            None => format!("`{}` is {}", self.name, self.node.value.kind()),
        };
        self.refuse(r, what, format!("expected {expected}"));
        None
    }
}

/// `a, b or c`.
pub fn join_or(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim_start() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
