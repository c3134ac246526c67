//! What is valid and still worth a word: judged on the resolved configuration, so that every format is judged alike.

use std::collections::BTreeMap;
use std::time::Duration;

use model::address::Scheme;
use model::cluster::{Cluster, Compat, Verify};
use model::config::Config;
use model::id::ClusterId;
use model::passive::PassivePolicy;
use model::route::{Route, RouteAction};

use crate::raw::path::Path;
use crate::raw::section::Reading;
use crate::report::Diagnostic;
use crate::timespan;

/// Notes all warnings.
pub fn look(r: &mut Reading<'_>, config: &Config) {
    if config.listeners.is_empty() {
        note(r, &Path::root(), Diagnostic::warning("there is no listener: nobody can connect"));
    }
    if !config.control.address.ip().is_loopback() {
        let what = format!("the control API listens on {}", config.control.address);
        let place = Path::of(["control", "address"]);
        note(r, &place, Diagnostic::alarm(what).label("whoever reaches it may read everything"));
    }
    let mut routed: BTreeMap<&ClusterId, Vec<&Route>> = BTreeMap::new();
    for route in &config.routes {
        match &route.action {
            RouteAction::Cluster(Some(id)) => routed.entry(id).or_default().push(route),
            RouteAction::Clusters(split) => {
                split.sides.iter().for_each(|side| routed.entry(&side.cluster).or_default().push(route))
            }
            RouteAction::Cluster(None)
            | RouteAction::Respond { .. }
            | RouteAction::Redirect { .. }
            | RouteAction::Deny(_) => {}
        }
    }
    defaults_of_policies(r, config);
    for cluster in &config.clusters {
        let routes = routed.get(&cluster.id).map_or(&[][..], Vec::as_slice);
        let path = Path::of(["clusters", cluster.id.as_str()]);
        reach(r, routes, cluster, &path);
        checks(r, cluster, &path);
        mute_shadows(r, cluster, &path);
        max_fails(r, cluster, &path);
        time(r, routes, cluster, &path);
        let is_tls = cluster.destinations.iter().any(|d| d.address.scheme == Scheme::Https);
        if cluster.tls.verify == Verify::DangerousNone && is_tls {
            let what = format!("cluster `{}` verifies no certificates", cluster.id);
            let place = path.join("tls").join("verify");
            note(r, &place, Diagnostic::alarm(what).label("anybody can answer in a destination's place"));
        }
    }
}

fn note(r: &mut Reading<'_>, path: &Path, diagnostic: Diagnostic) {
    let span = r.origins.span_of(path);
    r.note(span, diagnostic);
}

/// Traffic has to get to the cluster and into it.
fn reach(r: &mut Reading<'_>, routes: &[&Route], cluster: &Cluster, path: &Path) {
    let id = &cluster.id;
    if routes.is_empty() {
        note(r, path, Diagnostic::warning(format!("no route leads to cluster `{id}`")));
    }
    if cluster.destinations.is_empty() {
        let what = format!("cluster `{id}` has no destinations");
        note(r, path, Diagnostic::warning(what).label("its requests are answered with 503"));
    } else if cluster.destinations.iter().all(|destination| destination.weight == 0) {
        let what = format!("every destination of cluster `{id}` has weight 0");
        note(r, path, Diagnostic::warning(what).label("its requests are answered with 503"));
    }
}

fn checks(r: &mut Reading<'_>, cluster: &Cluster, path: &Path) {
    if cluster.health_check.active.is_none() && cluster.health_check.passive.is_none() {
        let what = format!("cluster `{}` has no check", cluster.id);
        let label = "a destination that fails goes on getting requests; RHI, where it runs, cannot see it fail";
        let help = "turn on checks: `health_check: {active: {path: /health}, passive: {}}`";
        note(r, path, Diagnostic::warning(what).label(label).help(help));
    }
}

/// What a shadow would do is told by its ejections: one that takes weight alone says nothing.
fn mute_shadows(r: &mut Reading<'_>, cluster: &Cluster, path: &Path) {
    let shadow = cluster.health_check.passive.iter().flat_map(|passive| &passive.shadow);
    let is_mute = |policy: &&PassivePolicy| match policy {
        PassivePolicy::Stall(_) | PassivePolicy::Latency(_) | PassivePolicy::Overload(_) => true,
        PassivePolicy::TransportFailureRate(_)
        | PassivePolicy::MaxFails(_)
        | PassivePolicy::ConsecutiveErrors(_)
        | PassivePolicy::FailureRate(_)
        | PassivePolicy::Outlier(_)
        | PassivePolicy::Burst(_)
        | PassivePolicy::ConnectFailures(_)
        | PassivePolicy::Custom(_) => false,
    };
    for policy in shadow.filter(is_mute) {
        let place = path.join("health_check").join("passive").join("shadow");
        let what = format!("{} never ejects: as a shadow it says nothing", policy.name());
        let help = "list it among the `policies` of `health_check.passive`, or leave it out";
        note(r, &place, Diagnostic::warning(what).help(help));
    }
}

/// Options of a policy that nobody names have no effect.
fn defaults_of_policies(r: &mut Reading<'_>, config: &Config) {
    let place = Path::of(["health_defaults", "transport_failure_rate"]);
    let has_policy = |cluster: &Cluster| {
        let passive = cluster.health_check.passive.as_ref();
        let mut policies = passive.iter().flat_map(|passive| passive.policies.iter().chain(&passive.shadow));
        policies.any(|policy| matches!(policy, PassivePolicy::TransportFailureRate(_)))
    };
    if r.origins.is_set(&place) && !config.clusters.iter().any(has_policy) {
        let what = "`health_defaults.transport_failure_rate` has no effect";
        let help = "name it in a cluster: `health_check: {passive: {policies: [TransportFailureRate]}}`";
        note(r, &place, Diagnostic::warning(what).label("no cluster has the policy TransportFailureRate").help(help));
    }
}

/// nginx counts an answer with a listed status only when another attempt follows.
fn max_fails(r: &mut Reading<'_>, cluster: &Cluster, path: &Path) {
    let passive = cluster.health_check.passive.as_ref();
    let mut policies = passive.iter().flat_map(|passive| &passive.policies);
    let has_policy = policies.any(|policy| matches!(policy, PassivePolicy::MaxFails(_)));
    let is_counted = |status: &&u16| (500..=599).contains(*status) || **status == 429;
    let statuses: Vec<_> = cluster.retry.conditions.statuses.iter().filter(is_counted).collect();
    if cluster.retry.attempts == 1
        && (has_policy || cluster.compat == Compat::Nginx)
        && let [first, ..] = statuses.as_slice()
        && r.origins.is_set(&path.join("retry").join("conditions"))
    {
        let what = format!("http_{first} is listed and there is one attempt only");
        let place = path.join("retry").join("attempts");
        let label = match cluster.compat {
            Compat::Nginx => "nginx never counts it then",
            Compat::None | Compat::Yarp => "nginx never counts it then; here it is counted all the same",
        };
        note(r, &place, Diagnostic::warning(what).label(label).help("set `attempts: 2` or more"));
    }
    for destination in cluster.destinations.iter().filter(|d| d.max_fails.is_some() && !has_policy) {
        let place = path.join("destinations").join(destination.id.as_str());
        let what = format!("`max_fails` of destination `{}` has no effect", destination.id);
        let help = "list MaxFails among the `policies` of `health_check.passive`";
        note(r, &place, Diagnostic::warning(what).help(help));
    }
}

/// All attempts together should end before the client does.
fn time(r: &mut Reading<'_>, routes: &[&Route], cluster: &Cluster, path: &Path) {
    let retry = &cluster.retry;
    let Some(per_try) = retry.per_try_timeout else { return };
    let worst = cluster.timeouts.connect.saturating_add(per_try.saturating_mul(u32::from(retry.attempts)));
    let mut limits: Vec<(String, Duration)> = Vec::new();
    if let Some(client) = retry.client_timeout {
        let left = 100u32.saturating_sub(u32::from(retry.network_margin_percent));
        limits.push(("client_timeout less network_margin".to_owned(), client / 100 * left));
    }
    for route in routes {
        if let Some(timeout) = route.timeout {
            limits.push((format!("timeout of route `{}`", route.id), timeout));
        }
    }
    for (name, limit) in limits.into_iter().filter(|(_, limit)| worst > *limit) {
        let what = format!("connect + attempts x per_try_timeout is {}", timespan::format(worst));
        let label = format!("longer than the {name}, {}", timespan::format(limit));
        note(r, &path.join("retry"), Diagnostic::warning(what).label(label));
    }
}
