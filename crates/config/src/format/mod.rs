//! Parsers: text in, located tree out. Each outside parser is named in one file only.

pub mod json;
pub mod yaml;
