//! YARP's JSON, read as it is: a whole appsettings.json, the body of its `ReverseProxy`, or the bare members.
//!
//! What YARP refuses is refused. What YARP takes and acts on in a surprising way is taken with the same effect and a
//! warning that names it. What YARP would honour and this proxy does not is named, loudly where ignoring it lets someone
//! in.

mod affinity;
mod cluster;
mod destination;
mod endpoint_tls;
mod health;
mod ignored;
mod listener;
mod metadata;
mod route;
mod version;

use model::cluster::Compat;
use model::config::{AccessLog, Answers, Config, Drain};
use model::passive::TransportFailureRate;

use crate::defaults::Defaults;
use crate::origin::{DefaultsOf, Origin};
use crate::policy_names::PolicyNames;
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading, Section};
use crate::raw::{Node, Value};
use crate::resolve::matching::Clusters;
use crate::resolve::native;

/// What sections further down need to know.
struct Context<'a> {
    names: &'a PolicyNames,
    defaults: Defaults,
    transport_failure_rate: TransportFailureRate,
    compat: Option<Compat>,
}

/// Resolves the whole file.
pub fn resolve(r: &mut Reading<'_>, root: &Node, names: &PolicyNames, compat: Option<Compat>) -> Config {
    let mut context = Context {
        names,
        defaults: Defaults::of(DefaultsOf::Yarp),
        transport_failure_rate: TransportFailureRate::default(),
        compat,
    };
    let mut config = Config {
        workers: None,
        control: native::control::default(),
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
    config.listeners = listener::resolve(r, &mut s, &context);
    match s.take(r, "ReverseProxy") {
        Some(field) => {
            // The other sections of an appsettings.json belong to other programs.
            s.ignore_rest();
            if let Some(body) = Section::open(r, field.node, Path::root()) {
                resolve_body(r, body, &mut context, &mut config);
            }
        }
        None => resolve_body(r, s, &mut context, &mut config),
    }
    config
}

fn resolve_body(r: &mut Reading<'_>, mut s: Section<'_>, context: &mut Context<'_>, config: &mut Config) {
    if let Some(section) = s.take_as(r, "HealthDefaults", "health_defaults").and_then(|field| field.section(r)) {
        health::defaults(r, section, context);
    }
    config.clusters = each(r, &mut s, "Clusters", "clusters", |r, field| cluster::resolve(r, context, field));
    let clusters = Clusters::of(&config.clusters);
    config.routes = each(r, &mut s, "Routes", "routes", |r, field| route::resolve(r, field, &clusters));
    let span = s.span;
    s.finish(r);
    if config.clusters.is_empty() && config.routes.is_empty() && !r.has_errors() {
        r.error(span, "there are neither routes nor clusters", "expected `Routes` and `Clusters`");
    }
}

/// All blocks of a section whose keys are ids.
fn each<'n, T>(
    r: &mut Reading<'_>,
    s: &mut Section<'n>,
    key: &'static str,
    native: &str,
    mut resolve: impl FnMut(&mut Reading<'_>, &Field<'n>) -> Option<T>,
) -> Vec<T> {
    let Some(field) = s.take_as(r, key, native) else {
        return Vec::new();
    };
    if matches!(field.node.value, Value::List(_)) {
        field.refuse(r, format!("`{key}` is a list"), "expected a block with an id for each");
        return Vec::new();
    }
    let Some(mut section) = field.section(r) else {
        return Vec::new();
    };
    let fields = section.take_all(r);
    fields.iter().filter_map(|field| resolve(r, field)).collect()
}

impl<'n> Section<'n> {
    /// Takes a value; a text of nothing counts as absent, as it does in YARP's options.
    fn take_filled(&mut self, r: &mut Reading<'_>, key: &'static str, native: &str) -> Option<Field<'n>> {
        self.take_as(r, key, native).filter(|field| field.node.scalar() != Some(""))
    }

    /// Takes a truth value; `default` when absent.
    fn take_flag(&mut self, r: &mut Reading<'_>, key: &'static str, native: &str, default: Flag) -> Flag {
        match self.take_filled(r, key, native).and_then(|field| field.flag(r)) {
            Some(true) => Flag::On,
            Some(false) => Flag::Off,
            None => default,
        }
    }
}

/// A truth value of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    On,
    Off,
}

/// Notes that `path` was set by a metadata entry.
fn record_metadata(r: &mut Reading<'_>, path: Path, entry: &Field<'_>) {
    let origin = Origin::Metadata { line: r.line(entry.node.span) };
    r.origins.record(path, origin, entry.node.span);
}
