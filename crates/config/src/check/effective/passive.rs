//! The passive check, written down with every option of its policies.

use model::cluster::Compat;
use model::passive::{DEFAULT_REACTIVATION, PassiveCheck, PassivePolicy, Plain500};
use model::readmission::Readmission;

use super::{Writer, quoted, span};
use crate::timespan;

/// Writes the block of a check that is on.
pub fn write(w: &mut Writer<'_>, check: &PassiveCheck, compat: Compat) {
    w.block("policies", |w| policies(w, &check.policies));
    if !check.shadow.is_empty() {
        w.block("shadow", |w| policies(w, &check.shadow));
    }
    if check.reactivation_period.is_none() && check.readmission.is_none() {
        let own: Vec<_> = check.policies.iter().map(|policy| own_period(policy, compat)).collect();
        match own.as_slice() {
            [] => {}
            [(_, first), rest @ ..] if rest.iter().all(|(_, period)| period == first) => {
                w.comment(&format!("the policy's own: {first}"));
            }
            several => {
                let each: Vec<_> = several.iter().map(|(name, period)| format!("{name} {period}")).collect();
                w.comment(&format!("the policies' own: {}", each.join(", ")));
            }
        }
    }
    w.value("reactivation_period", span(check.reactivation_period));
    match &check.readmission {
        None => w.value("readmission", "false".to_owned()),
        Some(rule) => w.block("readmission", |w| readmission(w, rule)),
    }
}

fn policies(w: &mut Writer<'_>, policies: &[PassivePolicy]) {
    w.depth -= 1;
    for policy in policies {
        w.item(|w| {
            let name = policy.name();
            let is_custom = matches!(policy, PassivePolicy::Custom(_));
            w.value("name", if is_custom { quoted(name) } else { name.to_owned() });
            for (key, value) in options(policy) {
                w.value(key, value);
            }
        });
    }
    w.depth += 1;
}

/// Keys and values, as a file would have them.
fn options(policy: &PassivePolicy) -> Vec<(&'static str, String)> {
    match policy {
        PassivePolicy::TransportFailureRate(one) => vec![
            ("rate_limit", one.rate_limit.to_string()),
            ("window", timespan::format(one.window)),
            ("minimum", one.minimum.to_string()),
        ],
        PassivePolicy::MaxFails(one) => {
            vec![("max_fails", one.max_fails.to_string()), ("fail_timeout", timespan::format(one.fail_timeout))]
        }
        PassivePolicy::ConsecutiveErrors(one) => {
            vec![("threshold", one.threshold.to_string()), ("count_500", counts(one.plain_500))]
        }
        PassivePolicy::FailureRate(one) => vec![
            ("rate_limit", one.rate_limit.get().to_string()),
            ("window", timespan::format(one.window)),
            ("minimum", one.minimum.to_string()),
        ],
        PassivePolicy::Outlier(one) => vec![
            ("z", one.z.to_string()),
            ("difference", one.difference.get().to_string()),
            ("rest_limit", one.rest_limit.get().to_string()),
            ("minimum", one.minimum.to_string()),
            ("count_500", counts(one.plain_500)),
        ],
        PassivePolicy::Burst(one) => vec![
            ("good", one.good.get().to_string()),
            ("bad", one.bad.get().to_string()),
            ("limit", one.limit.to_string()),
            ("persist", timespan::format(one.persist)),
            ("suspect_share", one.suspect_share.get().to_string()),
            ("count_500", counts(one.plain_500)),
        ],
        PassivePolicy::ConnectFailures(one) => vec![
            ("threshold", one.threshold.to_string()),
            ("persist", timespan::format(one.persist)),
            ("suspect_share", one.suspect_share.get().to_string()),
        ],
        PassivePolicy::Stall(one) => vec![
            ("minimum", one.minimum.to_string()),
            ("at_least", timespan::format(one.at_least)),
            ("factor", one.factor.to_string()),
        ],
        PassivePolicy::Latency(one) => vec![
            ("factor", one.factor.to_string()),
            ("slower_by", timespan::format(one.difference)),
            ("persist", timespan::format(one.persist)),
            ("least_share", one.least_share.get().to_string()),
        ],
        PassivePolicy::Overload(one) => vec![
            ("z", one.z.to_string()),
            ("difference", one.difference.get().to_string()),
            ("minimum", one.minimum.to_string()),
            ("least_share", one.least_share.get().to_string()),
        ],
        PassivePolicy::Custom(_) => Vec::new(),
    }
}

fn readmission(w: &mut Writer<'_>, rule: &Readmission) {
    w.value("first", timespan::format(rule.first));
    w.value("longest", timespan::format(rule.longest));
    w.value("jitter", rule.jitter.get().to_string());
    w.value("canaries", rule.canaries.to_string());
    w.value("patience", timespan::format(rule.patience));
    w.value("quiet", timespan::format(rule.quiet));
    w.value("ramp", timespan::format(rule.ramp));
    w.value("least_share", rule.least_share.get().to_string());
}

fn counts(plain_500: Plain500) -> String {
    (plain_500 == Plain500::Counts).to_string()
}

/// A policy and how long its ejections last when the cluster does not say.
fn own_period(policy: &PassivePolicy, compat: Compat) -> (&str, String) {
    let unless_told = || format!("{} unless its verdict says otherwise", timespan::format(DEFAULT_REACTIVATION));
    (policy.name(), policy.own_ejection_period(compat).map_or_else(unless_told, timespan::format))
}
