//! Which requests are read whole before a destination is chosen.

use model::request::{BodyFacts, RequestFacts};
use model::route::Buffering;

use crate::grpc;

/// Whether this one is: its length is known and within the bound. Calls whose messages are to arrive one by one (gRPC)
/// and requests for another protocol are not, as little as those without a body.
pub(crate) fn gathers(buffering: Buffering, facts: &RequestFacts<'_>) -> bool {
    let Buffering::On { request: most, .. } = buffering else { return false };
    let is_short = match facts.body {
        BodyFacts::Length(length) => (1..=most).contains(&length),
        BodyFacts::None | BodyFacts::Unknown => false,
    };
    is_short && !facts.is_upgrade && !grpc::is_call(facts.fields)
}
