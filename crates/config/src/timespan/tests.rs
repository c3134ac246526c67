//! Spans of time: what each format takes and refuses, and that writing and reading agree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

#[test]
fn native_spans_need_units() {
    for (text, expected) in [
        ("250ms", Ok(Duration::from_millis(250))),
        ("5s", Ok(Duration::from_secs(5))),
        ("1m30s", Ok(Duration::from_secs(90))),
        ("2h", Ok(Duration::from_secs(7200))),
        ("1.5h", Ok(Duration::from_secs(5400))),
        ("0s", Ok(Duration::ZERO)),
        ("0", Ok(Duration::ZERO)),
        ("00:00:10", Ok(Duration::from_secs(10))),
        ("1d", Ok(Duration::from_secs(86_400))),
        ("5", Err(TimeSpanError::NoUnit)),
        ("5.5", Err(TimeSpanError::NoUnit)),
        ("5sec", Err(TimeSpanError::Unit)),
        ("5s1m", Err(TimeSpanError::Order)),
        ("5s5s", Err(TimeSpanError::Order)),
        ("-1s", Err(TimeSpanError::Negative)),
        ("-00:00:01", Err(TimeSpanError::Negative)),
        ("24:00:00", Err(TimeSpanError::Range)),
        ("", Err(TimeSpanError::Syntax)),
        ("s", Err(TimeSpanError::Syntax)),
        ("1..5s", Err(TimeSpanError::Syntax)),
        ("99999999999d", Err(TimeSpanError::TooLong)),
        ("99999999999999999999999d", Err(TimeSpanError::TooLong)),
    ] {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn a_bare_number_in_rhi_yaml_is_seconds() {
    assert_eq!(parse_seconds("3"), Ok(Duration::from_secs(3)));
    assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_seconds("3s"), Ok(Duration::from_secs(3)));
    assert_eq!(parse_seconds("x"), Err(TimeSpanError::Syntax));
}

#[test]
fn dotnet_spans_follow_the_constant_format() {
    let seconds = |text| parse_dotnet(text).map(|span| span.ticks / SECOND_TICKS);
    for (text, expected) in [
        ("10", Ok(864_000)),
        ("00:10", Ok(600)),
        ("00:00:10", Ok(10)),
        (" 0:0:1 ", Ok(1)),
        ("1.02:03:04", Ok(93_784)),
        ("-00:00:01", Ok(-1)),
        ("24:00:00", Err(TimeSpanError::Range)),
        ("00:60", Err(TimeSpanError::Range)),
        ("00:00:00.12345678", Err(TimeSpanError::Syntax)),
        ("00:00:00.", Err(TimeSpanError::Syntax)),
        ("5s", Err(TimeSpanError::Syntax)),
        ("1:2:3:4", Err(TimeSpanError::Syntax)),
        ("", Err(TimeSpanError::Syntax)),
    ] {
        assert_eq!(seconds(text), expected, "{text}");
    }
    assert_eq!(parse_dotnet("00:00:00.5").map(|span| span.ticks), Ok(5_000_000));
    assert_eq!(parse_dotnet("10").unwrap().form, DotNetForm::BareDays);
}

proptest! {
    #[test]
    fn what_is_written_reads_back(nanos in 0..MAX_NANOS) {
        let span = Duration::from_nanos(nanos);
        prop_assert_eq!(parse(&format(span)), Ok(span));
    }

    #[test]
    fn dotnet_clocks_read_back(days in 0u32..10_000, h in 0u32..24, m in 0u32..60, s in 0u32..60, ticks in 0u32..10_000_000) {
        let text = format!("{days}.{h:02}:{m:02}:{s:02}.{ticks:07}");
        let seconds = u64::from(days) * 86_400 + u64::from(h * 3600 + m * 60 + s);
        prop_assert_eq!(parse_dotnet(&text).unwrap().to_duration(), Some(Duration::new(seconds, ticks * 100)));
    }

    #[test]
    fn no_text_panics(text in "[-0-9.:a-z ]{0,24}") {
        let _ = (parse(&text), parse_seconds(&text), parse_dotnet(&text));
    }
}
