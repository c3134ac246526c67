//! What may be secret is in no recording, and a change of it still is a change.

use std::sync::Arc;

use health::{Input, Registry};
use model::address::Url;

use crate::tape::{Tape, header, limits};
use crate::world::*;

#[test]
fn no_secret_of_a_configuration_is_in_the_file() {
    let mut tape = Tape::new(limits(60, 1_000_000));
    let made = |secret: &str| {
        let check = with(probed(), |check| {
            check.request.headers = vec![("authorization".to_owned(), format!("Bearer {secret}-header"))];
            check.request.query = Some(format!("token={secret}-query"));
            check.request.expect_body = Some(format!("{secret}-body"));
        });
        let cluster = with(active("app", &["a", "b"], check), |cluster| {
            cluster.metadata.insert("note".to_owned(), format!("{secret}-metadata"));
            let address = format!("http://a.test/?key={secret}-address");
            cluster.destinations[0].address = Url::parse(&address).unwrap();
            cluster.destinations[0].health = Url::parse(&address).ok();
        });
        Input::Configured { clusters: vec![Arc::new(cluster)], summary: "any".to_owned() }
    };
    tape.take([(at(1.0), made("opensesame"))]);
    let saved = Box::new(tape.core.core().save());
    tape.take([(at(2.0), Input::HealthRestored(saved))]);
    tape.take([(at(3.0), made("swordfish"))]);
    tape.take([(at(4.0), made("swordfish"))]);
    let file = tape.core.save(&header()).unwrap();
    for secret in ["opensesame", "swordfish"] {
        assert!(!file.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }
    let rerun = tape.saved().rerun(Registry::default()).unwrap();
    assert_eq!((rerun.difference, rerun.events), (None, tape.events.clone()));
}
