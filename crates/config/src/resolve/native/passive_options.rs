//! Options of the passive policies that weigh failures, and of the way back.

use std::time::Duration;

use model::passive::{
    Burst, Comparison, ConnectFailures, ConsecutiveErrors, FailureRate, Latency, Overload, PassivePolicy, Plain500,
    Stall,
};
use model::ratio::Ratio;
use model::readmission::Readmission;

use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::resolve::policy::PassiveName;

/// The policy with its options from `s`; `None` for those that are read elsewhere.
pub fn weighing(r: &mut Reading<'_>, s: &mut Section<'_>, name: PassiveName) -> Option<PassivePolicy> {
    Some(match name {
        PassiveName::ConsecutiveErrors => {
            let default = ConsecutiveErrors::default();
            PassivePolicy::ConsecutiveErrors(ConsecutiveErrors {
                threshold: whole(r, s, "threshold").unwrap_or(default.threshold),
                plain_500: plain_500(r, s, default.plain_500),
            })
        }
        PassiveName::FailureRate => {
            let default = FailureRate::default();
            PassivePolicy::FailureRate(FailureRate {
                rate_limit: share(r, s, "rate_limit").unwrap_or(default.rate_limit),
                window: span(r, s, "window").unwrap_or(default.window),
                minimum: whole(r, s, "minimum").unwrap_or(default.minimum),
            })
        }
        PassiveName::Outlier => {
            let default = Comparison::default();
            PassivePolicy::Outlier(Comparison {
                z: number(r, s, "z").unwrap_or(default.z),
                difference: share(r, s, "difference").unwrap_or(default.difference),
                rest_limit: share(r, s, "rest_limit").unwrap_or(default.rest_limit),
                minimum: whole(r, s, "minimum").unwrap_or(default.minimum),
                plain_500: plain_500(r, s, default.plain_500),
            })
        }
        PassiveName::Burst => PassivePolicy::Burst(burst(r, s)),
        PassiveName::ConnectFailures => {
            let default = ConnectFailures::default();
            PassivePolicy::ConnectFailures(ConnectFailures {
                threshold: whole(r, s, "threshold").unwrap_or(default.threshold),
                persist: s.take(r, "persist").and_then(|f| f.duration_or_zero(r)).unwrap_or(default.persist),
                suspect_share: share(r, s, "suspect_share").unwrap_or(default.suspect_share),
            })
        }
        PassiveName::Stall => {
            let default = Stall::default();
            PassivePolicy::Stall(Stall {
                minimum: whole(r, s, "minimum").unwrap_or(default.minimum),
                at_least: span(r, s, "at_least").unwrap_or(default.at_least),
                factor: number(r, s, "factor").unwrap_or(default.factor),
            })
        }
        PassiveName::Latency => {
            let default = Latency::default();
            PassivePolicy::Latency(Latency {
                factor: number(r, s, "factor").unwrap_or(default.factor),
                difference: span(r, s, "slower_by").unwrap_or(default.difference),
                persist: span(r, s, "persist").unwrap_or(default.persist),
                least_share: share(r, s, "least_share").unwrap_or(default.least_share),
            })
        }
        PassiveName::Overload => {
            let default = Overload::default();
            PassivePolicy::Overload(Overload {
                z: number(r, s, "z").unwrap_or(default.z),
                difference: share(r, s, "difference").unwrap_or(default.difference),
                minimum: whole(r, s, "minimum").unwrap_or(default.minimum),
                least_share: share(r, s, "least_share").unwrap_or(default.least_share),
            })
        }
        PassiveName::TransportFailureRate | PassiveName::MaxFails => return None,
    })
}

fn burst(r: &mut Reading<'_>, s: &mut Section<'_>) -> Burst {
    let default = Burst::default();
    let span_of_good = s.span;
    let options = Burst {
        good: share(r, s, "good").unwrap_or(default.good),
        bad: share(r, s, "bad").unwrap_or(default.bad),
        limit: number(r, s, "limit").unwrap_or(default.limit),
        persist: span(r, s, "persist").unwrap_or(default.persist),
        suspect_share: share(r, s, "suspect_share").unwrap_or(default.suspect_share),
        plain_500: plain_500(r, s, default.plain_500),
    };
    if options.good < options.bad {
        return options;
    }
    r.error(span_of_good, "`good` is not below `bad`", "expected a normal share of failures below the one to be found");
    default
}

/// `readmission`: on with its defaults as `true` or an empty block.
pub fn readmission(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Readmission> {
    let default = Readmission::default();
    if let Value::Bool(is_on) = field.node.value {
        return is_on.then_some(default);
    }
    let mut s = field.section(r)?;
    let zero_or = |r: &mut Reading<'_>, s: &mut Section<'_>, key| s.take(r, key).and_then(|f| f.duration_or_zero(r));
    let rule = Readmission {
        first: span(r, &mut s, "first").unwrap_or(default.first),
        longest: span(r, &mut s, "longest").unwrap_or(default.longest),
        jitter: share(r, &mut s, "jitter").unwrap_or(default.jitter),
        canaries: s.take(r, "canaries").and_then(|f| f.whole_u32(r, 0)).unwrap_or(default.canaries),
        patience: zero_or(r, &mut s, "patience").unwrap_or(default.patience),
        quiet: span(r, &mut s, "quiet").unwrap_or(default.quiet),
        ramp: zero_or(r, &mut s, "ramp").unwrap_or(default.ramp),
        least_share: share(r, &mut s, "least_share").unwrap_or(default.least_share),
    };
    if rule.longest < rule.first {
        r.error(
            s.span,
            "`longest` is shorter than `first`",
            "expected the longest ejection to last as long as the first",
        );
    }
    s.finish(r);
    Some(rule)
}

fn plain_500(r: &mut Reading<'_>, s: &mut Section<'_>, default: Plain500) -> Plain500 {
    match s.take(r, "count_500").and_then(|f| f.flag(r)) {
        Some(true) => Plain500::Counts,
        Some(false) => Plain500::Passes,
        None => default,
    }
}

fn share(r: &mut Reading<'_>, s: &mut Section<'_>, key: &'static str) -> Option<Ratio> {
    s.take(r, key).and_then(|f| f.rate(r)).and_then(Ratio::new)
}

fn number(r: &mut Reading<'_>, s: &mut Section<'_>, key: &'static str) -> Option<f64> {
    s.take(r, key).and_then(|f| f.above_zero(r))
}

fn span(r: &mut Reading<'_>, s: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    s.take(r, key).and_then(|f| f.duration(r))
}

fn whole(r: &mut Reading<'_>, s: &mut Section<'_>, key: &'static str) -> Option<u32> {
    s.take(r, key).and_then(|f| f.whole_u32(r, 1))
}
