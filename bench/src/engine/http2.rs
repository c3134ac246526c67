//! HTTP/2 (RFC 9113) as far as one GET on a connection needs it: what the client sends, and when its answer is whole.

/// The preface, settings that change nothing, and a GET of `/` as stream 1.
pub(crate) fn request(authority: &str) -> Vec<u8> {
    // Indexed: GET, https and / (RFC 7541, appendix A). Then a literal of a known name, not to be indexed.
    let mut fields = vec![0x82, 0x87, 0x84, 0x01];
    // Shorter than 127 bytes, so its length is one byte.
    fields.push(u8::try_from(authority.len()).unwrap_or_default());
    fields.extend_from_slice(authority.as_bytes());
    let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields);
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(SETTINGS, 0, 0, &[])[..], &headers].concat()
}

/// What reading some bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing to do.
    More,
    /// Settings that are to be acknowledged.
    Settings,
    /// The end of stream 1.
    End,
    /// The end of the connection.
    Over,
}

/// The frames of one connection.
#[derive(Default)]
pub(super) struct Frames {
    /// Of a frame that is not complete.
    unread: Vec<u8>,
}

impl Frames {
    /// Reads on. Settings come before anything else, so what comes later is what counts.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Seen> {
        self.unread.extend_from_slice(bytes);
        let mut all = Vec::new();
        while let Some(([high, middle, low, kind, flags, stream @ ..], _)) = self.unread.split_first_chunk::<HEAD>() {
            let end = HEAD + u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            if self.unread.len() < end {
                break;
            }
            all.push(match (*kind, flags & 1, u32::from_be_bytes(*stream)) {
                (SETTINGS, 0, _) => Seen::Settings,
                (DATA | HEADERS, END_STREAM, 1) => Seen::End,
                (RESET | GO_AWAY, ..) => Seen::Over,
                _ => Seen::More,
            });
            self.unread.drain(..end);
        }
        // A connection at rest holds nothing here.
        if self.unread.is_empty() {
            self.unread = Vec::new();
        }
        all
    }
}

/// Says that settings were taken.
pub(super) fn acknowledgement() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    // What is sent here is short.
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    let mut frame = vec![high, middle, low, kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_stream_ends_however_it_is_cut() {
        let answer = [
            frame(SETTINGS, 0, 0, &[0; 6]),
            acknowledgement(),
            frame(HEADERS, END_HEADERS, 1, b"head"),
            frame(DATA, END_STREAM, 1, b"body"),
        ]
        .concat();
        for at in 0..answer.len() {
            let mut frames = Frames::default();
            let (one, other) = answer.split_at(at);
            let seen = [frames.read(one), frames.read(other)].concat();
            assert_eq!(seen, [Seen::Settings, Seen::More, Seen::More, Seen::End], "{at}");
        }
    }

    #[test]
    fn a_request_is_a_preface_settings_and_headers() {
        let request = request("a.test");
        let (_, frames) = request.split_at(24);
        assert_eq!(frames.get(..9), Some(&[0, 0, 0, 4, 0, 0, 0, 0, 0][..]));
        assert_eq!(frames.get(9..), Some(&b"\0\0\x0b\x01\x05\0\0\0\x01\x82\x87\x84\x01\x06a.test"[..]));
    }
}
