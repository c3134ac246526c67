//! A route's transforms, ready for its requests: the target is made when the route is found, heads when they are written.

use model::pattern::PathPattern;
use model::request::{Method, RequestFacts};
use model::route::Route;
use model::transform::Plan;
use route::path::PathError;
use route::rewrite::{self, Target};

/// What a route changes.
#[derive(Debug)]
pub struct TransformView {
    /// The transforms, sorted by who applies them.
    pub plan: Plan,
    pattern: Option<PathPattern>,
}

/// What became of one request.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// In place of its method, path and query.
    pub target: Option<Target>,
    /// The values of the route's parameters, as header fields take them.
    pub values: Vec<(String, String)>,
}

impl TransformView {
    /// The transforms of a route; `None` when it has none.
    pub fn of(route: &Route) -> Option<Self> {
        let transforms = &route.policy.transforms;
        let view = || Self { plan: Plan::of(transforms), pattern: route.matcher.path.clone() };
        (!transforms.is_empty()).then(view)
    }

    /// Applies what concerns the target; an error when the path that comes out may not be sent.
    pub(crate) fn apply(&self, facts: &RequestFacts<'_>) -> Result<Rewritten, PathError> {
        if self.plan.target.is_empty() && self.plan.request.is_empty() {
            return Ok(Rewritten::default());
        }
        let values = self.pattern.as_ref().map(|pattern| rewrite::values(pattern, facts.path)).unwrap_or_default();
        let target = match self.plan.target.as_slice() {
            [] => None,
            transforms => Some(rewrite::rewrite(transforms, &values, facts)?),
        };
        let in_fields = |(name, value): (String, String)| (name, rewrite::of_header(&value));
        Ok(Rewritten { target, values: values.into_iter().map(in_fields).collect() })
    }
}

impl Rewritten {
    /// The facts with the method that goes on, which is the one that a repetition repeats.
    pub(crate) fn facts<'a>(&'a self, facts: &RequestFacts<'a>) -> RequestFacts<'a> {
        let method_name = self.target.as_ref().map_or(facts.method_name, |target| &target.method);
        RequestFacts { method: Method::from_bytes(method_name.as_bytes()), method_name, ..*facts }
    }
}
