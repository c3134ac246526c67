//! `transforms` of a route: one list for both formats, in YARP's words or the same words in snake case.
//!
//! What YARP takes and this proxy cannot do is an error in a native file and a warning in a YARP file, where the
//! transform is left out.

use model::cluster::UpstreamHost;
use model::pattern::{PathPattern, Segment};
use model::transform::{
    Copying, ForwardAction, Forwarded, ForwardedPart, Mode, NodeFormat, NodeName, NodePort, PathText, RequestTransform,
    ResponseTransform, TargetTransform, Transform, When, XForwarded, is_reserved,
};

use crate::raw::section::{Dialect, Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::matching;

/// Resolves the list.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<Transform> {
    let mut transforms = Vec::new();
    for item in field.list(r) {
        let Some(mut s) = item.section(r) else { continue };
        transforms.extend(one(r, &mut s));
        s.finish(r);
    }
    transforms
}

fn one(r: &mut Reading<'_>, s: &mut Section<'_>) -> Option<Transform> {
    for (yarp, native, what) in KINDS {
        if let Some(field) = take(r, s, yarp, native) {
            return what(r, s, &field);
        }
    }
    for (yarp, native) in UNSERVED {
        if let Some(field) = take(r, s, yarp, native) {
            // The keys that belong to it go with it.
            for (yarp, native) in [("Set", "set"), ("Append", "append"), ("When", "when")] {
                take(r, s, yarp, native);
            }
            complain(r, &field, format!("`{}` is not supported", field.name), "the transform is left out");
            return None;
        }
    }
    r.error(s.span, "this is no known transform", "expected a key such as request_header or path_prefix");
    None
}

type Read = fn(&mut Reading<'_>, &mut Section<'_>, &Field<'_>) -> Option<Transform>;

const KINDS: [(&str, &str, Read); 21] = [
    ("RequestHeadersCopy", "request_headers_copy", |r, _, f| {
        copying(r, f).map(|copying| Transform::Request(RequestTransform::Copy(copying)))
    }),
    ("RequestHeaderOriginalHost", "request_header_original_host", |r, _, f| {
        let host = |flag| if flag { UpstreamHost::Original } else { UpstreamHost::Destination };
        f.flag(r).map(|flag| Transform::OriginalHost(host(flag)))
    }),
    ("RequestHeader", "request_header", |r, s, f| {
        let (name, (mode, value)) = (name(r, f), set_or_append(r, s, f)?);
        let value = header_value(r, f, value)?;
        let name = settable(r, f, name?, mode)?;
        Some(Transform::Request(RequestTransform::Value { name, value, mode }))
    }),
    ("RequestHeaderRouteValue", "request_header_route_value", |r, s, f| {
        let (name, (mode, parameter)) = (name(r, f), set_or_append(r, s, f)?);
        let name = settable(r, f, name?, mode)?;
        Some(Transform::Request(RequestTransform::RouteValue { name, parameter, mode }))
    }),
    ("RequestHeaderRemove", "request_header_remove", |r, _, f| {
        let name = name(r, f).filter(|name| name != "host")?;
        free(r, f, name).map(|name| Transform::Request(RequestTransform::Remove(name)))
    }),
    ("RequestHeadersAllowed", "request_headers_allowed", |r, _, f| {
        names(r, f).map(|names| Transform::Request(RequestTransform::Allowed(names)))
    }),
    ("PathSet", "path_set", |r, _, f| path(r, f).map(|path| Transform::Target(TargetTransform::PathSet(path)))),
    ("PathPrefix", "path_prefix", |r, _, f| {
        path(r, f).map(|path| Transform::Target(TargetTransform::PathPrefix(path)))
    }),
    ("PathRemovePrefix", "path_remove_prefix", |r, _, f| {
        path(r, f).map(|path| Transform::Target(TargetTransform::PathRemovePrefix(path)))
    }),
    ("PathPattern", "path_pattern", |r, _, f| {
        pattern(r, f).map(|pattern| Transform::Target(TargetTransform::PathPattern(pattern)))
    }),
    ("QueryValueParameter", "query_value_parameter", |r, s, f| {
        let (mode, value) = set_or_append(r, s, f)?;
        let name = f.text(r)?.to_owned();
        Some(Transform::Target(TargetTransform::QueryValue { name, value, mode }))
    }),
    ("QueryRouteParameter", "query_route_parameter", |r, s, f| {
        let (mode, parameter) = set_or_append(r, s, f)?;
        let name = f.text(r)?.to_owned();
        Some(Transform::Target(TargetTransform::QueryRouteValue { name, parameter, mode }))
    }),
    ("QueryRemoveParameter", "query_remove_parameter", |r, _, f| {
        f.text(r).map(|name| Transform::Target(TargetTransform::QueryRemove(name.to_owned())))
    }),
    ("HttpMethodChange", "http_method_change", method),
    ("X-Forwarded", "x_forwarded", x_forwarded),
    ("Forwarded", "forwarded", forwarded),
    ("ResponseHeadersCopy", "response_headers_copy", |r, _, f| {
        copying(r, f).map(|copying| Transform::Response(ResponseTransform::Copy(copying)))
    }),
    ("ResponseHeader", "response_header", |r, s, f| {
        let (name, (mode, value)) = (name(r, f), set_or_append(r, s, f)?);
        let when = when(r, s);
        let value = header_value(r, f, value)?;
        let name = free(r, f, name?)?;
        Some(Transform::Response(ResponseTransform::Value { name, value, mode, when }))
    }),
    ("ResponseHeaderRemove", "response_header_remove", |r, s, f| {
        let (name, when) = (name(r, f), when(r, s));
        let name = free(r, f, name?)?;
        Some(Transform::Response(ResponseTransform::Remove { name, when }))
    }),
    ("ResponseHeadersAllowed", "response_headers_allowed", |r, _, f| {
        names(r, f).map(|names| Transform::Response(ResponseTransform::Allowed(names)))
    }),
    // Trailers go on as they came, which is what this asks for.
    ("ResponseTrailersCopy", "response_trailers_copy", |r, _, f| {
        if f.flag(r) == Some(false) {
            complain(r, f, format!("`{}` is not supported", f.name), "trailers go on as they came");
        }
        None
    }),
];

const UNSERVED: [(&str, &str); 4] = [
    ("ClientCert", "client_cert"),
    ("ResponseTrailer", "response_trailer"),
    ("ResponseTrailerRemove", "response_trailer_remove"),
    ("ResponseTrailersAllowed", "response_trailers_allowed"),
];

/// Takes a key that each format spells in its own way.
fn take<'n>(r: &mut Reading<'_>, s: &mut Section<'n>, yarp: &'static str, native: &'static str) -> Option<Field<'n>> {
    let key = match r.dialect {
        Dialect::Yarp => yarp,
        Dialect::Native | Dialect::Rhi => native,
    };
    s.take_as(r, key, native)
}

/// An error; in a YARP file, where YARP would take it, a warning.
fn complain(r: &mut Reading<'_>, field: &Field<'_>, what: String, label: &str) {
    let diagnostic = match r.dialect {
        Dialect::Yarp => Diagnostic::warning(what),
        Dialect::Native | Dialect::Rhi => Diagnostic::error(what),
    };
    r.note(field.node.span, diagnostic.label(label));
}

fn copying(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Copying> {
    field.flag(r).map(|flag| if flag { Copying::All } else { Copying::Nothing })
}

fn name(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let name = field.text(r)?;
    if matching::is_header_name(name) {
        return Some(name.to_ascii_lowercase());
    }
    field.refuse(r, format!("`{name}` is no header name"), "expected letters, digits and -");
    None
}

/// `a;b`, or a list.
fn names(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let items = if field.node.scalar().is_some() { vec![field.clone()] } else { field.list(r) };
    for item in items {
        let text = item.any_text(r)?;
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            if !matching::is_header_name(part) {
                item.refuse(r, format!("`{part}` is no header name"), "expected letters, digits and -");
                return None;
            }
            names.push(part.to_ascii_lowercase());
        }
    }
    Some(names)
}

fn free(r: &mut Reading<'_>, field: &Field<'_>, name: String) -> Option<String> {
    if !is_reserved(&name) {
        return Some(name);
    }
    let label = if name.contains("forwarded") { "see the transforms X-Forwarded and Forwarded" } else { RESERVED };
    complain(r, field, format!("`{name}` is not a transform's to change"), label);
    None
}

/// The same for a request, where Host may be set.
fn settable(r: &mut Reading<'_>, field: &Field<'_>, name: String, mode: Mode) -> Option<String> {
    if name == "host" && mode == Mode::Append {
        complain(r, field, "`Host` cannot be appended to".to_owned(), "a request has one Host: expected `set`");
        return None;
    }
    free(r, field, name)
}

fn header_value(r: &mut Reading<'_>, field: &Field<'_>, value: String) -> Option<String> {
    if matching::is_header_value(&value) {
        return Some(value.trim().to_owned());
    }
    field.refuse(
        r,
        format!("the value of `{}` cannot stand in a header", field.name),
        "expected no control characters",
    );
    None
}

fn set_or_append(r: &mut Reading<'_>, s: &mut Section<'_>, field: &Field<'_>) -> Option<(Mode, String)> {
    let set = take(r, s, "Set", "set").map(|value| (Mode::Set, value));
    let append = take(r, s, "Append", "append").map(|value| (Mode::Append, value));
    match (set, append) {
        (Some((mode, value)), None) | (None, Some((mode, value))) => {
            value.any_text(r).map(|text| (mode, text.to_owned()))
        }
        (None, None) | (Some(_), Some(_)) => {
            r.error(field.key_span, format!("`{}` needs a value", field.name), "expected one of set and append");
            None
        }
    }
}

fn when(r: &mut Reading<'_>, s: &mut Section<'_>) -> When {
    let words = [("Success", When::Success), ("Failure", When::Failure), ("Always", When::Always)];
    take(r, s, "When", "when").and_then(|field| field.word(r, &words)).unwrap_or_default()
}

fn path(r: &mut Reading<'_>, field: &Field<'_>) -> Option<PathText> {
    let text = field.text(r)?;
    match PathText::parse(text) {
        Ok(path) => Some(path),
        Err(why) => {
            field.refuse(r, format!("`{text}` is no path"), why);
            None
        }
    }
}

fn pattern(r: &mut Reading<'_>, field: &Field<'_>) -> Option<PathPattern> {
    let text = field.text(r)?;
    let text = match r.dialect {
        Dialect::Yarp if !text.starts_with('/') => format!("/{text}"),
        Dialect::Yarp | Dialect::Native | Dialect::Rhi => text.to_owned(),
    };
    let mut pattern = matching::path(r, field, &text)?;
    for segment in &mut pattern.segments {
        if let Segment::Literal(literal) = segment {
            match PathText::parse(&format!("/{literal}")) {
                Ok(path) => *literal = path.as_str().trim_start_matches('/').to_owned(),
                Err(why) => {
                    field.refuse(r, format!("`{text}` is no path"), why);
                    return None;
                }
            }
        }
    }
    Some(pattern)
}

fn method(r: &mut Reading<'_>, s: &mut Section<'_>, field: &Field<'_>) -> Option<Transform> {
    let Some(to) = take(r, s, "Set", "set") else {
        r.error(field.key_span, format!("`{}` needs a value", field.name), "expected set");
        return None;
    };
    let methods = matching::methods(r, std::slice::from_ref(field)).pop().zip(matching::methods(r, &[to]).pop());
    let (from, to) = methods?;
    // What the answer's body is depends on these.
    if [&from, &to].iter().any(|method| matches!(method.as_str(), "HEAD" | "CONNECT")) {
        complain(r, field, format!("`{from}` cannot become `{to}`"), "HEAD and CONNECT stay what they are");
        return None;
    }
    Some(Transform::Target(TargetTransform::Method { from, to }))
}

const ACTIONS: [(&str, ForwardAction); 4] = [
    ("Set", ForwardAction::Set),
    ("Append", ForwardAction::Append),
    ("Remove", ForwardAction::Remove),
    ("Off", ForwardAction::Off),
];

fn x_forwarded(r: &mut Reading<'_>, s: &mut Section<'_>, field: &Field<'_>) -> Option<Transform> {
    let all = field.word(r, &ACTIONS);
    let mut action = |yarp, native| match take(r, s, yarp, native) {
        Some(field) => field.word(r, &ACTIONS),
        None => all,
    };
    let (address, proto) = (action("For", "for"), action("Proto", "proto"));
    let (host, prefix) = (action("Host", "host"), action("Prefix", "prefix"));
    let header_prefix = match take(r, s, "HeaderPrefix", "header_prefix") {
        Some(field) => {
            let text = field.text(r)?;
            if !matching::is_header_name(text) {
                field.refuse(r, format!("`{text}` begins no header name"), "expected letters, digits and -");
                return None;
            }
            text.to_owned()
        }
        None => HEADER_PREFIX.to_owned(),
    };
    let (address, proto, host, prefix) = (address?, proto?, host?, prefix?);
    Some(Transform::XForwarded(XForwarded { address, proto, host, prefix, header_prefix }))
}

fn forwarded(r: &mut Reading<'_>, s: &mut Section<'_>, field: &Field<'_>) -> Option<Transform> {
    let mut format = |yarp, native| {
        let (words, formats): (Vec<_>, Vec<_>) = NODE_FORMATS.iter().copied().unzip();
        let words: Vec<(&str, usize)> = words.into_iter().zip(0..).collect();
        let found = take(r, s, yarp, native).and_then(|field| field.word(r, &words));
        found.and_then(|at| formats.get(at).copied()).unwrap_or_default()
    };
    let (of_for, of_by) = (format("ForFormat", "for_format"), format("ByFormat", "by_format"));
    let action = take(r, s, "Action", "action").and_then(|field| field.word(r, &ACTIONS));
    let mut parts = Vec::new();
    for word in field.any_text(r)?.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        parts.push(match word.to_ascii_lowercase().as_str() {
            "for" => ForwardedPart::For(of_for),
            "by" => ForwardedPart::By(of_by),
            "proto" => ForwardedPart::Proto,
            "host" => ForwardedPart::Host,
            _ => {
                field.refuse(r, format!("`{word}` is no part of Forwarded"), "expected for, by, proto or host");
                return None;
            }
        });
    }
    Some(Transform::Forwarded(Forwarded { parts, action: action.unwrap_or(ForwardAction::Set) }))
}

/// The formats by their names.
pub const NODE_FORMATS: [(&str, NodeFormat); 9] = [
    ("Random", NodeFormat { name: NodeName::Random, port: NodePort::None }),
    ("RandomAndPort", NodeFormat { name: NodeName::Random, port: NodePort::Port }),
    ("RandomAndRandomPort", NodeFormat { name: NodeName::Random, port: NodePort::Random }),
    ("Unknown", NodeFormat { name: NodeName::Unknown, port: NodePort::None }),
    ("UnknownAndPort", NodeFormat { name: NodeName::Unknown, port: NodePort::Port }),
    ("UnknownAndRandomPort", NodeFormat { name: NodeName::Unknown, port: NodePort::Random }),
    ("Ip", NodeFormat { name: NodeName::Ip, port: NodePort::None }),
    ("IpAndPort", NodeFormat { name: NodeName::Ip, port: NodePort::Port }),
    ("IpAndRandomPort", NodeFormat { name: NodeName::Ip, port: NodePort::Random }),
];

const RESERVED: &str = "it belongs to one connection or to the body's framing";
const HEADER_PREFIX: &str = "X-Forwarded-";
