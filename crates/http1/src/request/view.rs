//! A request's head as its readers see it: facts for routing, fields for who writes it anew.

use model::address::Scheme;
use model::request::{BodyFacts, Fields, Method};

use super::{RequestHead, text};
use crate::connection::{Persistence, Version};
use crate::fields::{Fate, Field, Known, Section, Span};
use crate::framing::RequestFraming;

/// A parsed head and its bytes.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) head: &'a RequestHead,
}

impl<'a> Request<'a> {
    /// The method.
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The method as it came.
    pub fn method_name(&self) -> &'a str {
        match self.head.method {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Connect => "CONNECT",
            Method::Other => text(self.head.method_name.of(self.bytes)),
        }
    }

    /// The version of the client.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// Host of the target, else of the Host field: lower case, without port, IPv6 in brackets; empty when an HTTP/1.0
    /// client sent none.
    pub fn host(&self) -> &'a str {
        &self.head.host
    }

    /// Port of the target, else of the Host field, when one was written.
    pub fn port(&self) -> Option<u16> {
        self.head.port
    }

    /// The scheme of a target in absolute form. A server refuses one that the connection does not speak
    /// (RFC 9110 7.4).
    pub fn scheme(&self) -> Option<Scheme> {
        self.head.target.scheme
    }

    /// `host[:port]` as it came; empty when an HTTP/1.0 client sent none.
    pub fn authority(&self) -> &'a str {
        self.head.authority.of_text(&self.head.text)
    }

    /// The path as it came; `/` when the target had none, `*` for `OPTIONS *`.
    pub fn path(&self) -> &'a str {
        match self.head.target.path.of_text(&self.head.text) {
            "" if self.head.target.is_asterisk => "*",
            "" => "/",
            path => path,
        }
    }

    /// What came after `?`, without it.
    pub fn query(&self) -> Option<&'a str> {
        self.head.target.query.map(|query| query.of_text(&self.head.text))
    }

    /// How the body ends.
    pub fn framing(&self) -> RequestFraming {
        self.head.framing
    }

    /// The framing in the words of the decision makers.
    pub fn body(&self) -> BodyFacts {
        match self.head.framing {
            RequestFraming::None => BodyFacts::None,
            RequestFraming::Length(length) => BodyFacts::Length(length),
            RequestFraming::Chunked => BodyFacts::Unknown,
        }
    }

    /// Whether the client's connection may carry another request.
    pub fn persistence(&self) -> Persistence {
        self.head.persistence
    }

    /// Whether the client waits for a 100 before it sends its body (RFC 9110 10.1.1).
    pub fn expects_continue(&self) -> bool {
        self.head.expects_continue
    }

    /// Whether the client takes trailers (`TE: trailers`).
    pub fn wants_trailers(&self) -> bool {
        self.head.wants_trailers
    }

    /// Which attempt the client says that it is (`Lazaret-Attempt`); 1 where it says nothing, or no number.
    pub fn attempt(&self) -> u8 {
        let (bytes, section) = self.section();
        let said = section.values(bytes, Known::Attempt).next().and_then(|value| std::str::from_utf8(value).ok());
        said.and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
    }

    /// Whether the client offers another protocol that the destination may be offered ([`crate::upgrade`]).
    pub fn offers_upgrade(&self) -> bool {
        self.head.offers_upgrade
    }

    /// All fields with name and value, in order, whatever becomes of them.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &'a [u8], &'a [u8])> + use<'a> {
        let bytes = self.bytes;
        self.head.fields.as_slice().iter().map(move |field| (*field, field.name.of(bytes), field.value.of(bytes)))
    }

    /// The values of a field that means something to a proxy, in order; those that `Connection` ended are left out.
    pub fn values(&self, known: Known) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        let fields = self.head.fields.all(known).filter(|field| field.fate == Fate::ByName);
        fields.map(move |field| field.value.of(bytes))
    }

    /// The request line with its end, where a line to a destination would be the same but for a path in front.
    pub(crate) fn line(&self) -> Option<Span> {
        let is_same = self.head.version == Version::Http11 && self.head.target.authority.is_none();
        is_same.then(|| self.head.method_name.through(self.head.target_place, " HTTP/1.1\r\n".len()))
    }

    pub(crate) fn section(&self) -> (&'a [u8], &'a Section) {
        (self.bytes, &self.head.fields)
    }
}

impl Fields for Request<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for (_, found, value) in self.fields() {
            if found.eq_ignore_ascii_case(name.as_bytes()) {
                visit(value);
            }
        }
    }
}
