//! The program `lazaret`.
fn main() {}
