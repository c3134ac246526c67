//! `lazaret journal`: what happened, one line per event; with `--follow` as it happens.

use control::document::event::{EventDocument, EventPage, EventWord};
use http_body_util::BodyExt;

use crate::cli::exit::Exit;

use super::http::{Client, encode};
use super::{Common, Failure, FormatWord, conclude, fetch, words, write_out};

/// What `journal` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Only events after this revision [default: the last 100]
    #[arg(long, value_name = "REVISION")]
    after: Option<u64>,
    /// Goes on until interrupted.
    #[arg(short, long)]
    follow: bool,
    /// Only events of this cluster.
    #[arg(long, value_name = "ID")]
    cluster: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Events asked for at once.
const PAGE: usize = 1000;
/// Longest line of the stream; longer ones mean that no event stream is at the other end.
const LINE_BYTES: usize = 1024 * 1024;

/// Prints events.
pub(in crate::cli) fn run(arguments: &Arguments) -> Exit {
    conclude(async || {
        let client = Client::new(arguments.common.target.for_reading()?);
        let Some(after) = past(&client, arguments).await? else { return Ok(Exit::Done) };
        if arguments.follow {
            follow(&client, arguments, after).await?;
        }
        Ok(Exit::Done)
    })
}

/// Prints what is there already. The revision to go on from; `None`: standard output is closed.
async fn past(client: &Client, arguments: &Arguments) -> Result<Option<u64>, Failure> {
    let cluster = arguments.cluster.as_deref().map(|cluster| format!("&cluster={}", encode(cluster)));
    let cluster = cluster.unwrap_or_default();
    let mut after = arguments.after;
    loop {
        let position =
            after.map(|after| format!("?after={after}&limit={PAGE}")).unwrap_or_else(|| "?limit=100".to_owned());
        let page: EventPage = fetch(client, &format!("/api/journal{position}{cluster}")).await?;
        if page.lost {
            let note = "lazaret: events before these are lost\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
        }
        if !page.events.iter().all(|event| write_out(&line(arguments.common.format, event))) {
            return Ok(None);
        }
        // A full page means that there may be more; a lost reader was given the last ones.
        match page.events.last() {
            Some(last) if after.is_some() && !page.lost && page.events.len() == PAGE => after = Some(last.revision),
            Some(_) | None => return Ok(Some(page.revision)),
        }
    }
}

async fn follow(client: &Client, arguments: &Arguments, after: u64) -> Result<(), Failure> {
    let response = client.open(&format!("/api/events?after={after}")).await?;
    if response.status() != 200 {
        return Err(Failure::failed(format!("the control API answered {}", response.status().as_u16())));
    }
    let mut body = response.into_body();
    let mut stream = EventStream::default();
    loop {
        let frame = match body.frame().await {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                return Err(Failure::unreachable(format!("the event stream of {client} broke: {error}")));
            }
            None => return Err(Failure::unreachable(format!("the event stream of {client} ended"))),
        };
        let Ok(bytes) = frame.into_data() else { continue };
        for event in stream.take(&bytes)? {
            if is_wanted(&event, arguments.cluster.as_deref()) && !write_out(&line(arguments.common.format, &event)) {
                return Ok(());
            }
        }
    }
}

/// Events that are no destination's are shown only when no cluster is asked for; `lost` always is.
fn is_wanted(event: &EventDocument, cluster: Option<&str>) -> bool {
    match (cluster, &event.subject) {
        (None, _) => true,
        (Some(cluster), Some(subject)) => subject.cluster == cluster,
        (Some(_), None) => event.event == EventWord::Lost,
    }
}

/// One event in one line.
fn line(format: FormatWord, event: &EventDocument) -> String {
    match format {
        FormatWord::Text => format!("{:>6}  {}  {}\n", event.revision, event.at, words::event(event)),
        FormatWord::Json => serde_json::to_string(event).unwrap_or_default() + "\n",
    }
}

/// Takes an event stream apart. Our server writes each event's data as one line.
#[derive(Default)]
struct EventStream {
    partial: Vec<u8>,
}

impl EventStream {
    /// The events that are complete with these bytes.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<EventDocument>, Failure> {
        self.partial.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            let Some(data) = line.strip_prefix(b"data:") else { continue };
            let event = serde_json::from_slice(data);
            events.push(event.map_err(|error| Failure::failed(format!("an event is unreadable: {error}")))?);
        }
        if self.partial.len() > LINE_BYTES {
            return Err(Failure::failed("the answer is no event stream"));
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn event(value: serde_json::Value) -> EventDocument {
        serde_json::from_value(value).unwrap()
    }

    fn shown(value: serde_json::Value) -> String {
        line(FormatWord::Text, &event(value))
    }

    #[test]
    fn each_kind_of_event_has_its_words() {
        let at = "2026-01-02T03:04:05.000Z";
        let transition = json!({"event": "transition", "revision": 7, "at": at, "cluster": "api", "destination": "a",
            "check": "passive", "from": "unhealthy", "to": "unknown", "cause": "reactivation", "evidence": {}});
        let expected =
            "     7  2026-01-02T03:04:05.000Z  api/a passive unhealthy -> unknown: the reactivation period is over\n";
        assert_eq!(shown(transition), expected);
        let availability = json!({"event": "availability", "revision": 8, "at": at, "cluster": "api",
            "destination": "a", "available": false, "because": "unhealthy"});
        let expected = "     8  2026-01-02T03:04:05.000Z  api/a is not in use: a check found it unhealthy\n";
        assert_eq!(shown(availability), expected);
        let config =
            json!({"event": "config", "revision": 9, "at": at, "applied": false, "summary": "no such cluster"});
        let expected =
            "     9  2026-01-02T03:04:05.000Z  configuration refused, the one before stays: no such cluster\n";
        assert_eq!(shown(config), expected);
        let draining = json!({"event": "draining", "revision": 10, "at": at});
        assert_eq!(shown(draining), "    10  2026-01-02T03:04:05.000Z  a planned stop began\n");
    }

    #[test]
    fn an_event_of_a_weight_does_not_claim_that_it_is_in_use() {
        for (share, because, by, words) in [
            (0.1, "suspect", json!("Burst"), "when in use, 10 % of its weight: suspect by Burst"),
            (0.5, "ramp", json!(null), "when in use, 50 % of its weight: back, and taking over step by step"),
            (
                1.0,
                "whole",
                json!(null),
                "when in use, at most 100 % of its weight: nothing but its gate, where it has one, \
             holds it back",
            ),
        ] {
            let text = shown(json!({"event": "share", "revision": 7, "at": "x", "cluster": "api", "destination": "a",
                "share": share, "share_because": because, "by": by}));
            assert_eq!(text, format!("     7  x  api/a {words}\n"));
        }
    }

    #[test]
    fn a_destination_that_is_found_good_is_blamed_on_no_policy() {
        let found = |from: &str, to: &str| {
            shown(json!({"event": "transition", "revision": 7, "at": "x", "cluster": "api", "destination": "a",
                "check": "passive", "from": from, "to": to, "cause": "traffic", "policy": "Latency", "evidence": {}}))
        };
        assert_eq!(found("unknown", "healthy"), "     7  x  api/a passive unknown -> healthy: traffic\n");
        assert_eq!(
            found("healthy", "unhealthy"),
            "     7  x  api/a passive healthy -> unhealthy: Latency on traffic\n"
        );
    }

    #[test]
    fn a_stream_is_taken_apart_wherever_it_is_cut() {
        let text = b"id: 5eed-1\nevent: draining\ndata: {\"event\":\"draining\",\"revision\":1,\"at\":\"x\"}\n\n: still here\n\n";
        for cut in 0..text.len() {
            let mut stream = EventStream::default();
            let (before, after) = text.split_at(cut);
            let mut events = stream.take(before).unwrap();
            events.extend(stream.take(after).unwrap());
            assert_eq!(events.len(), 1, "cut at {cut}");
        }
        assert!(EventStream::default().take(b"data: nonsense\n").is_err());
        assert!(EventStream::default().take(&vec![b'x'; LINE_BYTES + 1]).is_err());
    }

    #[test]
    fn a_cluster_filter_keeps_its_own_events_and_what_is_lost() {
        let draining = event(json!({"event": "draining", "revision": 1, "at": "x"}));
        let lost = event(json!({"event": "lost", "revision": 1, "at": "x"}));
        let own =
            event(json!({"event": "availability", "revision": 1, "at": "x", "cluster": "api", "destination": "a"}));
        assert!(is_wanted(&draining, None) && !is_wanted(&draining, Some("api")));
        assert!(is_wanted(&lost, Some("api")) && is_wanted(&own, Some("api")) && !is_wanted(&own, Some("web")));
    }
}
