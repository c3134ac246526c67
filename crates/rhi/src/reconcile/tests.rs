//! What is changed, and what is left alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::kernel::{Held, Link, LinkState};

fn picture(held: &[(&str, &str, u8, Tag)]) -> Picture {
    let mut links: BTreeMap<String, Option<Link>> = BTreeMap::new();
    for name in ["rhi0", "old0"] {
        let addresses = held
            .iter()
            .filter(|(interface, ..)| *interface == name)
            .map(|(_, address, prefix_len, tag)| Held {
                address: address.parse().unwrap(),
                prefix_len: *prefix_len,
                tag: *tag,
            })
            .collect();
        links.insert(name.to_owned(), Some(Link { index: 1, state: LinkState::Up, addresses }));
    }
    let mut picture = Picture::default();
    picture.replace(links);
    picture
}

fn shown(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| format!("{:?} {} {:?}", change.action, change.key, change.why)).collect()
}

fn desired<'a>(vips: &[(&str, Wanted)]) -> Desired<'a> {
    let vips = vips.iter().map(|(address, wanted)| (address.parse().unwrap(), *wanted)).collect();
    Desired { interface: "rhi0", vips, ..Desired::default() }
}

#[test]
fn a_wanted_vip_is_put_up_with_a_host_prefix_and_other_prefixes_go_afterwards() {
    let desired = desired(&[("10.0.0.1", Wanted::Announced), ("fd00::1", Wanted::Announced)]);
    let before = picture(&[("rhi0", "10.0.0.1", 24, Tag::Foreign)]);
    assert_eq!(
        shown(&changes(&desired, &before)),
        ["Add 10.0.0.1/32 on rhi0 Announced", "Add fd00::1/128 on rhi0 Announced"]
    );
    let after = picture(&[
        ("rhi0", "10.0.0.1", 24, Tag::Foreign),
        ("rhi0", "10.0.0.1", 32, Tag::Ours),
        ("rhi0", "fd00::1", 128, Tag::Foreign),
    ]);
    assert_eq!(shown(&changes(&desired, &after)), ["Remove 10.0.0.1/24 on rhi0 WrongPrefix"]);
}

#[test]
fn a_withdrawn_vip_goes_with_every_prefix_whoever_put_it_there() {
    let desired = desired(&[("10.0.0.1", Wanted::Withdrawn)]);
    let held = picture(&[("rhi0", "10.0.0.1", 24, Tag::Foreign), ("rhi0", "10.0.0.1", 32, Tag::Ours)]);
    assert_eq!(
        shown(&changes(&desired, &held)),
        ["Remove 10.0.0.1/24 on rhi0 Withdrawn", "Remove 10.0.0.1/32 on rhi0 Withdrawn"]
    );
}

#[test]
fn foreign_addresses_and_undecided_vips_are_left_alone_and_leftovers_go() {
    let mut desired = desired(&[]);
    desired.undecided.insert("10.0.0.3".parse().unwrap());
    let held = picture(&[
        ("rhi0", "10.0.0.1", 32, Tag::Foreign),
        ("rhi0", "10.0.0.2", 32, Tag::Ours),
        ("rhi0", "10.0.0.3", 32, Tag::Ours),
        ("old0", "10.0.0.4", 32, Tag::Ours),
    ]);
    assert_eq!(shown(&changes(&desired, &held)), ["Remove 10.0.0.2/32 on rhi0 Leftover"]);
}

#[test]
fn an_interface_that_was_left_keeps_a_wanted_vip_until_the_new_one_has_it() {
    let mut desired = desired(&[("10.0.0.1", Wanted::Announced), ("10.0.0.2", Wanted::Withdrawn)]);
    desired.leaving.insert("old0".to_owned());
    let before = picture(&[
        ("old0", "10.0.0.1", 32, Tag::Ours),
        ("old0", "10.0.0.2", 32, Tag::Ours),
        ("old0", "10.9.9.9", 24, Tag::Foreign),
    ]);
    assert_eq!(
        shown(&changes(&desired, &before)),
        ["Add 10.0.0.1/32 on rhi0 Announced", "Remove 10.0.0.2/32 on old0 InterfaceLeft"]
    );
    let after = picture(&[("rhi0", "10.0.0.1", 32, Tag::Ours), ("old0", "10.0.0.1", 32, Tag::Ours)]);
    assert_eq!(shown(&changes(&desired, &after)), ["Remove 10.0.0.1/32 on old0 InterfaceLeft"]);
}

#[test]
fn nothing_is_added_to_an_interface_that_is_not_there() {
    let desired = desired(&[("10.0.0.1", Wanted::Announced)]);
    let mut gone = Picture::default();
    gone.replace(BTreeMap::from([("rhi0".to_owned(), None)]));
    assert!(changes(&desired, &gone).is_empty());
}
