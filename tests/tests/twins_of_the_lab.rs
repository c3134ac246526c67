//! The lab predicts what real proxies do: the short form of `cargo xtask twins`, with the real lazaret and the real nginx.

use anyhow::{Context as _, ensure};
use end_to_end::twin::{hold, twins};
use twins::contestant::Contestant;

#[test]
fn the_lab_predicts_what_lazaret_and_nginx_do_about_a_destination_that_fails_and_heals() {
    let name = "the_lab_predicts_what_lazaret_and_nginx_do_about_a_destination_that_fails_and_heals";
    if let Some(what) = end_to_end::nginx::lacking() {
        testkit::skip(name, what);
        return;
    }
    let text = "version: 1\ntitle: short\nduration: 22s\nwarm_up: 1s\nchecks: {interval: 1s, timeout: 1s}\n\
                destinations: [{ids: [a, b, c], service: {p50: 40ms, p90: 100ms, p99: 300ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: poisson, rate: 80/s, methods: {GET: 0.9, POST: 0.1}}]\n\
                faults: [{kind: errors, on: [b], at: 5s, lasts: 4s, share: 1, status: 503, probes: fail}]\n";
    let contestants = Contestant::named(&["lazaret".to_owned(), "nginx".to_owned()]).expect("both are there");
    let run = || twins(text, &|name| panic!("there is no log {name}"), &contestants, 20);
    hold(name, run, |both| {
        for (contestant, twin) in contestants.iter().zip(both) {
            ensure!(twin.broken().is_empty(), "{}: {:?}", contestant.name, twin.broken());
            let absence = twin.measured.absences.first().context("b has a fault")?;
            ensure!(absence.out.is_some() && absence.back.is_some(), "{}: {absence:?}", contestant.name);
        }
        Ok(())
    });
}

#[test]
fn the_lab_predicts_when_lazaret_gives_up_a_process_that_dies_and_uses_it_again() {
    let name = "the_lab_predicts_when_lazaret_gives_up_a_process_that_dies_and_uses_it_again";
    if twins::refusals::socket().is_err() {
        testkit::skip(name, "CAP_NET_RAW");
        return;
    }
    let text = "version: 1\ntitle: short\nduration: 16s\nwarm_up: 1s\nchecks: {interval: 1s, timeout: 1s}\n\
                destinations: [{ids: [a, b, c], service: {p50: 40ms, p90: 100ms, p99: 300ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: poisson, rate: 80/s, methods: {GET: 0.9, POST: 0.1}}]\n\
                faults: [{kind: crash, on: [b], at: 5s, lasts: 5s}]\n";
    let contestants = Contestant::named(&["lazaret".to_owned()]).expect("it is there");
    let run = || twins(text, &|name| panic!("there is no log {name}"), &contestants, 20);
    hold(name, run, |both| {
        let twin = both.first().context("one was twinned")?;
        ensure!(twin.broken().is_empty(), "{:?}", twin.broken());
        let absence = twin.measured.absences.first().context("b has a fault")?;
        ensure!(absence.out.is_some() && absence.back.is_some(), "{absence:?}");
        // Nothing of this comes to anybody who listens.
        ensure!(absence.met > 0.0, "{absence:?}");
        // Its first failures give it up: until a probe did, there would be fifty.
        let predicted = twin.predicted.absences.first().context("b has a fault")?;
        ensure!((predicted.met - absence.met).abs() <= 10.0, "{predicted:?} {absence:?}");
        Ok(())
    });
}
