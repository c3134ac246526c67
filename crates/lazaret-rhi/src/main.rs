//! The program `lazaret-rhi`.
fn main() {}
