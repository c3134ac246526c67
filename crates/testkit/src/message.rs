//! HTTP/1.1 messages as they came over the wire, with as little parsing as a test needs.
//!
//! Written apart from the product's own parser, so that the one can be held against the other. It trusts its peer: a
//! message that is not HTTP is a failed test.

use std::io::{self, Read};

/// A request or response as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// First line, fields and the empty line, byte for byte.
    pub head: Vec<u8>,
    /// The body without its transfer coding.
    pub body: Vec<u8>,
    /// The body as it came, chunk sizes and trailers included.
    pub raw_body: Vec<u8>,
}

impl Message {
    /// The first line without its end.
    pub fn first_line(&self) -> String {
        self.lines().next().unwrap_or_default()
    }

    /// A request's method.
    pub fn method(&self) -> String {
        self.word(0)
    }

    /// A request's target.
    pub fn target(&self) -> String {
        self.word(1)
    }

    /// A response's status; 0 when there is none.
    pub fn status(&self) -> u16 {
        self.word(1).parse().unwrap_or(0)
    }

    /// The values of a field, in order; names compare without case.
    pub fn values(&self, name: &str) -> Vec<String> {
        let fields = self.lines().skip(1).filter_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        fields.collect()
    }

    /// The first value of a field.
    pub fn value(&self, name: &str) -> Option<String> {
        self.values(name).into_iter().next()
    }

    /// The names of all fields, in order and as written.
    pub fn field_names(&self) -> Vec<String> {
        self.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn word(&self, at: usize) -> String {
        self.first_line().split(' ').nth(at).unwrap_or_default().to_owned()
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let text = String::from_utf8_lossy(&self.head).into_owned();
        text.split("\r\n").filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>().into_iter()
    }
}

/// Whether a body can follow a head whatever its fields say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A request: no length means no body.
    Request,
    /// A response: no length means up to the end of the connection.
    Response,
    /// A response to HEAD: never a body.
    ResponseToHead,
}

/// Reads one byte stream as messages; bytes behind a message are kept for the next.
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new() }
    }

    /// What was read and belongs to no message yet.
    pub fn rest(&self) -> &[u8] {
        &self.buffer
    }

    /// The source itself.
    pub fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// A head with its empty line; `None` when the stream ends before its first byte.
    pub fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                return Ok(Some(self.take(end + 4)));
            }
            if self.fill()? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(cut()) };
            }
        }
    }

    /// The body that belongs to `message.head`, into `message`. What had come of it stays there when it breaks off.
    pub fn body(&mut self, message: &mut Message, expect: Expect) -> io::Result<()> {
        let coding = message.value("transfer-encoding").unwrap_or_default();
        let length = message.value("content-length").and_then(|length| length.parse::<usize>().ok());
        let has_none = expect == Expect::ResponseToHead
            || (expect == Expect::Response && (message.status() < 200 || matches!(message.status(), 204 | 304)));
        if has_none {
            Ok(())
        } else if coding.eq_ignore_ascii_case("chunked") {
            self.chunks(message)
        } else if let Some(length) = length {
            let result = self.take_into(&mut message.raw_body, length);
            message.body.clone_from(&message.raw_body);
            result
        } else if expect == Expect::Response {
            let result = self.to_end(&mut message.raw_body);
            message.body.clone_from(&message.raw_body);
            result
        } else {
            Ok(())
        }
    }

    /// Everything up to the end of the stream.
    pub fn to_end(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        loop {
            into.append(&mut self.buffer);
            if self.fill()? == 0 {
                return Ok(());
            }
        }
    }

    /// What there is, or the next that comes; empty at the end of the stream.
    pub fn piece(&mut self) -> io::Result<Vec<u8>> {
        if self.buffer.is_empty() {
            self.fill()?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    fn chunks(&mut self, message: &mut Message) -> io::Result<()> {
        loop {
            let line = self.line(&mut message.raw_body)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{line:?} is no chunk size")))?;
            if size == 0 {
                while !self.line(&mut message.raw_body)?.is_empty() {}
                return Ok(());
            }
            let start = message.raw_body.len();
            let result = self.take_into(&mut message.raw_body, size);
            message.body.extend_from_slice(&message.raw_body[start..]);
            result?;
            self.line(&mut message.raw_body)?;
        }
    }

    fn line(&mut self, raw: &mut Vec<u8>) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let line = self.take(end + 2);
                raw.extend_from_slice(&line);
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.fill()? == 0 {
                return Err(cut());
            }
        }
    }

    fn take_into(&mut self, into: &mut Vec<u8>, mut length: usize) -> io::Result<()> {
        loop {
            let part = self.take(length.min(self.buffer.len()));
            length -= part.len();
            into.extend_from_slice(&part);
            if length == 0 {
                return Ok(());
            }
            if self.fill()? == 0 {
                return Err(cut());
            }
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        self.buffer.drain(..length).collect()
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        let n = self.source.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..n]);
        Ok(n)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended within a message")
}
