//! Session tickets (RFC 5077, RFC 8446 4.6.1) sealed with keys that many processes share.
//!
//! ```text
//!   ticket = id of the key (16) | random (28) | AES-256-GCM of: issued at (8) | session
//!                                    └─ 16 choose the key of this one ticket, 12 are its nonce
//! ```
//! Each ticket has a key of its own, derived from the shared one, so that no number of tickets, from however many sites,
//! brings two under one key and nonce. What a session was judged by (whether and by whom clients are certified) is
//! mixed into the keys: a ticket of a listener that asks for no certificate opens nothing at one that does.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::server::ProducesTickets;

use super::shared_keys::{SharedKey, SharedKeys};

/// What a session was judged by, as a digest.
pub(super) type Judged = [u8; 32];

/// Seals and opens tickets.
#[derive(Debug)]
pub(super) struct Tickets {
    keys: Vec<TicketKey>,
    judged: Judged,
    now: fn() -> u64,
}

#[derive(Debug)]
struct TicketKey {
    id: [u8; ID],
    key: SharedKey,
}

impl Tickets {
    /// With the keys of a file.
    pub(super) fn shared(keys: SharedKeys, judged: Judged) -> Option<Arc<Self>> {
        let keys = keys.into_iter().map(|key| TicketKey::new(key, &judged)).collect::<Option<Vec<_>>>()?;
        Some(Arc::new(Self { keys, judged, now }))
    }
}

impl TicketKey {
    fn new(key: SharedKey, judged: &Judged) -> Option<Self> {
        let mut id = [0; ID];
        key.derive(&[b"ticket key id", judged], &mut id)?;
        Some(Self { id, key })
    }

    /// The key of the one ticket that begins with this salt.
    fn of_ticket(&self, judged: &Judged, salt: &[u8]) -> Option<LessSafeKey> {
        let mut key = [0; 32];
        self.key.derive(&[b"ticket key", judged, salt], &mut key)?;
        UnboundKey::new(&AES_256_GCM, &key).ok().map(LessSafeKey::new)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let first = self.keys.first()?;
        let mut random = [0; RANDOM];
        aws_lc_rs::rand::fill(&mut random).ok()?;
        let (salt, nonce) = random.split_at(SALT);
        let key = first.of_ticket(&self.judged, salt)?;
        let mut sealed = Vec::with_capacity(ISSUED + plain.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&(self.now)().to_be_bytes());
        sealed.extend_from_slice(plain);
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed).ok()?;
        Some([first.id.as_slice(), &random, &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (id, rest) = ticket.split_at_checked(ID)?;
        let (salt, rest) = rest.split_at_checked(SALT)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        // Ids are no secrets.
        let key = self.keys.iter().find(|key| key.id == id)?.of_ticket(&self.judged, salt)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = key.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
        let (issued, session) = plain.split_first_chunk::<ISSUED>()?;
        // A clock that is a little behind the one that issued it is no reason to refuse it.
        let age = (self.now)().saturating_sub(u64::from_be_bytes(*issued));
        (age <= u64::from(LIFETIME)).then(|| session.to_vec())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

const ID: usize = 16;
const SALT: usize = 16;
const RANDOM: usize = SALT + NONCE_LEN;
const ISSUED: usize = size_of::<u64>();
/// Seconds for which a session may be taken up again.
const LIFETIME: u32 = 12 * 3600;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tickets(keys: &[&str], judged: u8) -> Tickets {
        let text: String = keys.iter().map(|key| format!("{}\n", key.repeat(32))).collect();
        let keys = SharedKeys::parse(text.as_bytes()).unwrap();
        Arc::into_inner(Tickets::shared(keys, [judged; 32]).unwrap()).unwrap()
    }

    #[test]
    fn any_process_with_the_key_opens_what_another_sealed_while_the_key_is_kept() {
        let ticket = tickets(&["ab", "cd"], 1).encrypt(b"session").unwrap();
        assert_eq!(tickets(&["ef", "ab"], 1).decrypt(&ticket).unwrap(), b"session");
        assert_eq!(tickets(&["cd"], 1).decrypt(&ticket), None);
        let again = tickets(&["ab"], 1).encrypt(b"session").unwrap();
        assert_ne!(ticket, again);
    }

    #[test]
    fn a_ticket_opens_nothing_where_clients_are_judged_otherwise() {
        let ticket = tickets(&["ab"], 1).encrypt(b"session").unwrap();
        assert_eq!(tickets(&["ab"], 2).decrypt(&ticket), None);
    }

    #[test]
    fn a_ticket_that_was_changed_or_cut_at_any_byte_is_none() {
        let all = tickets(&["ab"], 1);
        let ticket = all.encrypt(b"session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(all.decrypt(&changed), None, "{at}");
            assert_eq!(all.decrypt(&ticket[..at]), None, "{at}");
        }
    }

    #[test]
    fn a_ticket_is_good_for_twelve_hours() {
        let at = |now| Tickets { now, ..tickets(&["ab"], 1) };
        let ticket = at(|| 1_000_000).encrypt(b"session").unwrap();
        assert!(at(|| 1_043_200).decrypt(&ticket).is_some() && at(|| 999_990).decrypt(&ticket).is_some());
        assert_eq!(at(|| 1_043_201).decrypt(&ticket), None);
    }
}
