//! The fake side of [`Addresses`]: interfaces in memory, shared with the test that looks at them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rhi::kernel::{LinkState, Tag};
use rhi::{AddressKey, Held, Link};

use crate::netlink::addresses::{Addresses, Refused};

/// Interfaces in memory; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    links: BTreeMap<String, Link>,
    calls: Vec<String>,
    refuses: Option<String>,
}

impl Fake {
    /// With one interface that is up and empty.
    pub fn with_interface(name: &str) -> Self {
        let fake = Self::default();
        let link = Link { index: 1, state: LinkState::Up, addresses: BTreeSet::new() };
        fake.with(|state| state.links.insert(name.to_owned(), link));
        fake
    }

    /// As if somebody else had put an address there.
    pub fn put(&self, key: &AddressKey) {
        self.with(|state| {
            if let Some(link) = state.links.get_mut(&key.interface) {
                link.addresses.insert(Held { address: key.address, prefix_len: key.prefix_len, tag: Tag::Foreign });
            }
        });
    }

    /// As if somebody else had emptied the interface.
    pub fn flush(&self, interface: &str) {
        self.with(|state| {
            if let Some(link) = state.links.get_mut(interface) {
                link.addresses.clear();
            }
        });
    }

    /// From now on every change is refused with these words, or works again.
    pub fn refuse(&self, words: Option<&str>) {
        self.with(|state| state.refuses = words.map(str::to_owned));
    }

    /// What is on the interface now.
    pub fn held(&self, interface: &str) -> Vec<Held> {
        self.with(|state| {
            state.links.get(interface).map(|link| link.addresses.iter().copied().collect()).unwrap_or_default()
        })
    }

    /// Every change that was asked for, in order.
    pub fn calls(&self) -> Vec<String> {
        self.with(|state| state.calls.clone())
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(
        &self,
        verb: &str,
        key: &AddressKey,
        act: impl FnOnce(&mut Link) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.with(|state| {
            state.calls.push(format!("{verb} {key}"));
            if let Some(words) = &state.refuses {
                return Err(Refused::Other(words.clone()));
            }
            act(state.links.get_mut(&key.interface).ok_or(Refused::Absent)?)
        })
    }
}

impl Addresses for Fake {
    async fn read(&mut self, interfaces: BTreeSet<String>) -> Result<BTreeMap<String, Option<Link>>, Refused> {
        Ok(self
            .with(|state| interfaces.into_iter().map(|name| (name.clone(), state.links.get(&name).cloned())).collect()))
    }

    async fn add(&mut self, key: AddressKey) -> Result<(), Refused> {
        self.change("add", &key, |link| {
            let is_same = |held: &Held| held.address == key.address && held.prefix_len == key.prefix_len;
            if link.addresses.iter().any(is_same) {
                return Err(Refused::Exists);
            }
            link.addresses.insert(Held { address: key.address, prefix_len: key.prefix_len, tag: Tag::Ours });
            Ok(())
        })
    }

    async fn remove(&mut self, key: AddressKey) -> Result<(), Refused> {
        self.change("remove", &key, |link| {
            let before = link.addresses.len();
            link.addresses.retain(|held| !(held.address == key.address && held.prefix_len == key.prefix_len));
            if link.addresses.len() == before { Err(Refused::Absent) } else { Ok(()) }
        })
    }
}
