//! Whether a contestant is itself, another product, or a model of one: who may be called by a product's name.

use super::{Mind, Policy};

/// Whose rule a contestant plays, and on what ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Lazaret's own, as it is in production; or an oracle.
    Own,
    /// Another product's. With these very settings the product itself has run beside it, and what it was predicted to do was
    /// held against what it did (docs/twins.md).
    Twinned,
    /// Another product's, as its documentation or its source was read. Nobody ran the product.
    Model,
}

impl Standing {
    /// Lower-case word, as in the JSON of a comparison.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Twinned => "twinned",
            Self::Model => "model",
        }
    }
}

impl Policy {
    /// Whose rule it plays.
    pub fn standing(&self) -> Standing {
        let is_own = match self.mind {
            Mind::Keep | Mind::Eject => true,
            Mind::Core => self.compat == "none",
            Mind::Envoy(_) | Mind::Haproxy(_) => false,
        };
        if is_own {
            return Standing::Own;
        }
        let is_twinned = TWINNED.iter().any(|name| Self::find(name).is_ok_and(|twinned| self.plays_as(&twinned)));
        if is_twinned { Standing::Twinned } else { Standing::Model }
    }

    /// Its name as a reader of a report should see it: what is a model says so.
    pub fn label(&self) -> String {
        match self.standing() {
            Standing::Own | Standing::Twinned => self.name.clone(),
            Standing::Model => format!("model of {}", self.name),
        }
    }

    /// Whether the two do the same, whatever they are called.
    pub fn plays_as(&self, other: &Self) -> bool {
        let nameless = |one: &Self| Self { name: String::new(), about: String::new(), ..one.clone() };
        nameless(self) == nameless(other)
    }
}

/// Those that ran as the product itself. `cargo xtask twins` has all but `nginx_3`, which tests/tests/nginx_as_measured.rs runs;
/// tests there and among the twins hold this list to it.
const TWINNED: [&str; 5] = ["nginx", "nginx_3", "haproxy", "haproxy_mark_down", "envoy_consecutive_5"];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_competitor_that_was_not_twinned_is_labelled_a_model() {
        let labels = [
            ("lazaret", "lazaret"),
            ("active", "active"),
            ("max_fails", "max_fails"),
            ("native:{passive: {policies: [{name: Burst}]}}", "native:{passive: {policies: [{name: Burst}]}}"),
            ("keep", "keep"),
            ("eject", "eject"),
            ("nginx", "nginx"),
            ("nginx_3", "nginx_3"),
            ("nginx:1/10s", "nginx:1/10s"),
            ("mine=nginx:3/10s", "mine"),
            ("nginx:7/10s", "model of nginx:7/10s"),
            ("yarp", "model of yarp"),
            ("theirs=yarp", "model of theirs"),
            ("envoy", "model of envoy"),
            ("envoy_consecutive_5", "envoy_consecutive_5"),
            ("haproxy", "haproxy"),
            ("haproxy_mark_down", "haproxy_mark_down"),
        ];
        for (name, label) in labels {
            assert_eq!(Policy::find(name).unwrap().label(), label, "{name}");
        }
    }
}
