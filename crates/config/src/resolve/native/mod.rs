//! The native format, from its root down.

mod active;
pub mod affinity;
mod buffering;
mod cluster;
pub mod control;
pub mod destination;
mod dns;
mod entry;
mod hash;
pub mod listener;
mod listener_entry;
mod listener_tls;
mod pages;
mod passive;
mod passive_options;
mod queue;
mod recorder;
mod retry;
mod route;
mod split;

use std::num::NonZeroU16;
use std::path::PathBuf;

use ipnet::IpNet;
use model::cluster::Compat;
use model::config::{AccessLog, Answers, Config, Drain};
use model::passive::TransportFailureRate;

use crate::defaults::Defaults;
use crate::origin::DefaultsOf;
use crate::policy_names::PolicyNames;
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading, Section};
use crate::raw::{Node, Value};
use crate::resolve::matching::Clusters;

/// What sections further down need to know.
pub struct Context<'a> {
    names: &'a PolicyNames,
    defaults: Defaults,
    transport_failure_rate: TransportFailureRate,
    compat: Option<Compat>,
}

/// Resolves the whole file.
pub fn resolve(r: &mut Reading<'_>, root: &Node, names: &PolicyNames, compat: Option<Compat>) -> Config {
    let mut context = Context {
        names,
        defaults: Defaults::of(DefaultsOf::Native),
        transport_failure_rate: TransportFailureRate::default(),
        compat,
    };
    let mut config = Config {
        workers: None,
        control: control::default(),
        listeners: Vec::new(),
        routes: Vec::new(),
        clusters: Vec::new(),
        drain: Drain::default(),
        access_log: AccessLog::Off,
        answers: Answers::default(),
        dns: Default::default(),
        recorder: Some(Default::default()),
    };
    let Some(mut s) = Section::open(r, root, Path::root()) else {
        return config;
    };
    if let Some(field) = s.take(r, "version") {
        field.whole(r, 1..=1);
    }
    config.workers = s.take(r, "workers").and_then(|field| workers(r, &field));
    if let Some(section) = s.take(r, "control").and_then(|field| field.section(r)) {
        config.control = control::resolve(r, section);
    }
    if let Some(section) = s.take(r, "health_defaults").and_then(|field| field.section(r)) {
        health_defaults(r, section, &mut context);
    }
    let trusted = s.take(r, "trusted_proxies").map(|field| networks(r, &field)).unwrap_or_default();
    if let Some(section) = s.take(r, "drain").and_then(|field| field.section(r)) {
        config.drain = drain(r, section);
    }
    if let Some(section) = s.take(r, "dns").and_then(|field| field.section(r)) {
        config.dns = dns::resolve(r, section);
    }
    if let Some(field) = s.take(r, "recorder") {
        config.recorder = recorder::resolve(r, &field);
    }
    config.access_log =
        s.take_raw(r, "access_log", "access_log").map(|field| access_log(r, &field)).unwrap_or_default();
    if let Some(field) = s.take(r, "request_id") {
        config.answers.request_id = pages::request_id(r, &field);
    }
    if let Some(field) = s.take(r, "error_pages") {
        config.answers.error_pages = pages::error_pages(r, &field);
    }
    config.listeners = each(r, &mut s, "listeners", |r, field| listener::resolve(r, &context, field, &trusted));
    config.clusters = each(r, &mut s, "clusters", |r, field| cluster::resolve(r, &context, field));
    let clusters = Clusters::of(&config.clusters);
    config.routes = each(r, &mut s, "routes", |r, field| route::resolve(r, field, &clusters));
    s.not_yet(
        r,
        &[
            ("watch", "reloading when the file changes; a reload by SIGHUP or the control API works"),
            ("etcd", "configuration from etcd"),
        ],
    );
    s.finish(r);
    listener::refuse_shared_addresses(r, &config.listeners);
    config
}

/// All blocks of a section whose keys are ids.
fn each<'n, T>(
    r: &mut Reading<'_>,
    s: &mut Section<'n>,
    key: &'static str,
    mut resolve: impl FnMut(&mut Reading<'_>, &Field<'n>) -> Option<T>,
) -> Vec<T> {
    let Some(mut section) = s.take(r, key).and_then(|field| field.section(r)) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for field in section.take_all(r) {
        if field.name.trim().is_empty() {
            r.error(field.key_span, "an id is empty", "expected a name");
            continue;
        }
        all.extend(resolve(r, &field));
    }
    all
}

fn workers(r: &mut Reading<'_>, field: &Field<'_>) -> Option<NonZeroU16> {
    if field.node.scalar() == Some("auto") {
        return None;
    }
    let parsed = field.node.scalar().and_then(|text| text.parse::<i64>().ok());
    if parsed.is_none() {
        field.refuse(r, "`workers` is no number", "expected auto, or a whole number from 1 to 1024");
        return None;
    }
    field.whole(r, 1..=1024).and_then(|n| u16::try_from(n).ok()).and_then(NonZeroU16::new)
}

fn health_defaults(r: &mut Reading<'_>, mut s: Section<'_>, context: &mut Context<'_>) {
    if let Some(mut section) = s.take(r, "transport_failure_rate").and_then(|field| field.section(r)) {
        context.transport_failure_rate =
            passive::transport_failure_rate(r, &mut section, TransportFailureRate::default());
        section.finish(r);
    }
    s.finish(r);
}

fn drain(r: &mut Reading<'_>, mut s: Section<'_>) -> Drain {
    let default = Drain::default();
    let drain = Drain {
        lead: s.take(r, "lead").and_then(|field| field.duration_or_zero(r)).unwrap_or(default.lead),
        grace: s.take(r, "grace").and_then(|field| field.duration(r)).unwrap_or(default.grace),
        upgrade_grace: s.take(r, "upgrade_grace").and_then(|field| field.duration(r)).unwrap_or(default.upgrade_grace),
    };
    s.finish(r);
    drain
}

fn access_log(r: &mut Reading<'_>, field: &Field<'_>) -> AccessLog {
    match &field.node.value {
        Value::Null | Value::Bool(false) => AccessLog::Off,
        Value::Text(text) if text == "off" => AccessLog::Off,
        Value::Text(text) if text == "stdout" => AccessLog::Stdout,
        Value::Text(text) if text.contains('/') => AccessLog::File(PathBuf::from(text)),
        Value::Text(_) | Value::Bool(true) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            field.refuse(r, "`access_log` names no place", "expected off, stdout, or the path of a file (with a /)");
            AccessLog::Off
        }
    }
}

/// A list of networks; a bare address is a network of one.
fn networks(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for item in field.list(r) {
        let Some(text) = item.text(r) else { continue };
        let parsed =
            text.parse::<IpNet>().ok().or_else(|| text.parse().ok().map(|ip: std::net::IpAddr| IpNet::from(ip)));
        match parsed {
            Some(network) => networks.push(network),
            None => {
                item.refuse(r, format!("`{text}` is no network"), "expected an address or a CIDR such as 10.0.0.0/8")
            }
        }
    }
    networks
}
