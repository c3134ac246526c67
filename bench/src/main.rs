//! Side-by-side runs against peers.
fn main() {}
