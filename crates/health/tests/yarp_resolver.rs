//! YARP's destination resolver, row by row (V25, V26): what it makes of a name, and what is made of it here.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use health::membership::{Answer, Lifetimes, Membership, NameKey, expand};
use model::address::{Located, Url};
use model::cluster::Cluster;
use model::destination::Destination;
use model::time::Timestamp;
use model::upstream::Family;

use crate::world::{at, cluster, with};

const LIFETIMES: Lifetimes = Lifetimes { least: Duration::from_secs(5), most: Duration::from_secs(300) };

/// What becomes of one destination at `http://localhost/a` with probes at `http://localhost/h`.
struct Row {
    host: Option<&'static str>,
    found: &'static [&'static str],
    /// Id, address, probes, Host.
    yarp: &'static [[&'static str; 4]],
    ours: &'static [[&'static str; 4]],
}

/// Where one address is behind the name the id stays plain here: what is said of the destination (journal, RHI, metrics)
/// stays its own when the address changes. The text of the URLs stays, too, since TLS verifies the name; where they lead
/// to stands beside it.
const ROWS: [Row; 3] = [
    Row {
        host: None,
        found: &["127.0.0.1"],
        yarp: &[["d1[127.0.0.1]", "http://127.0.0.1/a", "http://127.0.0.1/h", "localhost"]],
        ours: &[["d1", "http://localhost/a at 127.0.0.1", "http://localhost/h at 127.0.0.1", "localhost"]],
    },
    Row {
        host: Some("app.test"),
        found: &["127.0.0.1"],
        yarp: &[["d1[127.0.0.1]", "http://127.0.0.1/a", "http://127.0.0.1/h", "app.test"]],
        ours: &[["d1", "http://localhost/a at 127.0.0.1", "http://localhost/h at 127.0.0.1", "app.test"]],
    },
    Row {
        host: None,
        found: &["127.0.0.1", "::1"],
        yarp: &[
            ["d1[127.0.0.1]", "http://127.0.0.1/a", "http://127.0.0.1/h", "localhost"],
            ["d1[::1]", "http://[::1]/a", "http://[::1]/h", "localhost"],
        ],
        ours: &[
            ["d1[127.0.0.1]", "http://localhost/a at 127.0.0.1", "http://localhost/h at 127.0.0.1", "localhost"],
            ["d1[::1]", "http://localhost/a at ::1", "http://localhost/h at ::1", "localhost"],
        ],
    },
];

fn key(name: &str) -> NameKey {
    NameKey { name: name.into(), family: Family::Both }
}

fn written(id: &str, name: &str, host: Option<&str>) -> Cluster {
    let url = |path: &str| Url::parse(&format!("http://{name}{path}")).unwrap();
    with(cluster("c", &[id]), |cluster| {
        cluster.family = Family::Both;
        cluster.destinations[0].address = url("/a");
        cluster.destinations[0].health = Some(url("/h"));
        cluster.destinations[0].host = host.map(str::to_owned);
    })
}

fn membership(names: &[&str]) -> Membership {
    let mut membership = Membership::new(7, LIFETIMES);
    membership.configured(Timestamp::ZERO, &names.iter().map(|name| key(name)).collect(), LIFETIMES);
    membership
}

/// Lets every lookup that is due come to what `answer` says of its name.
fn answer(membership: &mut Membership, now: Timestamp, answer: impl Fn(&NameKey) -> Answer) {
    while let Some(key) = membership.poll_lookup(now) {
        let said = answer(&key);
        membership.answered(now, &key, said);
    }
}

fn found(addresses: &[&str]) -> Answer {
    let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    Answer::Found { addresses, ttl: Duration::from_secs(300) }
}

fn text(url: &Url) -> String {
    let place = match url.located {
        Located::At(ip) => format!(" at {ip}"),
        Located::Nowhere => " nowhere".to_owned(),
        Located::AsWritten => String::new(),
    };
    format!("{}://{}{}{place}", url.scheme.as_str(), url.authority(), url.path)
}

fn shown(one: &Destination) -> [String; 4] {
    let host = one.host.clone().unwrap_or_else(|| one.address.authority());
    [one.id.to_string(), text(&one.address), text(one.health.as_ref().unwrap()), host]
}

#[test]
fn v25_a_name_becomes_a_destination_for_each_address_with_the_host_of_the_name() {
    for row in &ROWS {
        let mut membership = membership(&["localhost"]);
        answer(&mut membership, at(60.0), |_| found(row.found));
        let expanded = expand(&written("d1", "localhost", row.host), &membership).unwrap();
        let ours: Vec<_> = expanded.destinations.iter().map(shown).collect();
        assert_eq!(ours, row.ours, "YARP: {:?}", row.yarp);
        let hosts = |all: &[[&str; 4]]| all.iter().map(|[.., host]| (*host).to_owned()).collect::<Vec<_>>();
        assert_eq!(hosts(row.ours), hosts(row.yarp), "the Host is the same in both");
    }
}

/// YARP reports that the load has failed and keeps the old configuration. Here one name that fails holds no change up:
/// its destination is nowhere until it is found, and those that were known stay where they are.
#[test]
fn v26_a_resolver_that_fails_holds_no_reload_up() {
    let mut membership = membership(&["old.test"]);
    answer(&mut membership, at(60.0), |_| found(&["127.0.0.1"]));
    let names = BTreeSet::from([key("old.test"), key("new.test")]);
    membership.configured(at(60.0), &names, LIFETIMES);
    answer(&mut membership, at(600.0), |_| Answer::Failed);
    assert!(membership.is_settled(), "a failure is an answer: nobody waits for more");
    let place = |id: &str, name: &str| {
        let expanded = expand(&written(id, name, None), &membership).unwrap();
        expanded.destinations.iter().map(|one| text(&one.address)).collect::<Vec<_>>()
    };
    assert_eq!(place("d1", "old.test"), ["http://old.test/a at 127.0.0.1"]);
    assert_eq!(place("d2", "new.test"), ["http://new.test/a nowhere"]);
}
