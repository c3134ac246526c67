//! However a client spells Transfer-Encoding, destination and proxy never disagree about where its request ends: it is
//! refused and the connection closed, or forwarded with one clean framing field. (sozu-proxy/sozu #726)

use end_to_end::process::Lazaret;
use testkit::client::{Client, End};
use testkit::destination::{Destination, Request};
use testkit::message::Expect;

/// The body of each request: read as chunked it is `AB` and ends at the empty line; read by its length it is all of it.
/// What would be left over is a request for `/smuggled`.
const BODY: &str = "2\r\nAB\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";

#[test]
fn no_spelling_of_transfer_encoding_makes_one_request_two() {
    let destination = Destination::start(|moment| match moment {
        testkit::destination::Moment::Accepted => Vec::new(),
        testkit::destination::Moment::Request(_) => testkit::destination::answer(200, "ok"),
    });
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{destinations: {{one: {{address: \
         \"{}\"}}}}}}}}\n",
        destination.url()
    ));
    for fields in [
        "Transfer-Encoding: chunked\t\r\n",
        "Transfer-Encoding: \tchunked\r\n",
        "Transfer-Encoding:\tchunked\r\n",
        "Transfer-Encoding: Chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: x\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n",
        "Transfer_Encoding: chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
    ] {
        for version in ["1.1", "1.0"] {
            for has_length in [true, false] {
                check(&lazaret, &destination, fields, version, has_length);
            }
        }
    }
}

fn check(lazaret: &Lazaret, destination: &Destination, fields: &str, version: &str, has_length: bool) {
    let case = format!("HTTP/{version} length {has_length} {fields:?}");
    let before = destination.requests().len();
    let length = if has_length { format!("Content-Length: {}\r\n", BODY.len()) } else { String::new() };
    let mut client = Client::connect(lazaret.proxy);
    client.send(format!("POST /one HTTP/{version}\r\nHost: a.test\r\n{length}{fields}\r\n{BODY}"));
    let (response, result) = client.try_response(Expect::Response);
    assert!(result.is_ok(), "{case}: {response:?}");
    let status = response.status();
    // To the end, so that nothing of this connection is still under way afterwards.
    let _ = client.try_send("GET /last HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    let (rest, end) = client.rest();
    assert_ne!(end, End::Open, "{case}: the connection goes on");
    let got: Vec<Request> = destination.requests().split_off(before);
    if status == 200 {
        // Exactly the request that the client sent, with one framing field and nothing odd beside it.
        assert_eq!(got[0].message.target(), "/one", "{case}");
        let (te, cl) = (got[0].message.values("transfer-encoding"), got[0].message.values("content-length"));
        assert!(te.is_empty() || cl.is_empty(), "{case}: both {te:?} and {cl:?} reached the destination");
        assert!(te.is_empty() || te == ["chunked"], "{case}: {te:?} reached the destination");
        assert!(cl.len() <= 1, "{case}: {cl:?} reached the destination");
        let is_whole = cl.is_empty() || !te.is_empty() || got[0].message.body == BODY.as_bytes() || cl == ["2"];
        assert!(is_whole, "{case}: {:?}", got[0].message);
        let names = got[0].message.field_names().join(" ").to_ascii_lowercase();
        assert!(!names.contains("transfer_encoding") || te.is_empty(), "{case}: {names}");
        // What the destination took for a request, the proxy took for one, too, and answered it.
        let answers = 1 + String::from_utf8_lossy(&rest).matches("HTTP/1.1 200").count();
        assert_eq!(got.len(), answers, "{case}: {:?}", targets(&got));
        let is_smuggled = targets(&got).contains(&"/smuggled".to_owned());
        assert!(!(has_length && is_smuggled), "{case}: by its length there is no second request");
    } else {
        assert!(matches!(status, 400 | 501), "{case}: {status}");
        assert_eq!(got.len(), 0, "{case}: it was refused and yet forwarded");
        assert!(rest.is_empty(), "{case}: {}", String::from_utf8_lossy(&rest));
    }
    if version == "1.0" && fields.starts_with("Transfer-Encoding: chunked\r\n") {
        assert_eq!(status, 400, "{case}: HTTP/1.0 has no transfer codings");
    }
    if has_length && fields == "Transfer-Encoding: Chunked\r\n" {
        assert_ne!(status, 200, "{case}: two framings");
    }
}

fn targets(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| request.message.target()).collect()
}
