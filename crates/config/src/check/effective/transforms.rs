//! Transforms, written down.

use model::cluster::UpstreamHost;
use model::transform::{
    Copying, ForwardAction, Forwarded, ForwardedPart, Mode, NodeFormat, RequestTransform, ResponseTransform,
    TargetTransform, Transform, When, XForwarded,
};

use super::{Writer, quoted};
use crate::resolve::transforms::NODE_FORMATS;

/// Writes the list, when there is any.
pub fn write(w: &mut Writer<'_>, transforms: &[Transform]) {
    if transforms.is_empty() {
        return;
    }
    w.block("transforms", |w| {
        for transform in transforms {
            w.item(|w| {
                for (key, value) in pairs(transform) {
                    w.value(key, value);
                }
            });
        }
    });
}

type Pairs = Vec<(&'static str, String)>;

fn pairs(transform: &Transform) -> Pairs {
    match transform {
        Transform::Target(target) => of_target(target),
        Transform::Request(request) => of_request(request),
        Transform::OriginalHost(host) => {
            vec![("request_header_original_host", (*host == UpstreamHost::Original).to_string())]
        }
        Transform::XForwarded(rules) => of_x_forwarded(rules),
        Transform::Forwarded(rules) => of_forwarded(rules),
        Transform::Response(response) => of_response(response),
    }
}

fn of_target(target: &TargetTransform) -> Pairs {
    match target {
        TargetTransform::PathSet(path) => vec![("path_set", quoted(path.as_str()))],
        TargetTransform::PathPrefix(path) => vec![("path_prefix", quoted(path.as_str()))],
        TargetTransform::PathRemovePrefix(path) => vec![("path_remove_prefix", quoted(path.as_str()))],
        TargetTransform::PathPattern(pattern) => vec![("path_pattern", quoted(&pattern.to_string()))],
        TargetTransform::QueryValue { name, value, mode } => {
            vec![("query_value_parameter", quoted(name)), (of_mode(*mode), quoted(value))]
        }
        TargetTransform::QueryRouteValue { name, parameter, mode } => {
            vec![("query_route_parameter", quoted(name)), (of_mode(*mode), quoted(parameter))]
        }
        TargetTransform::QueryRemove(name) => vec![("query_remove_parameter", quoted(name))],
        TargetTransform::Method { from, to } => vec![("http_method_change", quoted(from)), ("set", quoted(to))],
    }
}

fn of_request(request: &RequestTransform) -> Pairs {
    match request {
        RequestTransform::Copy(copying) => vec![("request_headers_copy", of_copying(*copying))],
        RequestTransform::Allowed(names) => vec![("request_headers_allowed", quoted(&names.join(";")))],
        RequestTransform::Value { name, value, mode } => {
            vec![("request_header", quoted(name)), (of_mode(*mode), quoted(value))]
        }
        RequestTransform::RouteValue { name, parameter, mode } => {
            vec![("request_header_route_value", quoted(name)), (of_mode(*mode), quoted(parameter))]
        }
        RequestTransform::Remove(name) => vec![("request_header_remove", quoted(name))],
    }
}

fn of_response(response: &ResponseTransform) -> Pairs {
    match response {
        ResponseTransform::Copy(copying) => vec![("response_headers_copy", of_copying(*copying))],
        ResponseTransform::Allowed(names) => vec![("response_headers_allowed", quoted(&names.join(";")))],
        ResponseTransform::Value { name, value, mode, when } => {
            vec![("response_header", quoted(name)), (of_mode(*mode), quoted(value)), ("when", of_when(*when))]
        }
        ResponseTransform::Remove { name, when } => {
            vec![("response_header_remove", quoted(name)), ("when", of_when(*when))]
        }
    }
}

fn of_x_forwarded(rules: &XForwarded) -> Pairs {
    vec![
        ("x_forwarded", of_action(rules.address)),
        ("for", of_action(rules.address)),
        ("proto", of_action(rules.proto)),
        ("host", of_action(rules.host)),
        ("prefix", of_action(rules.prefix)),
        ("header_prefix", quoted(&rules.header_prefix)),
    ]
}

fn of_forwarded(rules: &Forwarded) -> Pairs {
    let mut pairs = Pairs::new();
    let mut names = Vec::new();
    for part in &rules.parts {
        names.push(match part {
            ForwardedPart::For(format) => {
                pairs.push(("for_format", of_format(*format)));
                "for"
            }
            ForwardedPart::By(format) => {
                pairs.push(("by_format", of_format(*format)));
                "by"
            }
            ForwardedPart::Proto => "proto",
            ForwardedPart::Host => "host",
        });
    }
    pairs.sort_unstable();
    pairs.dedup_by_key(|(key, _)| *key);
    pairs.insert(0, ("forwarded", quoted(&names.join(","))));
    pairs.push(("action", of_action(rules.action)));
    pairs
}

fn of_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Set => "set",
        Mode::Append => "append",
    }
}

fn of_copying(copying: Copying) -> String {
    (copying == Copying::All).to_string()
}

fn of_when(when: When) -> String {
    match when {
        When::Success => "success",
        When::Failure => "failure",
        When::Always => "always",
    }
    .to_owned()
}

fn of_action(action: ForwardAction) -> String {
    match action {
        ForwardAction::Set => "set",
        ForwardAction::Append => "append",
        ForwardAction::Remove => "remove",
        // In quotes: YAML reads the bare word as false.
        ForwardAction::Off => "\"off\"",
    }
    .to_owned()
}

fn of_format(format: NodeFormat) -> String {
    let found = NODE_FORMATS.iter().find(|(_, known)| *known == format);
    found.map_or("Random", |(name, _)| name).to_owned()
}
