//! Names of policies: the built-in ones with their spellings, and those that were registered in code.
//!
//! Names compare without case, `_` and `-`.

use std::collections::BTreeSet;

use model::id::PolicyName;

use crate::report::suggest;

/// Names of the custom policies that exist in code, by what they decide.
#[derive(Clone, Debug, Default)]
pub struct PolicyNames {
    /// Judge probes.
    pub active: BTreeSet<String>,
    /// Judge traffic.
    pub passive: BTreeSet<String>,
    /// Join both.
    pub available: BTreeSet<String>,
    /// Choose who serves.
    pub balancing: BTreeSet<String>,
}

/// What a policy's name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named<T> {
    /// A built-in one.
    BuiltIn(T),
    /// One registered in code, as registered.
    Custom(PolicyName),
}

/// Finds `name`; the error is the list of names that exist.
pub fn find<T: Copy>(
    name: &str,
    built_in: &[(&'static str, T)],
    custom: &BTreeSet<String>,
) -> Result<Named<T>, Vec<String>> {
    let folded = suggest::fold(name);
    if let Some(found) = custom.iter().find(|known| suggest::fold(known) == folded) {
        return Ok(Named::Custom(PolicyName::from(found.as_str())));
    }
    if let Some((_, value)) = built_in.iter().find(|(known, _)| suggest::fold(known) == folded) {
        return Ok(Named::BuiltIn(*value));
    }
    Err(built_in.iter().map(|(known, _)| (*known).to_owned()).chain(custom.iter().cloned()).collect())
}
