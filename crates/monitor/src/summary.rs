//! One line for the journal on what a configuration changed.

use std::collections::BTreeMap;
use std::fmt::Display;

use model::address::Located;
use model::config::Config;
use model::destination::Destination;

/// For the first configuration.
pub(crate) fn first(config: &Config) -> String {
    let destinations: usize = config.clusters.iter().map(|cluster| cluster.destinations.len()).sum();
    format!("start: {} routes, {} clusters, {destinations} destinations", config.routes.len(), config.clusters.len())
}

/// For a reload.
pub(crate) fn change(before: &Config, after: &Config) -> String {
    let parts = [
        part("routes", &before.routes, &after.routes, |route| &route.id),
        part("clusters", &before.clusters, &after.clusters, |cluster| &cluster.id),
        part("listeners", &before.listeners, &after.listeners, |listener| &listener.id),
    ];
    let changed: Vec<String> = parts.into_iter().flatten().collect();
    if changed.is_empty() {
        return if before == after { "reload: nothing changed" } else { "reload: settings changed" }.to_owned();
    }
    format!("reload: {}", changed.join("; "))
}

/// For other addresses behind the same names; `None`: nothing changed.
pub(crate) fn addresses(before: &Config, after: &Config) -> Option<String> {
    let all = |config: &Config| -> BTreeMap<String, Destination> {
        let clusters = config.clusters.iter();
        let each = clusters.flat_map(|cluster| cluster.destinations.iter().map(move |one| (&cluster.id, one)));
        each.map(|(cluster, one)| (format!("{cluster}/{}", one.id), one.clone())).collect()
    };
    let (old, new) = (all(before), all(after));
    let names = |word: &str, names: Vec<String>| (!names.is_empty()).then(|| format!("{word} {}", shorten(names)));
    let added = new.keys().filter(|id| !old.contains_key(*id)).cloned().collect();
    let removed = old.keys().filter(|id| !new.contains_key(*id)).cloned().collect();
    let moved = new.iter().filter(|(id, one)| old.get(*id).is_some_and(|old| old.address != one.address));
    let moved = moved.map(|(id, one)| format!("{id} ({})", place(one))).collect();
    let weighed = || new.iter().any(|(id, one)| old.get(id).is_some_and(|old| old.weight != one.weight));
    let parts = [names("added", added), names("removed", removed), names("moved", moved)];
    let words: Vec<String> = parts.into_iter().flatten().collect();
    if words.is_empty() && !weighed() {
        return None;
    }
    Some(format!("names: {}", if words.is_empty() { "weights changed".to_owned() } else { words.join(", ") }))
}

fn place(destination: &Destination) -> String {
    match destination.address.located {
        Located::At(ip) => ip.to_string(),
        Located::Nowhere => "no address".to_owned(),
        Located::AsWritten => destination.address.host.clone(),
    }
}

fn part<T: PartialEq, K: Ord + Display>(
    what: &str,
    before: &[T],
    after: &[T],
    id: impl Fn(&T) -> &K,
) -> Option<String> {
    let old: BTreeMap<&K, &T> = before.iter().map(|item| (id(item), item)).collect();
    let new: BTreeMap<&K, &T> = after.iter().map(|item| (id(item), item)).collect();
    let names = |word: &str, names: Vec<String>| (!names.is_empty()).then(|| format!("{word} {}", shorten(names)));
    let added = new.keys().filter(|id| !old.contains_key(*id)).map(|id| id.to_string()).collect();
    let removed = old.keys().filter(|id| !new.contains_key(*id)).map(|id| id.to_string()).collect();
    let changed = new.iter().filter(|(id, item)| old.get(*id).is_some_and(|old| old != *item));
    let changed = changed.map(|(id, _)| id.to_string()).collect();
    let words: Vec<String> =
        [names("added", added), names("removed", removed), names("changed", changed)].into_iter().flatten().collect();
    (!words.is_empty()).then(|| format!("{what} {}", words.join(", ")))
}

fn shorten(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let list = names.join(" ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// So many names are written out.
const NAMED: usize = 8;
