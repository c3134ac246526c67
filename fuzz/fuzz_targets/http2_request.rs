//! A request of HTTP/2 as HTTP/1.1 text: no panic, one line per field, the same request read back, and nothing that the
//! next hop could take for a second one.
#![no_main]

use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http2::request::{Rest, read, write};
use http2::trailers;
use libfuzzer_sys::fuzz_target;

const WIDE: HeadLimits = HeadLimits { line: 1 << 20, bytes: 1 << 20, fields: 4096 };

fuzz_target!(|bytes: &[u8]| {
    // Method, path, authority, then fields: one a line, name and value split by the first tab.
    let mut lines = bytes.split(|&byte| byte == 0);
    let mut next = || lines.next().unwrap_or_default();
    let (Ok(method), Ok(path)) = (Method::from_bytes(next()), PathAndQuery::try_from(next())) else { return };
    let authority = next();
    let mut uri = Uri::builder().scheme("http").path_and_query(path.clone());
    if !authority.is_empty() {
        uri = uri.authority(authority);
    }
    let uri = match uri.build() {
        Ok(uri) => uri,
        Err(_) if authority.is_empty() => Uri::from(path),
        Err(_) => return,
    };
    let mut fields = HeaderMap::new();
    for line in lines {
        let tab = line.iter().position(|&byte| byte == b'\t').unwrap_or(line.len());
        let (name, value) = line.split_at(tab);
        let value = value.get(1..).unwrap_or_default();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            fields.append(name, value);
        }
    }
    if trailers::judge(&fields).is_ok() {
        let mut section = Vec::new();
        trailers::write(&mut section, &fields);
        assert_eq!(trailers::read(&section), Ok(fields.clone()));
    }
    let mut request = Request::new(());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = fields.clone();
    let parts = request.into_parts().0;
    for rest in [Rest::Nothing, Rest::Follows] {
        let mut text = Vec::new();
        if write(&mut text, &parts, rest).is_err() {
            continue;
        }
        let mut peers = [httparse::EMPTY_HEADER; 4096];
        let mut peer = httparse::Request::new(&mut peers);
        let mut head = RequestHead::default();
        match head.parse(&text, &WIDE) {
            Ok(Parsed::Complete) => {}
            Ok(Parsed::Partial) => panic!("the text is not complete"),
            Err(_) => continue,
        }
        assert_eq!(head.len(), text.len(), "something stands behind the head");
        assert_eq!(peer.parse(&text), Ok(httparse::Status::Complete(text.len())));
        assert_eq!(peer.method, Some(method.as_str()));
        let view = head.view(&text);
        assert_eq!(view.fields().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"cookie")).count().max(1), 1);
        for (name, values) in fields.keys().map(|name| (name, fields.get_all(name))) {
            if ["host", "cookie", "content-length"].contains(&name.as_str()) {
                continue;
            }
            let found = view.fields().filter(|(_, found, _)| *found == name.as_str().as_bytes()).map(|(_, _, v)| v);
            assert!(values.iter().map(HeaderValue::as_bytes).eq(found));
        }
        match read(&text, &mut RequestHead::default(), Scheme::HTTP) {
            Ok(again) => assert_eq!(again.method(), &method),
            // A registered name may hold `%` (RFC 3986 3.2.2); the http crate has no form for it.
            Err(fault) => assert!(view.authority().contains('%'), "{fault:?}"),
        }
    }
});
