//! A server that asks for less gets less where the policy Overload runs, and its clients see fewer refusals.

use lab::meter::{Figures, Film};
use lab::policy::Policy;

use crate::support::{read, three};

/// The policy alone, with the trials and guards of the default set.
const OVERLOAD: &str = "native:{passive: {policies: [Overload], readmission: true}, guards: true}";

fn film(faults: &str, policy: &str) -> (Figures, Film) {
    let scenario = read(&three(faults).replace("duration: 60s", "duration: 120s"));
    lab::run(&scenario, &Policy::find(policy).unwrap(), 1).unwrap()
}

#[test]
fn one_of_three_that_asks_for_less_is_asked_for_less() {
    let one = "[{kind: errors, on: [b], at: 20s, lasts: 50s, share: 0.5, status: 429, truth: healthy}]";
    let [(_, without), (figures, with)] = ["active", OVERLOAD].map(|policy| film(one, policy));
    let refused = |film: &Film| film.failures.iter().sum::<u32>();
    assert!(refused(&without) > 900, "{}", refused(&without));
    assert!(3 * refused(&with) < refused(&without), "{} of {}", refused(&with), refused(&without));
    assert_eq!(figures.ejections, 0.0);
    let share_at = |destination: usize, second: f64| {
        let before = with.shares[destination].iter().rev().find(|(at, _)| *at <= second);
        before.map_or(1.0, |(_, share)| *share)
    };
    assert!(share_at(1, 60.0) < 0.3, "{}", share_at(1, 60.0));
    assert_eq!([share_at(0, 60.0), share_at(2, 60.0)], [1.0, 1.0]);
    assert_eq!(share_at(1, 119.0), 1.0);
}

#[test]
fn three_that_ask_alike_are_used_as_before() {
    let all = "[{kind: errors, on: [a, b, c], at: 20s, lasts: 50s, share: 0.5, status: 429, truth: healthy}]";
    let (figures, film) = film(all, OVERLOAD);
    assert_eq!((figures.lost, figures.ejections), (0.0, 0.0));
    let least = film.shares.iter().flatten().filter(|(at, _)| *at > 20.0).map(|(_, share)| *share).fold(1.0, f64::min);
    assert_eq!(least, 1.0);
}
