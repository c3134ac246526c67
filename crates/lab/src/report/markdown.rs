//! Verdicts over many scenarios as tables of a Markdown document, put between marks so that nobody writes them by hand.

use std::fmt::Write;

use super::number;
use crate::verdict::Verdict;

/// The tables: one for each number of tries, then every place where the policy is worse than the best of the others.
pub fn render(verdicts: &[Verdict], name: &str, seeds: usize) -> String {
    let mut text = format!(
        "{seeds} seeds. Each cell: {name}'s mean, then the best of the others. A difference counts when it is more than both 95 % \
         intervals leave to luck; where {name} is the worse one by so much, its figure stands in bold.\n"
    );
    let mut attempts: Vec<u8> = verdicts.iter().map(|one| one.attempts).collect();
    attempts.sort_unstable();
    attempts.dedup();
    for tries in attempts.into_iter().rev() {
        let of: Vec<&Verdict> = verdicts.iter().filter(|one| one.attempts == tries).collect();
        let _ = writeln!(text, "\n### {}\n", retries(tries));
        text += "| scenario | failures | added p99, ms | healthy time lost, s | no worse in |\n|---|---|---|---|---|\n";
        for one in &of {
            let _ = write!(text, "| {} |", one.title);
            for (place, mine) in one.mine.iter().enumerate() {
                let best = one.best.get(place).copied().map(number).unwrap_or_default();
                let mark = if one.is_worse.get(place) == Some(&true) { "**" } else { "" };
                let _ = write!(text, " {mark}{}{mark} / {best} |", number(*mine));
            }
            let _ = writeln!(text, " {} of 3{} |", one.held, beaten(one));
        }
        let well = of.iter().filter(|one| one.held >= 2).count();
        let lost = of.iter().filter(|one| !one.beaten_by.is_empty()).count();
        let _ = writeln!(
            text,
            "\nNo worse than the best of all the others in at least two of three: {well} of {} scenarios. Beaten in all three by \
             one and the same other: {lost}.",
            of.len()
        );
    }
    text += "\n### Where it is worse\n\n| scenario | tries | what | it | best | whose |\n|---|---|---|---|---|---|\n";
    for one in verdicts {
        for (place, what) in ["failures", "added p99, ms", "healthy time lost, s"].iter().enumerate() {
            if one.is_worse.get(place) != Some(&true) {
                continue;
            }
            let [mine, best] = [&one.mine, &one.best].map(|of| of.get(place).copied().map(number).unwrap_or_default());
            let whose = one.best_of.get(place).cloned().unwrap_or_default();
            let _ = writeln!(text, "| {} | {} | {what} | {mine} | {best} | {whose} |", one.title, one.attempts);
        }
    }
    text
}

/// The document with what stands between its marks replaced; `None` where it has no such marks.
pub fn splice(document: &str, tables: &str) -> Option<String> {
    let (head, rest) = document.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{tables}{END}{tail}"))
}

fn retries(tries: u8) -> String {
    if tries > 1 { format!("Up to {tries} tries of a request") } else { "Without retries".to_owned() }
}

fn beaten(one: &Verdict) -> String {
    if one.beaten_by.is_empty() { String::new() } else { format!(", beaten by {}", one.beaten_by.join(", ")) }
}

/// Around what is written by the lab.
const BEGIN: &str = "<!-- lab: begin (lazaret lab run --document) -->";
const END: &str = "<!-- lab: end -->";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tables_go_between_the_marks_and_nowhere_else() {
        let document = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let spliced = splice(&document, "new\n").unwrap();
        assert_eq!(spliced, format!("head\n{BEGIN}\nnew\n{END}\ntail\n"));
        assert_eq!(splice(&spliced, "new\n").unwrap(), spliced);
        assert_eq!(splice("nothing", "new\n"), None);
    }

    #[test]
    fn each_worse_figure_is_listed_with_whose_is_better() {
        let verdict = Verdict {
            title: "storm".into(),
            attempts: 3,
            mine: [7.0, 1.0, 20.0],
            best: [7.0, 1.0, 3.0],
            best_of: ["nginx", "nginx", "model of envoy"].map(str::to_owned),
            is_worse: [false, false, true],
            held: 2,
            beaten_by: Vec::new(),
        };
        let text = render(&[verdict], "lazaret", 5);
        assert!(text.contains("| storm | 7.00 / 7.00 | 1.00 / 1.00 | **20.0** / 3.00 | 2 of 3 |"), "{text}");
        assert!(text.contains("1 of 1 scenarios"), "{text}");
        assert!(text.contains("| storm | 3 | healthy time lost, s | 20.0 | 3.00 | model of envoy |"), "{text}");
    }
}
