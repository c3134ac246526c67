//! Which requests are read whole before a destination is chosen.

use model::request::{BodyFacts, RequestFacts};
use model::route::Buffering;

/// Whether this one is: its length is known and within the bound. Calls whose messages are to arrive one by one (gRPC)
/// and requests for another protocol are not, as little as those without a body.
pub(crate) fn gathers(buffering: Buffering, facts: &RequestFacts<'_>) -> bool {
    let Buffering::On { request: most, .. } = buffering else { return false };
    let is_short = match facts.body {
        BodyFacts::Length(length) => (1..=most).contains(&length),
        BodyFacts::None | BodyFacts::Unknown => false,
    };
    is_short && !facts.is_upgrade && !is_grpc(facts)
}

fn is_grpc(facts: &RequestFacts<'_>) -> bool {
    let mut found = false;
    facts.fields.each("content-type", &mut |value| {
        found |= value.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC));
    });
    found
}

const GRPC: &[u8] = b"application/grpc";
