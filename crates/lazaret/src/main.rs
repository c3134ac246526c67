//! The program `lazaret`.
//!
//! It chooses the allocator, too; who embeds the library chooses their own. This one gives memory back to the system after
//! a burst, where glibc's keeps it (docs/performance.md, "Memory after a burst").
#![forbid(unsafe_code)]

mod cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
