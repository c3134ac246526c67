//! House rules, tests, benches, set-up.
fn main() {}
