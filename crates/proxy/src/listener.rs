//! Where clients are accepted, one task per listener and worker.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::io::{Io, Listener as _};
use http1::limits::HeadLimits;
use http1::request::Request;
use model::listener::{Listener, SelfCheck};
use model::request::Method;
use upstream::Resolve;

use crate::connection;
use crate::entry;
use crate::faults::{self, Spell};
use crate::local::Local;
use crate::tls::{Secured, ServerTls};

/// A listener's configuration as requests see it.
pub(crate) struct View {
    pub(crate) config: Listener,
    pub(crate) limits: HeadLimits,
    /// What its TLS comes to; `None` where the configuration has TLS: nothing is served.
    pub(crate) secured: Option<Arc<Secured>>,
    /// When a refused connection was told of.
    pub(crate) told: entry::Told,
    place: Rc<Place>,
}

/// A listener of one worker. Its configuration may be replaced while connections live.
pub(crate) struct ListenerCell {
    view: RefCell<Rc<View>>,
    place: Rc<Place>,
}

#[derive(Default)]
struct Place {
    is_closed: Cell<bool>,
    has_dismissed_idle: Cell<bool>,
}

impl ListenerCell {
    /// For a listener with this configuration.
    pub(crate) fn new(config: Listener, tls: &ServerTls) -> Self {
        let place = Rc::new(Place::default());
        Self { view: RefCell::new(view(config, tls, &place)), place }
    }

    /// The configuration for the next request.
    pub(crate) fn view(&self) -> Rc<View> {
        Rc::clone(&self.view.borrow())
    }

    /// Replaces the configuration.
    pub(crate) fn update(&self, config: Listener, tls: &ServerTls) {
        self.view.replace(view(config, tls, &self.place));
    }

    /// The listener is gone: its connections end after their current exchange.
    pub(crate) fn close(&self) {
        self.place.is_closed.set(true);
    }

    /// Whether it is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.place.is_closed.get()
    }

    /// Whether its connections end when they have no request in hand.
    pub(crate) fn has_dismissed_idle(&self) -> bool {
        self.place.has_dismissed_idle.get()
    }

    /// From now on none of its connections waits for another request.
    pub(crate) fn dismiss_idle(&self) {
        self.place.has_dismissed_idle.set(true);
    }
}

impl View {
    /// Whether the listener is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.place.is_closed.get()
    }

    /// Whether the request asks who we are.
    pub(crate) fn is_self_check(&self, request: &Request<'_>) -> bool {
        self.config.self_check == SelfCheck::On
            && request.path() == SELF_CHECK
            && matches!(request.method(), Method::Get | Method::Head)
    }
}

/// Accepts until the task is aborted. When descriptors run out it waits: trying again at once would only turn.
pub(crate) async fn accept<I: Io, R: Resolve>(
    local: Rc<Local<I, R>>,
    listener: Rc<I::Listener>,
    cell: Rc<ListenerCell>,
) {
    let mut spell: Option<Spell> = None;
    let mut crowd = Crowd::Gone;
    loop {
        let accepted = match &spell {
            None => listener.accept().await,
            // Those whose accepting failed may be gone: when nobody comes, nobody is kept waiting.
            Some(_) => match tokio::time::timeout(faults::TOLERATED, listener.accept()).await {
                Ok(accepted) => accepted,
                Err(_) => {
                    spell = None;
                    continue;
                }
            },
        };
        match accepted {
            Ok((stream, peer)) => {
                spell = None;
                crowd = Crowd::Gone;
                tokio::task::spawn_local(connection::serve(Rc::clone(&local), Rc::clone(&cell), stream, peer));
            }
            Err(error) if is_of_one_connection(&error) => {}
            // A crowd at our own limit is load, not a listener that is down: the site must not be withdrawn for it.
            Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                spell = None;
                if crowd == Crowd::Gone {
                    let id = &cell.view().config.id;
                    tracing::warn!(target: "proxy", listener = %id, "clients have all the descriptors they may have");
                }
                crowd = Crowd::There;
                local.io.sleep(BACK_OFF).await;
            }
            Err(error) => {
                let id = &cell.view().config.id;
                // Once per spell, not once per try.
                if spell.is_none() {
                    tracing::warn!(target: "proxy", %error, listener = %id, "cannot accept");
                }
                let now = local.io.now();
                spell.get_or_insert_with(|| Spell::new(now)).goes_on(now, &local.faults, id);
                local.io.sleep(BACK_OFF).await;
            }
        }
    }
}

/// Accepts what waits in the queue by now, so that closing the listener resets nobody; `most` connections at most, for
/// while others share the queue new ones go on coming.
pub(crate) fn accept_waiting<I: Io, R: Resolve>(
    local: &Rc<Local<I, R>>,
    listener: &I::Listener,
    cell: &Rc<ListenerCell>,
    most: usize,
) {
    for _ in 0..most {
        match listener.accept_waiting() {
            Ok(Some((stream, peer))) => {
                // Present from here on, not from when its task first runs: a worker that ends waits for it.
                local.presence.begin_late();
                let served = connection::serve(Rc::clone(local), Rc::clone(cell), stream, peer);
                let local = Rc::clone(local);
                tokio::task::spawn_local(async move {
                    served.await;
                    local.presence.end_late();
                });
            }
            Ok(None) => return,
            // A refused one was taken out of the queue; behind it others wait.
            Err(error) if is_of_one_connection(&error) || error.kind() == io::ErrorKind::QuotaExceeded => {}
            Err(_) => return,
        }
    }
}

/// Whether clients are at their limit, so that it is told once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crowd {
    Gone,
    There,
}

fn view(config: Listener, tls: &ServerTls, place: &Rc<Place>) -> Rc<View> {
    let limits = HeadLimits::of_client(&config.limits);
    let secured = config.tls.as_ref().and_then(|settings| tls.find(settings));
    Rc::new(View { config, limits, secured, told: entry::Told::default(), place: Rc::clone(place) })
}

/// The connection that was to be accepted is gone already; the next one may be fine.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

const SELF_CHECK: &str = "/.lazaret/self";
const BACK_OFF: Duration = Duration::from_millis(100);
