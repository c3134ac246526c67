//! "Did you mean": the known word nearest to one that is not known.

/// The candidate that `word` was probably meant to be: the same switch in other words, at most one edit for each three
/// letters, or one within the other. Case, `_` and `-` count for nothing.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = fold(word);
    let length = word.chars().count();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let switch = SWITCHES.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(switch, _)| *switch);
    if let Some(found) = candidates.iter().find(|candidate| Some(**candidate) == switch) {
        return Some(found);
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let folded = fold(candidate);
            let distance = distance(&word, &folded);
            let limit = (length.max(folded.chars().count()) / 3).max(1);
            let contained = folded.len() >= 4 && length >= 4 && (word.contains(&folded) || folded.contains(&word));
            (distance <= limit || contained).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ``did you mean `x`?``
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|found| format!("did you mean `{found}`?"))
}

/// Lower case, without `_` and `-`: how policy names compare.
pub fn fold(word: &str) -> String {
    word.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).take(MAX_WORD).collect()
}

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other: optimal string alignment.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x) {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

/// How switches are called elsewhere.
const SWITCHES: [(&str, &[&str]); 2] =
    [("on", &["yes", "true", "enabled", "enable"]), ("off", &["no", "false", "none", "disabled", "disable"])];
/// Words are compared by their first letters only, so that a long text costs nothing.
const MAX_WORD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_strangers_are_not() {
        let known = ["interval", "timeout", "TransportFailureRate", "path", "on"];
        for (word, meant) in [
            ("intervall", Some("interval")),
            ("timoeut", Some("timeout")),
            ("transport_failure_rate", Some("TransportFailureRate")),
            ("TransportFailureRateHealthPolicy", Some("TransportFailureRate")),
            ("pth", Some("path")),
            ("banana", None),
            ("yes", Some("on")),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest("no", ["on", "off"]), Some("off"));
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
