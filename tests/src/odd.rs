//! Odd but possible HTTP/1.1 messages, made at random from a seed, each with the names of what is odd about it.

pub mod request;
pub mod response;

use std::collections::BTreeSet;

use model::random::Random;

/// What is odd about a message: short names, for the lists of explanations.
pub type Oddities = BTreeSet<&'static str>;

/// Draws one of several, `plain` of the time the first.
fn draw<'a, T>(random: &mut Random, plain: f64, choices: &'a [T]) -> &'a T {
    if random.unit() < plain { &choices[0] } else { &choices[random.below(choices.len())] }
}
