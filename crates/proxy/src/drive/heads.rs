//! The two heads of an attempt: what a destination gets, and what the machine hears of its answer.

use exchange::snapshot::{ClusterView, DestinationView};
use exchange::{Input, Replay};
use http1::changed::Ends;
use http1::forward::{Expectation, RequestRewrite};
use http1::request::Request;
use http1::response::Response;

use super::{Asker, Walked};
use crate::buffering;
use crate::changes;
use crate::client_address;
use crate::upload::Wish;

impl Walked<'_> {
    /// Writes the request's head into `out`, as this destination gets it. `ends` is asked only where a transform may tell of
    /// them.
    #[inline]
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        request: &Request<'_>,
        (cluster, destination): (&ClusterView, &DestinationView),
        asker: Asker<'_>,
        expectation: Wish,
        ends: impl FnOnce() -> Ends,
    ) {
        let host = changes::host(&self.exchange, &self.snapshot, cluster, destination, request);
        let changes = changes::of_request(&self.exchange, &self.snapshot, self.id.as_deref(), ends);
        let rewrite = RequestRewrite {
            prefix: &destination.address.path,
            host,
            peer: asker.peer,
            client: asker.client,
            proto: asker.scheme.as_str(),
            trust: client_address::trust(&asker.view.config, asker.peer),
            expectation: match expectation {
                Wish::Pending => Expectation::Forward,
                Wish::None => Expectation::Drop,
            },
            attempt: self.exchange.mark(),
            time_left: self.exchange.time_left(self.now),
            changes: changes.as_ref(),
        };
        http1::forward::request(out, request, &rewrite);
    }
}

/// What the machine hears of a destination's answer.
#[inline]
pub(crate) fn response_head(response: &Response<'_>, body_replayable: Replay) -> Input {
    Input::ResponseHead {
        status: response.status(),
        retry_after: response.has_retry_after(),
        body_replayable,
        content: buffering::content(response),
    }
}
