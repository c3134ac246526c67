//! Cookie and Set-Cookie fields (RFC 6265 4.1, 5.4).

use std::fmt::Write;

use model::affinity::AffinityCookie;

/// The values of all cookies of this name on one Cookie line, surrounding quotes removed. Names compare by case.
pub fn values<'a>(line: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    line.split(|&b| b == b';').filter_map(move |pair| {
        let at = pair.iter().position(|&b| b == b'=')?;
        let (key, value) = (pair.get(..at)?, pair.get(at + 1..)?);
        (key.trim_ascii() == name).then(|| match value.trim_ascii() {
            [b'"', inner @ .., b'"'] => inner,
            value => value,
        })
    })
}

/// The value of a Set-Cookie field.
pub fn set_cookie(name: &str, value: &str, attributes: &AffinityCookie) -> String {
    let mut text = format!("{name}={value}; Path={}", attributes.path);
    if let Some(domain) = &attributes.domain {
        // Writing to a String cannot fail.
        let _ = write!(text, "; Domain={domain}");
    }
    if let Some(age) = attributes.max_age {
        let _ = write!(text, "; Max-Age={}", age.as_secs());
    }
    if attributes.secure {
        text.push_str("; Secure");
    }
    if let Some(same_site) = &attributes.same_site {
        let _ = write!(text, "; SameSite={same_site}");
    }
    if attributes.http_only {
        text.push_str("; HttpOnly");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn cookies_are_written_with_their_attributes() {
        assert_eq!(set_cookie("lz", "ab", &AffinityCookie::default()), "lz=ab; Path=/; HttpOnly");
        let all = AffinityCookie {
            path: "/x".to_owned(),
            domain: Some("a.test".to_owned()),
            http_only: false,
            secure: true,
            same_site: Some("Lax".to_owned()),
            max_age: Some(Duration::from_secs(60)),
        };
        assert_eq!(set_cookie("lz", "ab", &all), "lz=ab; Path=/x; Domain=a.test; Max-Age=60; Secure; SameSite=Lax");
    }
}
