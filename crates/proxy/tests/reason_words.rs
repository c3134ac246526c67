//! docs/http.md lists each word that an answer, or a line of the access log, may have as its reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

const DOCS: &str = include_str!("../../../docs/http.md");
/// Where the words stand that are not in `exchange::reason`, which has a test of its own.
const SOURCES: [&str; 8] = [
    include_str!("../../http1/src/error.rs"),
    include_str!("../../http1/src/body.rs"),
    include_str!("../../http2/src/error.rs"),
    include_str!("../src/turn/answer.rs"),
    include_str!("../src/turn/forward.rs"),
    include_str!("../src/relay/answer.rs"),
    include_str!("../src/relay/deliver.rs"),
    include_str!("../src/tunnel.rs"),
];

/// Words in lower case with dashes, between quotes, in the arms of a match.
fn words(source: &str) -> impl Iterator<Item = &str> {
    let arms = source.lines().filter(|line| line.contains("=> ") && !line.contains("http_"));
    arms.flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && word.len() > 1)
}

#[test]
fn every_word_of_a_refusal_or_a_broken_response_is_documented() {
    let found: Vec<&str> = SOURCES.into_iter().flat_map(words).collect();
    assert!(found.len() >= 40, "the words were not found: {found:?}");
    // Of a destination's head: the client is told `not-http`.
    let of_responses = ["status-line", "status-line-too-long"];
    for word in found.into_iter().filter(|word| !of_responses.contains(word)) {
        assert!(DOCS.contains(&format!("`{word}`")), "docs/http.md lacks `{word}`");
    }
}
