//! nginx 1.22's retry and max_fails, as transcripts of the machine together with the health core in virtual time.
//!
//! Each file replays one experiment that was made with nginx itself (Debian's 1.22.1, two servers on the loopback) and
//! notes what nginx did. Commands:
//!
//! ```text
//! cluster nginx servers=a,b max_fails=2 fail_timeout=4s attempts=2 on=error,timeout,http_500 [read=2s] [probe=1s]
//! b 500                            what the server does: a status, refused, reset, hang, cut
//! b 500 times 1                    so many times, then 200
//! b 500 each 100                   every so many times, 200 otherwise
//! send 40 GET every 20ms [patience 300ms]
//! wait 6s
//! health
//! ```
//!
//! `read` is the time for a response head, `probe` an active check with this interval. Requests go one after the other,
//! an answer takes one microsecond. Hits are printed with the seconds since the start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;
mod world;

use world::World;

#[test]
fn nginx_and_the_machine_agree() {
    testkit::transcript::check("tests/transcripts/nginx", |_| {
        let mut world: Option<World> = None;
        move |command: &str| {
            let mut answer = String::new();
            for line in command.lines() {
                if let Some(options) = line.strip_prefix("cluster ") {
                    world = Some(World::new(options));
                } else {
                    answer.push_str(&world.as_mut().expect("a cluster first").run(line));
                }
            }
            answer
        }
    });
}
