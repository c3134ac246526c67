//! The lab predicts what real proxies do: the short form of `cargo xtask twins`, with the real lazaret and the real nginx.

use end_to_end::twin::twins;
use twins::contestant::Contestant;
use twins::promise::promises;

#[test]
fn the_lab_predicts_what_lazaret_and_nginx_do_about_a_destination_that_fails_and_heals() {
    if let Some(what) = end_to_end::nginx::lacking() {
        testkit::skip("the_lab_predicts_what_lazaret_and_nginx_do_about_a_destination_that_fails_and_heals", what);
        return;
    }
    let text = "version: 1\ntitle: short\nduration: 22s\nwarm_up: 1s\nchecks: {interval: 1s, timeout: 1s}\n\
                destinations: [{ids: [a, b, c], service: {p50: 40ms, p90: 100ms, p99: 300ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: poisson, rate: 80/s, methods: {GET: 0.9, POST: 0.1}}]\n\
                faults: [{kind: errors, on: [b], at: 5s, lasts: 4s, share: 1, status: 503, probes: fail}]\n";
    let contestants = Contestant::named(&["lazaret".to_owned(), "nginx".to_owned()]).expect("both are there");
    let both = twins(text, &|name| panic!("there is no log {name}"), &contestants, 5);
    for (contestant, twin) in contestants.iter().zip(&both) {
        let broken: Vec<_> = promises(&twin.predicted, &twin.measured)
            .into_iter()
            .filter(|promise| !promise.is_kept())
            .map(|promise| format!("{promise:?}"))
            .collect();
        assert!(broken.is_empty(), "{}: {broken:#?}", contestant.name);
        let absence = twin.measured.absences.first().expect("b has a fault");
        assert!(absence.out.is_some() && absence.back.is_some(), "{}: {absence:?}", contestant.name);
    }
}
