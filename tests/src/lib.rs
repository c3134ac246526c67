//! End-to-end tests live in this member's `tests` folder.
