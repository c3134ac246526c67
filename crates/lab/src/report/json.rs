//! A comparison as JSON: one object, numbers rounded to six digits behind the point.

use serde_json::{Map, Value, json};

use crate::compare::{Comparison, Estimate, MEASURES};

/// The object, on many lines.
pub fn render(comparison: &Comparison) -> String {
    let mut text = serde_json::to_string_pretty(&value(comparison)).unwrap_or_default();
    text.push('\n');
    text
}

/// The object.
pub fn value(comparison: &Comparison) -> Value {
    let rows = comparison.rows.iter().map(|row| {
        let measures = MEASURES.iter().map(|(name, unit)| {
            let value = row.measure(name).map_or(Value::Null, |one| estimate(one, unit));
            ((*name).to_owned(), value)
        });
        json!({
            "policy": row.policy.name,
            "about": row.policy.about,
            "standing": row.policy.standing().as_str(),
            "oracle": row.policy.is_oracle(),
            "measures": measures.collect::<Map<String, Value>>(),
            "above_the_better_oracle": {
                "failures": estimate(row.failures_above, "requests"),
                "p99": estimate(row.p99_above, "ms"),
            },
        })
    });
    json!({
        "title": comparison.title,
        "seeds": comparison.seeds,
        "attempts": comparison.attempts,
        "policies": rows.collect::<Vec<Value>>(),
    })
}

fn estimate(estimate: Estimate, unit: &str) -> Value {
    json!({ "mean": round(estimate.mean), "half": round(estimate.half), "seeds": estimate.n, "unit": unit })
}

fn round(value: f64) -> f64 {
    let rounded = libm::round(value * 1e6) / 1e6;
    // No minus in front of nothing.
    if rounded == 0.0 { 0.0 } else { rounded }
}
