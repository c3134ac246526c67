//! One task that carries reads and changes out, strictly one after the other, and answers in that order.
//!
//! The core relies on the order: a dump that was asked for before a change shows the state before it. The queue into
//! the task is unbounded but small in fact: the core has at most one command per address and one read under way.

use std::collections::BTreeSet;

use rhi::AddressKey;
use rhi::core::{Changed, Input};
use tokio::sync::mpsc;

use crate::netlink::addresses::{Addresses, Refused};

/// What the task is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Read these interfaces.
    Read(BTreeSet<String>),
    /// Put an address there.
    Add(AddressKey),
    /// Take an address off.
    Remove(AddressKey),
}

/// Works jobs off until the queue is closed.
pub async fn run<A: Addresses>(mut addresses: A, mut jobs: mpsc::UnboundedReceiver<Job>, answers: mpsc::Sender<Input>) {
    while let Some(job) = jobs.recv().await {
        let answer = match job {
            Job::Read(interfaces) => match addresses.read(interfaces).await {
                Ok(interfaces) => Input::AddressesSeen { interfaces },
                Err(refused) => Input::ReadFailed { error: refused.to_string() },
            },
            Job::Add(key) => {
                let result = match addresses.add(key.clone()).await {
                    Ok(()) => Changed::Done,
                    Err(Refused::Exists) => Changed::AlreadySo,
                    Err(Refused::Absent) => Changed::Failed("there is no such interface".to_owned()),
                    Err(refused @ Refused::Other(_)) => Changed::Failed(refused.to_string()),
                };
                Input::AddressChanged { key, result }
            }
            Job::Remove(key) => {
                let result = match addresses.remove(key.clone()).await {
                    Ok(()) => Changed::Done,
                    Err(Refused::Absent) => Changed::AlreadySo,
                    Err(refused @ (Refused::Exists | Refused::Other(_))) => Changed::Failed(refused.to_string()),
                };
                Input::AddressChanged { key, result }
            }
        };
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}
