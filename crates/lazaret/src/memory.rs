//! Memory on its way back to the system.
//!
//! The program's allocator (mimalloc) gives back what has been free for a second, but looks for that only when a large piece
//! is freed, and after a burst a proxy may serve its connections for hours without freeing any. So one comes and goes now
//! and then: it is never touched and costs some microseconds. Other allocators take it for what it is.

use std::time::Duration;

/// Has the allocator look, again and again; never ends.
pub(crate) async fn give_back() {
    loop {
        tokio::time::sleep(EVERY).await;
        drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
    }
}

/// What was freed is given back after a second at the least, and this.
const EVERY: Duration = Duration::from_secs(1);
/// Not kept for the next one of its size: half a mebibyte and more is a piece of its own.
const LARGE: usize = 1024 * 1024;
