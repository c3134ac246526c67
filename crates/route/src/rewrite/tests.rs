//! Transforms of the target, one by one and together.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};

use model::address::Scheme;
use model::request::{BodyFacts, Method, NoFields};
use model::transform::PathText;

use super::*;

fn facts<'a>(path: &'a str, query: Option<&'a str>) -> RequestFacts<'a> {
    RequestFacts {
        method: Method::Put,
        method_name: "PUT",
        scheme: Scheme::Http,
        host: "h",
        port: 80,
        path,
        query,
        fields: &NoFields,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        body: BodyFacts::None,
        is_upgrade: false,
        attempt: 1,
    }
}

fn path(text: &str) -> PathText {
    PathText::parse(text).unwrap()
}

fn rewritten(transforms: &[TargetTransform], pattern: &str, target: &str) -> Result<String, PathError> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let values = values(&PathPattern::parse(pattern).unwrap(), path);
    let target = rewrite(transforms, &values, &facts(path, query))?;
    Ok(match target.query {
        Some(query) => format!("{}?{query}", target.path),
        None => target.path,
    })
}

#[test]
fn a_prefix_is_removed_by_whole_segments_as_routes_compare_them() {
    for (target, expected) in [
        ("/api/x", "/x"),
        ("/API/x", "/x"),
        ("/%61pi/x", "/x"),
        ("/api", "/"),
        ("/api/", "/"),
        ("/api//x", "//x"),
        ("/apix/y", "/apix/y"),
        ("/other", "/other"),
        ("/api%2Fx", "/api%2Fx"),
        ("/api/a%2Fb%20c?q=%41", "/a%2Fb%20c?q=%41"),
        ("/api/x?", "/x?"),
        ("*", "*"),
    ] {
        let removed = rewritten(&[TargetTransform::PathRemovePrefix(path("/api"))], "/{**all}", target);
        assert_eq!(removed.as_deref(), Ok(expected), "{target}");
    }
    let two = TargetTransform::PathRemovePrefix(path("/a/b/"));
    let removed = |target| rewritten(std::slice::from_ref(&two), "/{**all}", target).unwrap();
    assert_eq!([removed("/a/b/c"), removed("/a"), removed("/a/b")], ["/c", "/a", "/"].map(str::to_owned));
}

#[test]
fn paths_are_set_prefixed_and_filled_from_the_pattern() {
    let pattern = |text: &str| TargetTransform::PathPattern(PathPattern::parse(text).unwrap());
    for (transform, from, target, expected) in [
        (TargetTransform::PathSet(path("/new")), "/{**all}", "/old?a=1", "/new?a=1"),
        (TargetTransform::PathPrefix(path("/base")), "/{**all}", "/x", "/base/x"),
        (TargetTransform::PathPrefix(path("/base/")), "/{**all}", "/", "/base/"),
        (pattern("/v2/{id}/{**rest}"), "/api/{id}/{**rest}", "/api/4%2F2/x/y%20z/", "/v2/4%2F2/x/y%20z/"),
        (pattern("/v2/{rest}"), "/api/{**rest}", "/api", "/v2"),
        (pattern("/{absent}"), "/api/{id?}", "/api/1", "/"),
        (pattern("/x/{ID}"), "/api/{id?}", "/api/1", "/x/1"),
    ] {
        assert_eq!(rewritten(&[transform], from, target).as_deref(), Ok(expected), "{target}");
    }
}

#[test]
fn queries_are_set_appended_and_removed_and_the_rest_stays_byte_by_byte() {
    let value = |mode| TargetTransform::QueryValue { name: "a b".to_owned(), value: "x&y=ä".to_owned(), mode };
    let of_route =
        TargetTransform::QueryRouteValue { name: "id".to_owned(), parameter: "id".to_owned(), mode: Mode::Set };
    for (transform, target, expected) in [
        (value(Mode::Set), "/i/1?A+B=1&c=%7e&a%20b", "/i/1?c=%7e&a%20b=x%26y%3D%C3%A4"),
        (value(Mode::Append), "/i/1?a+b=1", "/i/1?a+b=1&a%20b=x%26y%3D%C3%A4"),
        (value(Mode::Append), "/i/1", "/i/1?a%20b=x%26y%3D%C3%A4"),
        (TargetTransform::QueryRemove("Q".to_owned()), "/i/1?q=1&r&%71=2", "/i/1?r"),
        (TargetTransform::QueryRemove("q".to_owned()), "/i/1?q=1", "/i/1"),
        (of_route, "/i/1&admin=1+%41?id=9", "/i/1&admin=1+%41?id=1%26admin%3D1%2B%41"),
    ] {
        assert_eq!(rewritten(&[transform], "/i/{id}", target).as_deref(), Ok(expected), "{target}");
    }
}

#[test]
fn a_method_becomes_another_and_order_counts() {
    let method = |from: &str, to: &str| TargetTransform::Method { from: from.to_owned(), to: to.to_owned() };
    let target = rewrite(&[method("PUT", "POST"), method("GET", "TRACE")], &[], &facts("/", None)).unwrap();
    assert_eq!(target.method, "POST");
    let both = [TargetTransform::PathPrefix(path("/a")), TargetTransform::PathRemovePrefix(path("/a/b"))];
    assert_eq!(rewritten(&both, "/{**all}", "/b/c").as_deref(), Ok("/c"));
}

#[test]
fn no_transform_makes_a_path_that_a_client_may_not_send() {
    let strip = [TargetTransform::PathRemovePrefix(path("/api"))];
    // What was refused on the way in does not come here; the check holds for what is put together as well.
    assert_eq!(rewritten(&strip, "/{**all}", "/api/..%2fadmin"), Err(PathError::DotSegment));
    let fill = [TargetTransform::PathPattern(PathPattern::parse("/x/{id}").unwrap())];
    assert_eq!(rewritten(&fill, "/api/{id}", "/api/%2e%2e"), Err(PathError::DotSegment));
}

#[test]
fn a_header_gets_decoded_text_only_where_that_is_safe() {
    for (value, expected) in
        [("a%20b", "a b"), ("a%0d%0ab", "a%0d%0ab"), ("%C3%A4", "%C3%A4"), ("%20a", "%20a"), ("%2525", "%25")]
    {
        assert_eq!(of_header(value), expected);
    }
}
