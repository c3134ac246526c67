//! The effective configuration, written as native YAML with the origin of each value behind it.

mod cluster;
mod destination;
mod health;
mod listener;
mod pages;
mod passive;
mod route;
mod transforms;

use std::fmt::Write as _;

use model::config::{AccessLog, Config, Control, ControlSocket, RequestId};
use model::upstream::UpstreamHttp;
use serde::Serialize;

use crate::Loaded;
use crate::origin::{Origin, Origins};
use crate::raw::path::Path;
use crate::timespan;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name, dotted, in native words.
    pub path: String,
    /// The value as native YAML.
    pub value: String,
    /// Where it came from.
    pub origin: String,
}

/// Lines and settings while they are written.
pub struct Writer<'a> {
    origins: &'a Origins,
    path: Path,
    depth: usize,
    is_item: bool,
    lines: Vec<(String, Option<String>)>,
    settings: Vec<Setting>,
}

/// Writes a whole configuration.
pub fn write(loaded: &Loaded) -> Writer<'_> {
    let mut w = Writer {
        origins: &loaded.origins,
        path: Path::root(),
        depth: 0,
        is_item: false,
        lines: Vec::new(),
        settings: Vec::new(),
    };
    root(&mut w, &loaded.config);
    w
}

fn root(w: &mut Writer<'_>, config: &Config) {
    w.lines.push(("version: 1".to_owned(), None));
    w.value("workers", config.workers.map_or_else(|| "auto".to_owned(), |n| n.to_string()));
    w.block("control", |w| control(w, &config.control));
    w.value(
        "access_log",
        match &config.access_log {
            AccessLog::Off => "off".to_owned(),
            AccessLog::Stdout => "stdout".to_owned(),
            AccessLog::File(path) => quoted(&path.display().to_string()),
        },
    );
    w.block("drain", |w| {
        w.value("lead", timespan::format(config.drain.lead));
        w.value("grace", timespan::format(config.drain.grace));
        w.value("upgrade_grace", timespan::format(config.drain.upgrade_grace));
    });
    w.block("dns", |w| {
        let servers: Vec<_> = config.dns.servers.iter().map(ToString::to_string).collect();
        w.value("servers", list(servers.iter().map(String::as_str)));
        w.value("min_ttl", timespan::format(config.dns.min_ttl));
        w.value("max_ttl", timespan::format(config.dns.max_ttl));
    });
    match &config.recorder {
        None => w.value("recorder", "off".to_owned()),
        Some(recorder) => w.block("recorder", |w| {
            w.value("keep", timespan::format(recorder.keep));
            w.value("size", bytes(recorder.size));
            if let Some(folder) = &recorder.folder {
                w.value("folder", quoted(&folder.display().to_string()));
            }
        }),
    }
    match &config.answers.request_id {
        RequestId::Off => w.value("request_id", "off".to_owned()),
        RequestId::Header(name) => w.block("request_id", |w| w.value("header", quoted(name))),
    }
    pages::error_pages(w, &config.answers.error_pages);
    w.map("listeners", &config.listeners, |listener| listener.id.as_str(), listener::write);
    w.map("routes", &config.routes, |route| route.id.as_str(), route::write);
    w.map("clusters", &config.clusters, |cluster| cluster.id.as_str(), cluster::write);
}

fn control(w: &mut Writer<'_>, control: &Control) {
    w.value("address", quoted(&control.address.to_string()));
    w.value("names", list(control.names.iter().map(String::as_str)));
    match &control.socket {
        // Written down it would be asked for; a default may be left out where it cannot be bound.
        ControlSocket::Default(path) => {
            w.comment(&format!("socket: {}, where its folder can be written", path.display()))
        }
        ControlSocket::Path(path) => w.value("socket", quoted(&path.display().to_string())),
        ControlSocket::Off => w.value("socket", "off".to_owned()),
    }
    w.value("users", list(control.users.iter().map(String::as_str)));
    let token = control.token_file.as_ref().map(|path| path.display().to_string());
    w.value("token_file", optional(token.as_deref()));
}

impl Writer<'_> {
    /// The whole text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (line, origin) in &self.lines {
            // Writing to a String cannot fail.
            let _ = match origin {
                Some(origin) => writeln!(out, "{line:<ORIGIN_COLUMN$} # {origin}"),
                None => writeln!(out, "{line}"),
            };
        }
        out
    }

    /// The values alone.
    pub fn into_settings(self) -> Vec<Setting> {
        self.settings
    }

    fn push(&mut self, text: &str, origin: Option<String>) {
        let marker = if std::mem::take(&mut self.is_item) { "- " } else { "" };
        let depth = if marker.is_empty() { self.depth } else { self.depth.saturating_sub(1) };
        self.lines.push((format!("{}{marker}{text}", "  ".repeat(depth)), origin));
    }

    /// A key and its value, which is YAML already.
    fn value(&mut self, name: &str, value: String) {
        let path = self.path.join(name);
        let origin = self.origin(&path);
        self.push(&format!("{}: {value}", key(name)), Some(origin.clone()));
        self.settings.push(Setting { path: path.to_string(), value, origin });
    }

    /// Options of TransportFailureRate may come from the file's own defaults.
    fn origin(&self, path: &Path) -> String {
        let shared = Path::of(["health_defaults", "transport_failure_rate", path.last()]);
        let is_option = path.parent().is_some_and(|above| above.last() == "policies");
        match (self.origins.of(path), self.origins.of(&shared)) {
            (Origin::Default(_), Origin::File { line }) if is_option => {
                self.origins.describe(&Origin::HealthDefaults { line })
            }
            (origin, _) => self.origins.describe(&origin),
        }
    }

    fn comment(&mut self, text: &str) {
        self.lines.push((format!("{}# {text}", "  ".repeat(self.depth)), None));
    }

    fn block(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.push(&format!("{}:", key(name)), None);
        let path = self.path.join(name);
        let above = std::mem::replace(&mut self.path, path);
        self.depth += 1;
        write(self);
        self.depth -= 1;
        self.path = above;
    }

    /// A map of ids; `{}` when there are none.
    fn map<T>(&mut self, name: &str, items: &[T], id: impl Fn(&T) -> &str, write: impl Fn(&mut Self, &T)) {
        if items.is_empty() {
            return self.push(&format!("{}: {{}}", key(name)), None);
        }
        self.block(name, |w| {
            for item in items {
                w.block(id(item), |w| write(w, item));
            }
        });
    }

    /// An item of a list of blocks that has a path of its own, by its place.
    fn item_at(&mut self, at: usize, write: impl FnOnce(&mut Self)) {
        let path = self.path.join(&at.to_string());
        let above = std::mem::replace(&mut self.path, path);
        self.item(write);
        self.path = above;
    }

    /// An item of a list of blocks. It keeps the list's path, as the reader does.
    fn item(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        self.is_item = true;
        write(self);
        self.is_item = false;
        self.depth -= 1;
    }
}

/// A key, in quotes where YAML would take it for something else.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// A text in double quotes.
/// A version of HTTP as the file has it.
fn http(http: UpstreamHttp) -> &'static str {
    match http {
        UpstreamHttp::Http1 => "1.1",
        UpstreamHttp::Http2 => "2",
        UpstreamHttp::Http2OrHttp1 => "2-or-1.1",
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn optional(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quoted)
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", items.map(quoted).collect::<Vec<_>>().join(", "))
}

fn span(value: Option<std::time::Duration>) -> String {
    value.map_or_else(|| "null".to_owned(), timespan::format)
}

fn bytes(value: u64) -> String {
    for (unit, size) in [("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if value > 0 && value.is_multiple_of(size) {
            return format!("{}{unit}", value / size);
        }
    }
    value.to_string()
}

const ORIGIN_COLUMN: usize = 60;
