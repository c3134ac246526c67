//! A path is matched in the form in which it is forwarded: no other spelling of a denied one comes through, and what is
//! harmless passes byte by byte. (envoyproxy/envoy #6589, nitrojs/nitro #4222, projectcalico/calico #12531; RFC 3986 6.2.2)

use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::Destination;

/// PATH-01
#[test]
fn no_spelling_of_a_denied_path_reaches_a_destination_and_ordinary_ones_pass_byte_by_byte() {
    let (api, rest) = (Destination::answering(200, "api"), Destination::answering(200, "rest"));
    let lazaret = Lazaret::start(&format!(
        "routes:\n  admin: {{match: {{path: \"/admin/{{**rest}}\"}}, deny: 403}}\n  api: {{match: {{path: \
         \"/api/{{**rest}}\"}}, cluster: api, transforms: [{{path_remove_prefix: /api}}]}}\n  rest: {{match: {{path: \
         \"/{{**rest}}\"}}, cluster: rest}}\n  server: {{cluster: rest}}\nclusters:\n  api: {{destinations: {{one: {{address: \
         \"{}\"}}}}}}\n  rest: {{destinations: {{one: {{address: \"{}\"}}}}}}\n",
        api.url(),
        rest.url()
    ));
    let ask = |method: &str, target: &[u8]| {
        let (of_api, of_rest) = (api.requests().len(), rest.requests().len());
        let mut client = Client::connect(lazaret.proxy);
        client.send([method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat());
        let status = client.response().status();
        let came = [api.requests().get(of_api).cloned(), rest.requests().get(of_rest).cloned()];
        let seen = came.into_iter().flatten().map(|request| request.message.target()).next();
        (status, seen)
    };
    let refused: [(&[u8], u16); 16] = [
        (b"/admin", 403),
        (b"/admin/x", 403),
        (b"/ADMIN", 403),
        (b"/%61dmin", 403),
        (b"/%61%64%6d%69%6e/x", 403),
        (b"/api/..%2fadmin", 400),
        (b"/api/%2e%2e/admin", 400),
        (b"/api/%2E%2E%2Fadmin", 400),
        (b"/api//../admin", 400),
        (b"/./admin", 400),
        (b"/api\\..\\admin", 400),
        (b"/api%5c..%5cadmin", 400),
        (b"/api%00", 400),
        (b"/%zz", 400),
        (b"/\xff\xfe", 400),
        (b"/x#frag", 400),
    ];
    for (target, status) in refused {
        assert_eq!(ask("GET", target), (status, None), "{}", String::from_utf8_lossy(target));
    }
    for (target, seen) in [
        ("/x%2Fy%20z", "/x%2Fy%20z"),
        ("/?", "/?"),
        ("/a//b", "/a//b"),
        // No form of these is the denied path.
        ("//admin", "//admin"),
        ("/admin;x", "/admin;x"),
        ("/administrator", "/administrator"),
        ("/api/x%2Fy?q=%2e%2e", "/x%2Fy?q=%2e%2e"),
        ("/caf%C3%A9", "/caf%C3%A9"),
    ] {
        assert_eq!(ask("GET", target.as_bytes()), (200, Some(seen.to_owned())), "{target}");
    }
    assert_eq!(ask("OPTIONS", b"*"), (200, Some("*".to_owned())));
    assert_eq!(ask("GET", b"*").0, 400);
}
