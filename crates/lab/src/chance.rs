//! Chance without a shared sequence: each draw comes from a stream of its own, named by what it is drawn for.
//!
//! So two policies that meet the same request at the same destination meet the same luck, however differently the rest
//! of their runs went; what differs between their results is theirs alone (common random numbers).

use model::random::Random;

/// What a draw is for. Part of the stream's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The time to the next arrival.
    Gap,
    /// Whether an arrival of the busiest moment happens now.
    Thinning,
    /// The request's method.
    Method,
    /// The proxy and the worker that a request comes to.
    Entrance,
    /// Whether a request is one that fails everywhere.
    BadRequest,
    /// What the balancing policy draws for a request.
    Pick,
    /// A service time.
    Service,
    /// Whether a share of the faults hits an attempt.
    Fault,
    /// How long a client thinks.
    Think,
    /// The jitter of a proxy's own decisions.
    Proxy,
}

impl Draw {
    /// Whether a proxy draws it, and neither the clients nor the world behind it.
    fn is_of_proxies(self) -> bool {
        match self {
            Self::Entrance | Self::Pick | Self::Proxy => true,
            Self::Gap
            | Self::Thinning
            | Self::Method
            | Self::BadRequest
            | Self::Service
            | Self::Fault
            | Self::Think => false,
        }
    }
}

/// All streams of one seed.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    seed: u64,
    /// Of the proxies' own draws.
    turns: u64,
}

impl Chance {
    /// The streams of this seed.
    pub fn new(seed: u64) -> Self {
        Self::with_turns(seed, 0)
    }

    /// The same requests and the same luck as with this seed alone, met by proxies whose own draws come out otherwise: for
    /// each of `turns` in another way.
    pub fn with_turns(seed: u64, turns: u64) -> Self {
        Self { seed: mix(seed ^ 0x6c61_6262_6c61_6262), turns: if turns == 0 { 0 } else { mix(turns) } }
    }

    /// The stream of one purpose and up to two numbers.
    pub fn stream(self, draw: Draw, a: u64, b: u64) -> Random {
        let purpose = (draw as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seed = if draw.is_of_proxies() { self.seed ^ self.turns } else { self.seed };
        Random::new(mix(mix(seed ^ purpose ^ a).wrapping_add(b.wrapping_mul(0xd6e8_feb8_6659_fd93))))
    }

    /// One number of it in [0, 1).
    pub fn unit(self, draw: Draw, a: u64, b: u64) -> f64 {
        self.stream(draw, a, b).unit()
    }
}

/// A mean of one, exponentially distributed, from a number in [0, 1).
pub fn exponential(unit: f64) -> f64 {
    -libm::log(1.0 - unit)
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_other_names_differ_and_those_of_the_same_name_are_equal() {
        let chance = Chance::new(1);
        let one = chance.unit(Draw::Service, 3, 4);
        assert_eq!(one, Chance::new(1).unit(Draw::Service, 3, 4));
        for other in [
            chance.unit(Draw::Service, 4, 3),
            chance.unit(Draw::Fault, 3, 4),
            Chance::new(2).unit(Draw::Service, 3, 4),
            chance.unit(Draw::Service, 3, 5),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn other_turns_change_what_proxies_draw_and_nothing_else() {
        let (one, other) = (Chance::new(1), Chance::with_turns(1, 2));
        for draw in [Draw::Gap, Draw::Method, Draw::Service, Draw::Fault, Draw::BadRequest] {
            assert_eq!(one.unit(draw, 3, 4), other.unit(draw, 3, 4), "{draw:?}");
        }
        for draw in [Draw::Pick, Draw::Proxy, Draw::Entrance] {
            assert_ne!(one.unit(draw, 3, 4), other.unit(draw, 3, 4), "{draw:?}");
        }
    }

    #[test]
    fn neighbouring_streams_are_even_and_independent() {
        let chance = Chance::new(7);
        let draws: Vec<f64> = (0..20_000).map(|n| chance.unit(Draw::Gap, n, 0)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let lag: f64 = draws.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)).sum::<f64>() / draws.len() as f64;
        assert!(lag.abs() < 0.003, "{lag}");
        let waits: f64 = draws.iter().map(|unit| exponential(*unit)).sum::<f64>() / draws.len() as f64;
        assert!((waits - 1.0).abs() < 0.03, "{waits}");
    }
}
