//! Servers as a script has them.

use model::time::Timestamp;

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Status(u16),
    Refused,
    Reset,
    Hang,
    Cut,
}

/// With which requests it does that; it answers others with 200.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Always,
    Times(u32),
    Each(u32),
}

/// One server, and when requests came.
pub struct Server {
    pub act: Act,
    pub when: When,
    pub seen: u32,
    pub hits: Vec<Timestamp>,
}

impl Server {
    pub fn next(&mut self, now: Timestamp) -> Act {
        self.hits.push(now);
        self.seen += 1;
        self.act_now()
    }

    pub fn act_now(&self) -> Act {
        let is_on = match self.when {
            When::Always => true,
            When::Times(n) => self.seen <= n,
            When::Each(n) => self.seen.is_multiple_of(n),
        };
        if is_on { self.act } else { Act::Status(200) }
    }
}
