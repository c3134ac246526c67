//! The wall clock as text: in RFC 3339 for the access log, as HTTP has it (RFC 9110 5.6.7) for answers of our own.

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::time::Timestamp;

use crate::access_log::json;

/// The value of `Date`, written once a second.
#[derive(Default)]
pub(crate) struct Date {
    /// Until then the text holds.
    until: Cell<Timestamp>,
    text: RefCell<String>,
}

impl Date {
    /// Hands out the text for `now`; the wall clock is read when the second is over.
    pub(crate) fn with<T>(&self, now: Timestamp, take: impl FnOnce(&str) -> T) -> T {
        if now >= self.until.get() {
            let since_epoch = since_epoch();
            self.until.set(now + rest_of_second(since_epoch));
            self.text.replace(imf_fixdate(since_epoch));
        }
        take(&self.text.borrow())
    }
}

/// The wall clock in RFC 3339, UTC, to the millisecond. All but the milliseconds is written once a second.
#[derive(Default)]
pub(crate) struct Stamp {
    /// When the second is over.
    until: Cell<Timestamp>,
    second: RefCell<String>,
}

impl Stamp {
    /// Appends the text for `now`. The wall clock is read when the second is over; what is earlier than its beginning
    /// gets that.
    pub(crate) fn write(&self, out: &mut Vec<u8>, now: Timestamp) {
        if now >= self.until.get() {
            let since_epoch = since_epoch();
            self.until.set(now + rest_of_second(since_epoch));
            self.second.replace(rfc3339(since_epoch));
        }
        out.extend_from_slice(self.second.borrow().as_bytes());
        let into = Duration::from_secs(1).saturating_sub(self.until.get().since(now));
        out.push(b'.');
        out.extend_from_slice(&json::three_digits(into.subsec_millis()));
        out.push(b'Z');
    }
}

/// More than nothing.
fn rest_of_second(since_epoch: Duration) -> Duration {
    Duration::from_secs(1) - Duration::from_nanos(u64::from(since_epoch.subsec_nanos()))
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// To the second, without a zone.
fn rfc3339(since_epoch: Duration) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = civil(since_epoch);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

fn imf_fixdate(since_epoch: Duration) -> String {
    let Civil { year, month, day, hour, minute, second, weekday } = civil(since_epoch);
    let name = |names: [&'static str; 12], at: u64| usize::try_from(at).ok().and_then(|at| names.get(at).copied());
    let month = name(MONTHS, month - 1).unwrap_or_default();
    let weekday = name(WEEKDAYS, weekday).unwrap_or_default();
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

struct Civil {
    year: u64,
    /// 1 to 12.
    month: u64,
    /// 1 to 31.
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    /// From Sunday, 0.
    weekday: u64,
}

/// Civil date from days: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn civil(since_epoch: Duration) -> Civil {
    let seconds = since_epoch.as_secs();
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    Civil {
        year: year_of_era + era * 400 + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * shifted + 2) / 5 + 1,
        hour: time / 3600,
        minute: time / 60 % 60,
        second: time % 60,
        // The first day was a Thursday.
        weekday: (days + 4) % 7,
    }
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Seven of them; the rest is never asked for.
const WEEKDAYS: [&str; 12] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "", "", "", "", ""];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_are_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds) + Duration::from_millis(7)), text);
        }
    }

    #[test]
    fn a_stamp_counts_the_milliseconds_of_its_second() {
        let stamp = Stamp::default();
        let text = |now: Timestamp| {
            let mut out = Vec::new();
            stamp.write(&mut out, now);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(text(Timestamp::from_secs(1)).len(), "2000-02-29T00:00:00.000Z".len());
        stamp.second.replace("2000-02-29T00:00:00".into());
        stamp.until.set(Timestamp::from_secs(8));
        for (millis, written) in [(7000, "000"), (7001, "001"), (7042, "042"), (7999, "999"), (6999, "000"), (1, "000")]
        {
            assert_eq!(text(Timestamp::from_millis(millis)), format!("2000-02-29T00:00:00.{written}Z"));
        }
        assert_ne!(text(Timestamp::from_secs(8)), "2000-02-29T00:00:01.000Z");
    }

    #[test]
    fn dates_are_written_as_http_has_them() {
        // The example of RFC 9110 5.6.7, and the ends of a leap day.
        for (seconds, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
        ] {
            assert_eq!(imf_fixdate(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_date_is_kept_for_the_rest_of_its_second() {
        let date = Date::default();
        let start = Timestamp::from_millis(1);
        date.with(start, |text| assert_eq!(text.len(), 29));
        date.text.replace("kept".into());
        date.with(start, |text| assert_eq!(text, "kept"));
        date.with(start + Duration::from_secs(1), |text| assert_eq!(text.len(), 29));
    }
}
