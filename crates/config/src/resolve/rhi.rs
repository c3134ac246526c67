//! rhi.yaml: which VIPs, and what each of them stands for.

use std::net::IpAddr;
use std::time::Duration;

use model::address::{Scheme, Url};
use model::vip::{Condition, FailurePolicy, OnExit, RhiConfig, Unreachable, UpstreamRef, Vip};

use crate::defaults::RHI_STATUS_SOCKET;
use crate::raw::Node;
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading, Section};
use crate::report::{Diagnostic, suggest};

/// Resolves the whole file; `None` only with an error noted.
pub fn resolve(r: &mut Reading<'_>, root: &Node) -> Option<RhiConfig> {
    let mut s = Section::open(r, root, Path::root())?;
    let poll_interval = s.take(r, "apisix_poll_interval").and_then(|f| f.duration(r)).unwrap_or(POLL_INTERVAL);
    let control_url = match s.take(r, "apisix_control_url") {
        Some(field) => control_url(r, &field),
        None => Some(CONTROL_URL.to_owned()),
    };
    let timeout = s.take(r, "apisix_timeout").and_then(|f| f.duration(r)).unwrap_or(TIMEOUT);
    let interface = match s.take(r, "interface") {
        Some(field) => interface(r, &field),
        None => required(r, root, "interface", "the interface whose addresses the routing daemon announces"),
    };
    let main_log = s.take(r, "main_log").and_then(|f| f.file(r));
    let error_log = s.take(r, "error_log").and_then(|f| f.file(r));
    let failure_policy = s.take(r, "failure_policy").and_then(|f| f.section(r));
    let failure_policy = failure_policy.map(|section| failure(r, section)).unwrap_or(FAILURE_POLICY);
    let healthy_states = s.take(r, "healthy_states").map(|f| healthy_states(r, &f));
    let exits = [("withdraw", OnExit::Withdraw), ("keep", OnExit::Keep)];
    let on_exit = s.take(r, "on_exit").and_then(|f| f.word(r, &exits)).unwrap_or_default();
    let status_socket = s.take(r, "status_socket").and_then(|f| f.file(r));
    let vips = match s.take(r, "vips") {
        Some(field) => vips(r, &field),
        None => required(r, root, "vips", "the addresses to announce").unwrap_or_default(),
    };
    s.not_yet(
        r,
        &[
            ("control_socket", "the polite drain"),
            ("rise", "rise and fall"),
            ("fall", "rise and fall"),
            ("hold", "holding decisions"),
            ("damping", "flap damping"),
            ("guard", "guards"),
            ("lease", "kernel leases"),
            ("drain", "the polite drain"),
            ("degrade", "degraded announcements"),
            ("priming", "priming"),
            ("push", "pushed health"),
            ("when_sick", "the last resort"),
            ("self_check", "the self-check of listeners"),
            ("bird_socket", "proof of announcement"),
            ("min_healthy", "minimum healthy shares"),
        ],
    );
    s.finish(r);
    Some(RhiConfig {
        poll_interval,
        control_url: control_url?,
        timeout,
        interface: interface?,
        main_log,
        error_log,
        failure_policy,
        healthy_states: healthy_states.unwrap_or_else(|| COUNTED.iter().map(|&state| state.to_owned()).collect()),
        on_exit,
        status_socket: status_socket.unwrap_or_else(|| RHI_STATUS_SOCKET.into()),
        vips,
    })
}

fn required<T>(r: &mut Reading<'_>, root: &Node, key: &str, what: &str) -> Option<T> {
    r.error(root.span, format!("`{key}` is missing"), format!("expected {what}"));
    None
}

/// The base URL without its closing slash.
fn control_url(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let url: Url = field.url(r)?;
    if url.scheme == Scheme::Https {
        field.refuse(r, "https is not supported towards the control API", "expected http://");
        return None;
    }
    if url.query.is_some() {
        field.refuse(
            r,
            "the control API's address has a query",
            "expected a base address such as http://127.0.0.1:9090",
        );
        return None;
    }
    Some(url.to_string().trim_end_matches('/').to_owned())
}

/// A name the kernel takes for an interface.
fn interface(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(r)?;
    let is_name = text.len() <= 15 && text != "." && text != ".." && !text.contains(['/', ':']);
    if !is_name || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        field.refuse(r, format!("`{text}` is no interface name"), "expected 15 bytes at most, without blank, / and :");
        return None;
    }
    Some(text.to_owned())
}

fn failure(r: &mut Reading<'_>, mut s: Section<'_>) -> FailurePolicy {
    let actions = [("withdraw", Unreachable::Withdraw), ("announce", Unreachable::Announce)];
    let action = s.take(r, "control_api_unreachable").and_then(|f| f.word(r, &actions));
    let polls = s.take(r, "max_failed_polls").and_then(|f| f.whole_u32(r, 1));
    s.finish(r);
    FailurePolicy {
        control_api_unreachable: action.unwrap_or(FAILURE_POLICY.control_api_unreachable),
        max_failed_polls: polls.unwrap_or(FAILURE_POLICY.max_failed_polls),
    }
}

fn healthy_states(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<String> {
    let words = STATES.map(|state| (state, state));
    let items = field.list(r);
    if items.is_empty() {
        field.refuse(r, "no state counts as healthy", "expected one at least");
    }
    items.iter().filter_map(|item| item.word(r, &words)).map(str::to_owned).collect()
}

fn vips(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<Vip> {
    let mut vips: Vec<(Vip, Field<'_>)> = Vec::new();
    let items = field.list(r);
    if items.is_empty() {
        field.refuse(r, "there is no VIP", "expected one at least");
    }
    for item in items {
        let Some(mut s) = item.section(r) else { continue };
        let address = match s.take(r, "address") {
            Some(field) => address(r, &field).map(|ip| (ip, field)),
            None => {
                r.error(item.node.span, "a VIP has no address", "expected `address`");
                None
            }
        };
        let description = s.take(r, "description").and_then(|f| f.any_text(r)).unwrap_or("").to_owned();
        let upstreams = match s.take(r, "upstreams") {
            Some(field) => upstreams(r, &field),
            None => {
                r.error(item.node.span, "a VIP has no upstreams", "expected one at least");
                Vec::new()
            }
        };
        let conditions = [("all", Condition::All), ("any", Condition::Any)];
        let condition = s.take(r, "condition").and_then(|f| f.word(r, &conditions)).unwrap_or_default();
        s.not_yet(
            r,
            &[
                ("rise", "rise and fall"),
                ("fall", "rise and fall"),
                ("hold", "holding decisions"),
                ("damping", "flap damping"),
                ("drain", "the polite drain"),
                ("degrade", "degraded announcements"),
                ("min_healthy", "minimum healthy shares"),
                ("self_check", "the self-check of listeners"),
                ("when_sick", "the last resort"),
            ],
        );
        s.finish(r);
        let Some((address, place)) = address else { continue };
        if let Some((_, first)) = vips.iter().find(|(vip, _)| vip.address == address) {
            let diagnostic = Diagnostic::error(format!("the VIP {address} stands here twice"))
                .label("the second one")
                .related(r.source, first.node.span, "the first one");
            r.note(place.node.span, diagnostic);
            continue;
        }
        vips.push((Vip { address, description, upstreams, condition }, place));
    }
    vips.into_iter().map(|(vip, _)| vip).collect()
}

/// An address; a prefix length is taken only when it says what is true anyway.
fn address(r: &mut Reading<'_>, field: &Field<'_>) -> Option<IpAddr> {
    let text = field.text(r)?;
    let (ip, prefix) = text.split_once('/').map_or((text, None), |(ip, prefix)| (ip, Some(prefix)));
    let Ok(ip) = ip.parse::<IpAddr>() else {
        field.refuse(r, format!("`{text}` is no address"), "expected an IPv4 or IPv6 address");
        return None;
    };
    let host = if ip.is_ipv4() { "32" } else { "128" };
    if prefix.is_some_and(|prefix| prefix != host) {
        field.refuse(r, format!("`{text}` is a network"), format!("expected the address alone: a VIP is a /{host}"));
        return None;
    }
    if ip.is_unspecified() || ip.is_multicast() || matches!(ip, IpAddr::V4(v4) if v4.is_broadcast()) {
        field.refuse(r, format!("`{text}` cannot stand on an interface"), "expected a unicast address");
        return None;
    }
    Some(ip)
}

fn upstreams(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<UpstreamRef> {
    let mut found: Vec<UpstreamRef> = Vec::new();
    let items = field.list(r);
    if items.is_empty() {
        field.refuse(r, "a VIP has no upstreams", "expected one at least");
    }
    for item in items {
        let Some(upstream) = upstream(r, &item) else { continue };
        if found.contains(&upstream) {
            r.warn(item.node.span, format!("`{upstream}` stands here twice"));
        } else {
            found.push(upstream);
        }
    }
    found
}

/// `/apisix/upstreams/api`, `/upstreams/api` or `api`.
fn upstream(r: &mut Reading<'_>, field: &Field<'_>) -> Option<UpstreamRef> {
    let text = field.text(r)?;
    if !text.contains('/') && !text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some(UpstreamRef { kind: "upstreams".to_owned(), id: text.to_owned() });
    }
    let rest = text.strip_prefix('/').unwrap_or(text);
    let rest = rest.strip_prefix("apisix/").unwrap_or(rest);
    let (kind, id) = rest.split_once('/').unwrap_or((rest, ""));
    let is_id = !id.is_empty() && !id.chars().any(|c| c.is_whitespace() || c.is_control());
    if KINDS.contains(&kind) && is_id {
        return Some(UpstreamRef { kind: kind.to_owned(), id: id.to_owned() });
    }
    let help =
        suggest::nearest(kind, KINDS).filter(|_| is_id).map(|kind| format!("did you mean `/apisix/{kind}/{id}`?"));
    let diagnostic = Diagnostic::error(format!("`{text}` names no upstream"))
        .label("expected /apisix/upstreams/<id>, or the id alone")
        .maybe_help(help);
    r.note(field.node.span, diagnostic);
    None
}

const POLL_INTERVAL: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(5);
const CONTROL_URL: &str = "http://127.0.0.1:9090";
const FAILURE_POLICY: FailurePolicy =
    FailurePolicy { control_api_unreachable: Unreachable::Withdraw, max_failed_polls: 3 };
const STATES: [&str; 5] = ["healthy", "mostly_healthy", "mostly_unhealthy", "unhealthy", "unknown"];
const COUNTED: [&str; 2] = ["healthy", "mostly_healthy"];
const KINDS: [&str; 4] = ["upstreams", "routes", "services", "stream_routes"];
