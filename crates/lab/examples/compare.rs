//! The lab as a library: `cargo run -p lab --example compare -- SEEDS POLICY,... SCENARIO...` prints comparisons.
#![allow(clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // An example is no core: it reads files.

use std::error::Error;

use lab::compare::Plan;
use lab::policy::{Policy, split};
use lab::verdict;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let seeds: u32 = words.next().ok_or("a number of seeds is needed")?.parse()?;
    let names = words.next().ok_or("policies are needed")?;
    let policies: Vec<Policy> = split(&names).into_iter().map(Policy::find).collect::<Result<_, _>>()?;
    let mut comparisons = Vec::new();
    for path in words {
        let text = std::fs::read_to_string(&path)?;
        let scenario = lab::scenario::read(&text, &|name| std::fs::read_to_string(name).map_err(|e| e.to_string()))?;
        let comparison = Plan::new(scenario, policies.clone(), 1, seeds).run_all()?;
        println!("{}", lab::report::text::render(&comparison));
        comparisons.push(comparison);
    }
    if let Some(first) = policies.first() {
        print!("{}", verdict::text(&verdict::verdicts(&comparisons, &first.name), &first.name));
    }
    Ok(())
}
