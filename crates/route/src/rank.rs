//! Which of two routes that both match a request wins.
//!
//! In this order: the lower `order`; the more specific path (segment by segment: literal, parameter, end of the pattern,
//! optional, catch-all; no path counts as a catch-all at the root); a route that names methods; the more specific host (exact, the
//! longer wildcard, none; one with a port before the same without); more header rules; more query rules; the earlier in
//! the file. The last keeps look-ups the same from start to start; two routes that differ in nothing else are worth a
//! warning where configurations are checked. Source: the routing documentation of YARP and ASP.NET Core, where a tie is
//! an error at request time.

use std::cmp::Ordering;

use model::pattern::{PathPattern, Segment};
use model::route::{HostKind, HostPattern, Route};

/// Orders two pairs of a route and one of its hosts; less wins. Positions are the routes' places in the file.
pub(crate) fn compare(
    (a, a_host, a_at): (&Route, Option<&HostPattern>, usize),
    (b, b_host, b_at): (&Route, Option<&HostPattern>, usize),
) -> Ordering {
    let (m, n) = (&a.matcher, &b.matcher);
    (a.order.cmp(&b.order))
        .then_with(|| compare_paths(m.path.as_ref(), n.path.as_ref()))
        .then_with(|| m.methods.is_empty().cmp(&n.methods.is_empty()))
        .then_with(|| host_key(a_host).cmp(&host_key(b_host)))
        .then_with(|| n.headers.len().cmp(&m.headers.len()))
        .then_with(|| n.query.len().cmp(&m.query.len()))
        .then_with(|| a_at.cmp(&b_at))
}

fn compare_paths(a: Option<&PathPattern>, b: Option<&PathPattern>) -> Ordering {
    let depth = |path: Option<&PathPattern>| path.map_or(0, |p| p.segments.len());
    // One step past the longer one, so that the ends are compared as well.
    (0..=depth(a).max(depth(b)))
        .map(|at| segment_key(a, at).cmp(&segment_key(b, at)))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn segment_key(path: Option<&PathPattern>, at: usize) -> u8 {
    let Some(path) = path else {
        return if at == 0 { CATCH_ALL } else { END };
    };
    match path.segments.get(at) {
        Some(Segment::Literal(_)) => 0,
        Some(Segment::Parameter(_)) => 1,
        None => END,
        Some(Segment::Optional(_)) => 3,
        Some(Segment::CatchAll(_)) => CATCH_ALL,
    }
}

/// Less is more specific.
fn host_key(host: Option<&HostPattern>) -> (u8, usize, bool) {
    match host {
        Some(host) => match host.kind {
            HostKind::Exact => (0, 0, host.port.is_none()),
            HostKind::Wildcard => (1, usize::MAX - host.name.len(), host.port.is_none()),
        },
        None => (2, 0, true),
    }
}

const END: u8 = 2;
const CATCH_ALL: u8 = 4;
