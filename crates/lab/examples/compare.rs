//! The lab as a library: `cargo run -p lab --example compare -- SCENARIO SEEDS POLICY...` prints a comparison.
#![allow(clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // An example is no core: it reads files.

use std::error::Error;

use lab::compare::Plan;
use lab::policy::Policy;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("a scenario's file is needed")?;
    let seeds: u32 = words.next().ok_or("a number of seeds is needed")?.parse()?;
    let policies: Result<Vec<Policy>, _> = words.map(|name| Policy::find(&name)).collect();
    let text = std::fs::read_to_string(&path)?;
    let scenario = lab::scenario::read(&text, &|name| std::fs::read_to_string(name).map_err(|e| e.to_string()))?;
    let plan = Plan::new(scenario, policies?, 1, seeds);
    print!("{}", lab::report::text::render(&plan.run_all()?));
    Ok(())
}
