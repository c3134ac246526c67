//! Which fields go on to the next hop, and which end here.

use super::{Expectation, RequestRewrite, Trust};
use crate::fields::{Fate, Field, Kinds, Known};

/// Whether a request's field goes on.
pub(super) fn goes_to_destination(field: &Field, rewrite: &RequestRewrite<'_>) -> bool {
    if field.fate == Fate::Nominated {
        return false;
    }
    match to_destination(field.known) {
        Passage::Always => true,
        Passage::Never => false,
        Passage::OfFirstAttempt => rewrite.attempt.is_none(),
        Passage::OfWholeTime => rewrite.time_left.is_none(),
        Passage::OfExpectation => rewrite.expectation == Expectation::Forward,
        Passage::OfTrusted => rewrite.trust == Trust::Trusted,
    }
}

/// The kinds of fields of a request that [`goes_to_destination`] stops.
pub(super) fn ending_before_destination(rewrite: &RequestRewrite<'_>) -> Kinds {
    const NEVER: Kinds = requests(Passage::Never);
    const ATTEMPT: Kinds = requests(Passage::OfFirstAttempt);
    const TIME: Kinds = requests(Passage::OfWholeTime);
    const EXPECTATION: Kinds = requests(Passage::OfExpectation);
    const TRUSTED: Kinds = requests(Passage::OfTrusted);
    let attempt = if rewrite.attempt.is_none() { Kinds::NONE } else { ATTEMPT };
    let time = if rewrite.time_left.is_none() { Kinds::NONE } else { TIME };
    let expectation = if rewrite.expectation == Expectation::Forward { Kinds::NONE } else { EXPECTATION };
    let trusted = if rewrite.trust == Trust::Trusted { Kinds::NONE } else { TRUSTED };
    NEVER.and(attempt).and(time).and(expectation).and(trusted)
}

/// Whether a response's field goes on.
pub(super) fn goes_to_client(field: &Field) -> bool {
    field.fate == Fate::ByName && to_client(field.known)
}

/// The kinds of fields of a response that [`goes_to_client`] stops, but for its length.
pub(super) const ENDING_BEFORE_CLIENT: Kinds = {
    let mut kinds = Kinds::NONE;
    let mut at = 0;
    while at < Known::ALL.len() {
        let known = Known::ALL[at];
        if !to_client(known) && !matches!(known, Known::ContentLength) {
            kinds = kinds.and(Kinds::of(known));
        }
        at += 1;
    }
    kinds
};

/// When fields of a kind go on to the destination.
#[derive(Clone, Copy)]
enum Passage {
    Always,
    Never,
    /// Where the mark is not said anew.
    OfFirstAttempt,
    /// Where what is left of it is not said anew.
    OfWholeTime,
    OfExpectation,
    /// From a trusted peer.
    OfTrusted,
}

const fn to_destination(known: Known) -> Passage {
    match known {
        Known::Other | Known::AltSvc | Known::RetryAfter | Known::Date => Passage::Always,
        Known::Attempt => Passage::OfFirstAttempt,
        Known::GrpcTimeout => Passage::OfWholeTime,
        Known::Expect => Passage::OfExpectation,
        Known::ForwardedProto | Known::ForwardedHost | Known::ForwardedPrefix => Passage::OfTrusted,
        Known::Host
        | Known::Connection
        | Known::ContentLength
        | Known::TransferEncoding
        | Known::Te
        | Known::Upgrade
        | Known::KeepAlive
        | Known::Hop
        | Known::Forwarded
        | Known::ForwardedFor => Passage::Never,
    }
}

const fn to_client(known: Known) -> bool {
    match known {
        Known::Other
        | Known::Host
        | Known::Expect
        | Known::Forwarded
        | Known::ForwardedFor
        | Known::ForwardedProto
        | Known::ForwardedHost
        | Known::ForwardedPrefix
        | Known::RetryAfter
        | Known::Attempt
        | Known::GrpcTimeout
        | Known::Date => true,
        Known::Connection
        | Known::ContentLength
        | Known::TransferEncoding
        | Known::Te
        | Known::Upgrade
        | Known::KeepAlive
        | Known::Hop
        | Known::AltSvc => false,
    }
}

/// The kinds of this passage, `Host` left out: where it stands is its own question.
const fn requests(passage: Passage) -> Kinds {
    let mut kinds = Kinds::NONE;
    let mut at = 0;
    while at < Known::ALL.len() {
        let known = Known::ALL[at];
        if to_destination(known) as u8 == passage as u8 && !matches!(known, Known::Host) {
            kinds = kinds.and(Kinds::of(known));
        }
        at += 1;
    }
    kinds
}
