//! From names to contestants: those that have one of their own, those that are written out, and lists of both.

use config::report::suggest;

use super::{Mind, Passive, Policy, PolicyError};
use crate::models::haproxy::OnError;

impl Policy {
    /// The contestant of a name: one of [`Policy::known`]; `passive:` and a passive policy in the native format, such as
    /// `passive:MaxFails` or `passive:{name: MaxFails, max_fails: 5}`; `native:` and a `health_check` block without its active check, such as
    /// `native:{passive: {policies: [{name: Burst}]}, guards: true}`; `nginx:` and max_fails and fail_timeout, such as `nginx:3/10s`. `WORD=` in front of it
    /// renames it.
    pub fn find(name: &str) -> Result<Self, PolicyError> {
        if let Some((word, rest)) = name.split_once('=')
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            return Ok(Self { name: word.to_owned(), ..Self::find(rest)? });
        }
        if let Some(block) = name.strip_prefix("native:") {
            return Ok(Self::native(name, "as written, with active checks where the scenario has them", block));
        }
        if let Some(numbers) = name.strip_prefix("nginx:") {
            let pair = numbers.split_once('/').and_then(|(fails, time)| Some((fails.parse().ok()?, time)));
            let (max_fails, fail_timeout) = pair.ok_or_else(|| PolicyError(format!("{name}: as in nginx:3/10s")))?;
            return Ok(Self::nginx(name, max_fails, fail_timeout));
        }
        if let Some(entry) = name.strip_prefix("passive:") {
            let block = if entry.starts_with('{') { entry.to_owned() } else { format!("{{name: {entry}}}") };
            return Ok(Self::core(name, "a single policy, with active checks where the scenario has them", &block));
        }
        let mut known = Self::known();
        if let Some(place) = known.iter().position(|policy| policy.name == name) {
            return Ok(known.swap_remove(place));
        }
        let names: Vec<&str> = known.iter().map(|policy| policy.name.as_str()).collect();
        let meant = suggest::did_you_mean(name, names.iter().copied()).map(|meant| format!("; {meant}"));
        Err(PolicyError(format!(
            "there is no policy {name}{}\nthere are {}; passive:NAME with a passive policy of the configuration, \
             native:BLOCK and nginx:FAILS/TIME",
            meant.unwrap_or_default(),
            names.join(", ")
        )))
    }

    /// All that have a name of their own, the oracles last.
    pub fn known() -> Vec<Self> {
        let named = |name: &str, about: &str, mind, compat, passive, available, has_checks| Self {
            name: name.to_owned(),
            about: about.to_owned(),
            mind,
            compat,
            passive,
            available,
            has_checks,
        };
        let outside = |name: &str, about: &str, mind, compat, available| {
            named(name, about, mind, compat, Passive::Outside, available, false)
        };
        // Envoy and HAProxy repeat what their configuration lists, without a budget: as nginx does.
        let freely = "nginx";
        vec![
            named("lazaret", "the native default set", Mind::Core, "none", Passive::Default, "HealthyOrPanic", true),
            named("active", "active checks alone", Mind::Core, "none", Passive::Off, "HealthyOrPanic", true),
            Self::core("transport_failure_rate", "TransportFailureRate alone", "{name: TransportFailureRate}"),
            Self::core("max_fails", "MaxFails alone, 1 in 10 s", "{name: MaxFails}"),
            Self::nginx("nginx", 1, "10s"),
            Self::nginx("nginx_3", 3, "10s"),
            named(
                "yarp",
                "YARP's TransportFailureRate to the letter",
                Mind::Core,
                "yarp",
                Passive::Block("passive: {policies: [{name: TransportFailureRate}]}".into()),
                "HealthyOrPanic",
                true,
            ),
            outside(
                "envoy",
                "Envoy's outlier detection with its defaults (max_ejection_percent 10)",
                Mind::Envoy(10),
                freely,
                "{name: PanicThreshold, percent: 50}",
            ),
            outside(
                "envoy_consecutive_5",
                "Envoy's outlier detection with max_ejection_percent 100",
                Mind::Envoy(100),
                freely,
                "{name: PanicThreshold, percent: 50}",
            ),
            outside(
                "haproxy",
                "HAProxy's observe layer7, on-error fail-check",
                Mind::Haproxy(OnError::FailCheck),
                freely,
                "HealthyAndUnknown",
            ),
            outside(
                "haproxy_mark_down",
                "HAProxy's observe layer7, on-error mark-down",
                Mind::Haproxy(OnError::MarkDown),
                freely,
                "HealthyAndUnknown",
            ),
            outside("eject", "oracle: takes out what is sick, at once", Mind::Eject, "none", "HealthyOrPanic"),
            named("keep", "oracle: takes nobody out", Mind::Keep, "none", Passive::Off, "HealthyOrPanic", false),
        ]
    }

    /// One that is written out: a `health_check` block without its active check, in braces or not.
    pub fn native(name: &str, about: &str, block: &str) -> Self {
        let block = block.trim();
        let block = block.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(block);
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            mind: Mind::Core,
            compat: "none",
            passive: Passive::Block(block.to_owned()),
            available: "HealthyOrPanic",
            has_checks: true,
        }
    }

    /// A single passive policy.
    fn core(name: &str, about: &str, entry: &str) -> Self {
        Self::native(name, about, &format!("passive: {{policies: [{entry}]}}"))
    }

    /// nginx's rule to the letter. Its servers are never probed.
    fn nginx(name: &str, max_fails: u32, fail_timeout: &str) -> Self {
        let entry = format!("{{name: MaxFails, max_fails: {max_fails}, fail_timeout: {fail_timeout}}}");
        Self {
            about: format!(
                "nginx's rule to the letter, max_fails={max_fails} fail_timeout={fail_timeout}; no active checks"
            ),
            compat: "nginx",
            available: "HealthyAndUnknown",
            has_checks: false,
            ..Self::core(name, "", &entry)
        }
    }
}

/// The names of a list with commas between, apart from those within brackets.
pub fn split(list: &str) -> Vec<&str> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.extend(list.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    names.extend(list.get(start..));
    names.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_between_names_and_not_within_them() {
        let names = split(
            "lazaret, passive:{name: MaxFails, max_fails: 5},all=native:{passive: {policies: [{name: A}, {name: B}]}, guards: true},",
        );
        let written = [
            "lazaret",
            "passive:{name: MaxFails, max_fails: 5}",
            "all=native:{passive: {policies: [{name: A}, {name: B}]}, guards: true}",
        ];
        assert_eq!(names, written);
        let renamed = Policy::find("five=nginx:5/10s");
        assert!(renamed.is_ok_and(|policy| policy.name == "five" && policy.compat == "nginx"));
        assert!(Policy::find("five=nothing").is_err());
    }
}
