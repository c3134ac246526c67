//! Where configuration comes from: [`mod@file`], and the files that it takes texts from: [`pages`].
//!
//! A source gives a whole configuration or says why not; whoever asked keeps the one before.
#![forbid(unsafe_code)]

pub mod file;
pub mod pages;
