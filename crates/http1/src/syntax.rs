//! Which bytes may stand where (RFC 9110 5.5 and 5.6, RFC 3986 2), and the few helpers over them.

use std::io::Write as _;
use std::net::IpAddr;

/// Whether `byte` may stand in a token: a method, a field name, an option (RFC 9110 5.6.2).
pub fn is_token(byte: u8) -> bool {
    class(byte) & TOKEN != 0
}

/// Whether `byte` may stand in a field value: visible ASCII, blank, tab, and bytes above 0x7f (RFC 9110 5.5).
pub fn is_value(byte: u8) -> bool {
    class(byte) & VALUE != 0
}

/// Whether `byte` may stand in a request target: visible ASCII without `"`, `#`, `<`, `>`, `\`, `^`, `` ` ``, `{`,
/// `|` and `}`. RFC 3986 asks for those to be percent-encoded; of them only the ones that servers read in different
/// ways (`#`, `\`, `"`, `<`, `>`) are refused here, as browsers do send the others as they are.
pub fn is_target(byte: u8) -> bool {
    class(byte) & TARGET != 0
}

/// Whether `byte` may stand in a host name: unreserved, percent or sub-delimiter (RFC 3986 3.2.2, without `,`: a
/// second host in one value).
pub fn is_host(byte: u8) -> bool {
    class(byte) & HOST != 0
}

/// A value without the blanks and tabs around it.
pub fn trim(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|b| !is_blank(*b)).unwrap_or(value.len());
    let end = value.iter().rposition(|b| !is_blank(*b)).map_or(start, |last| last + 1);
    value.get(start..end).unwrap_or_default()
}

/// The elements of a comma-separated value, trimmed; empty ones included, so that strict readers can refuse them.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

/// A decimal number of digits only, as `Content-Length` has it (RFC 9110 8.6). `None`: not digits, empty or too big.
pub fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends a number in decimal.
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut text = [0u8; 20];
    let mut rest = number;
    let mut length = 0;
    for place in text.iter_mut().rev() {
        // The remainder is below ten, so the cast keeps it.
        *place = b'0' + (rest % 10) as u8;
        length += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(text.get(text.len() - length..).unwrap_or_default());
}

/// Appends an address as text, without a port (RFC 5952 for IPv6).
pub fn write_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for octet in address.octets() {
                write_octet(out, octet);
            }
            // The last dot.
            out.pop();
        }
        // Writing into memory does not fail.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

/// With a dot behind it. Four bytes are stored, whatever the length: a copy of unknown length costs more.
fn write_octet(out: &mut Vec<u8>, octet: u8) {
    let (text, length) = OCTETS[usize::from(octet)];
    out.extend_from_slice(&text);
    out.truncate(out.len() - text.len() + usize::from(length));
}

/// Each octet in decimal with a dot behind it, and the length of both.
static OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([b'.'; 4], 0); 256];
    let mut octet = 0;
    while octet < table.len() {
        let [hundreds, tens, ones] = [octet / 100, octet / 10 % 10, octet % 10];
        let digits = [b'0' + hundreds as u8, b'0' + tens as u8, b'0' + ones as u8];
        table[octet] = match digits {
            [b'0', b'0', ones] => ([ones, b'.', b'.', b'.'], 2),
            [b'0', tens, ones] => ([tens, ones, b'.', b'.'], 3),
            [hundreds, tens, ones] => ([hundreds, tens, ones, b'.'], 4),
        };
        octet += 1;
    }
    table
};

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

const TOKEN: u8 = 1;
const VALUE: u8 = 2;
const TARGET: u8 = 4;
const HOST: u8 = 8;

/// One table for all classes: a byte costs one load.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut byte = 0usize;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if b.is_ascii_alphanumeric() || contains(b"!#$%&'*+-.^_`|~", b) {
            class |= TOKEN;
        }
        if b == b'\t' || (b >= b' ' && b != 0x7f) {
            class |= VALUE;
        }
        if b.is_ascii_graphic() && !contains(b"\"#<>\\", b) {
            class |= TARGET;
        }
        if b.is_ascii_alphanumeric() || contains(b"-._~%!$&'()*+;=", b) {
            class |= HOST;
        }
        table[byte] = class;
        byte += 1;
    }
    table
}

const fn contains(set: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_only() {
        for (text, number) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("1 1", None),
            ("0x1", None),
            ("1_0", None),
        ] {
            assert_eq!(digits(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, 1234567890, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    #[test]
    fn addresses_are_written_as_the_standard_library_writes_them() {
        for text in ["192.0.2.7", "0.0.0.0", "255.255.255.255", "::1", "2001:db8::7", "::ffff:192.0.2.7"] {
            let address: IpAddr = text.parse().unwrap_or(IpAddr::from([9; 4]));
            let mut out = Vec::new();
            write_address(&mut out, address);
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn values_are_trimmed_of_blanks_and_tabs_only() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
        assert_eq!(list(b"a, ,b ").collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
    }
}
