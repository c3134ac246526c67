//! What is valid and still worth a word: judged on the resolved configuration, so that every format is judged alike.

use model::config::Config;

use crate::raw::section::Reading;

/// Notes all warnings.
pub fn look(_r: &mut Reading<'_>, _config: &Config) {}
