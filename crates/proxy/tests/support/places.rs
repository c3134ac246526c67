//! Destinations with places, and what is known of those who wait for one.

use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::id::Slot;
use testkit::client::Client;
use testkit::destination::{Destination, Moment, answer};
use testkit::wait::eventually;

use super::{Proxy, Setup, setup};

/// A destination that answers each request, with its target, when it is told to.
pub fn held_back() -> (Destination, Sender<()>) {
    let (go, wait): (Sender<()>, Receiver<()>) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
            answer(200, &request.message.target())
        }
    });
    (destination, go)
}

/// All of it has one place.
pub fn one_place(destination: &Destination) -> Setup {
    setup(&[destination.addr()]).with(|cluster| {
        cluster.destinations[0].max_connections = NonZeroU32::new(1);
        cluster.queue.busy_timeout = Duration::from_secs(20);
    })
}

/// Has sent a request.
pub fn asking(proxy: &Proxy, path: &str) -> Client {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

/// So many wait now.
pub fn waits(proxy: &Proxy, n: usize) {
    proxy.counts(&format!("lazaret_queue_waiting{{cluster=\"c\"}} {n}"));
}

/// What came of waiting, so often.
pub fn came_of_it(proxy: &Proxy, result: &str, n: usize) {
    proxy.counts(&format!("lazaret_queued_total{{cluster=\"c\",result=\"{result}\"}} {n}"));
}

/// All places are free again, and nobody waits.
pub fn nothing_is_left(proxy: &Proxy, most: u32) {
    let most = NonZeroU32::new(most).unwrap();
    eventually("each place is given back", Duration::from_secs(5), || {
        let all: Vec<_> = (0..most.get()).map_while(|_| proxy.board.take_place(Slot(0), most)).collect();
        (all.len() == most.get() as usize).then_some(())
    });
    eventually("nobody waits", Duration::from_secs(5), || (!proxy.scrape().contains(WAITING)).then_some(()));
}

/// The same snapshot with nobody available.
pub fn eject_all(proxy: &Proxy, make: impl Fn() -> Setup) {
    let mut empty = super::snapshot(make());
    Arc::get_mut(&mut empty.clusters[0]).unwrap().available.clear();
    empty.config = Arc::clone(&proxy.board.load().config);
    proxy.board.publish(Arc::new(empty));
}

/// The same as `eventually`, while the connection of HTTP/2 goes on. [`run`] bounds it.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// So many places are taken.
pub fn holds(proxy: &Proxy, n: u32) {
    eventually("places are taken", Duration::from_secs(5), || (proxy.board.in_flight(Slot(0)) == n).then_some(()));
}

const WAITING: &str = "lazaret_queue_waiting{";
