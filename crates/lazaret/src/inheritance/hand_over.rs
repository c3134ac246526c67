//! What two processes say to each other while one hands over to the other, over a unix stream.
//!
//! ```text
//!   successor                                   predecessor, serving
//!      │── hello ─────────────────────────────────> │
//!      │ <── offer, descriptors ────────────────────│   clock, sockets, control API, streams to those before
//!   reads its configuration, binds what is new      │
//!      │── ready ─────────────────────────────────> │   stops probing
//!      │ <── health ────────────────────────────────│
//!   accepts                                         │
//!      │── serving ───────────────────────────────> │
//!      │ <── over ──────────────────────────────────│   accepts no longer, finishes what is in flight
//!   probes                                          │
//!      │── end (a later upgrade) ─────────────────> │   ends at once: two old generations are enough
//! ```
//! Until `over` the predecessor serves and has all its descriptors; when the stream ends before, or the successor says
//! `declined` and why in place of any of its words, it probes again and goes on. A successor whose stream ends before `over`
//! must end. Messages are JSON with a length in front.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use ::io::real::pass;
use control::listen::{Inherited, Shared};
use health::SavedHealth;
use model::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::listeners_among;

/// The form of the messages. A process that hears another one says so and leaves things as they are.
const VERSION: u32 = 1;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Word {
    Hello { version: u32 },
    Ready,
    Serving,
    Over,
    End,
    Declined { why: String },
}

#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    version: u32,
    /// The clock goes on, so that times mean the same in both processes.
    now: Timestamp,
    sockets: usize,
    control_socket: Option<PathBuf>,
    /// Streams to old generations that still finish, oldest first.
    generations: usize,
}

/// What is offered. Descriptors are of this process's own.
pub(crate) struct Goods {
    pub(crate) sockets: Vec<TcpListener>,
    pub(crate) control: Shared,
    pub(crate) generations: Vec<Generation>,
}

/// What a successor receives first.
pub(super) struct Estate {
    pub(super) now: Timestamp,
    pub(super) sockets: Vec<TcpListener>,
    pub(super) control: Inherited,
    pub(super) predecessor: Predecessor,
}

/// The process that hands over, as its successor sees it.
pub(crate) struct Predecessor {
    stream: UnixStream,
    generations: Vec<Generation>,
}

/// The process that takes over, as its predecessor sees it.
pub(crate) struct Successor {
    stream: UnixStream,
}

/// An old process that finishes.
pub(crate) struct Generation(UnixStream);

/// Tells the process at the other end that this one does not take over.
pub(super) fn decline(stream: &UnixStream, why: &str) {
    let why = why.chars().take(LONGEST_REASON).collect();
    // One that has gone need not know.
    let _ = tell(stream, &Word::Declined { why });
}

pub(super) fn receive(stream: UnixStream) -> io::Result<Estate> {
    stream.set_read_timeout(Some(PATIENCE))?;
    tell(&stream, &Word::Hello { version: VERSION })?;
    let offer: Offer = hear(&stream)?;
    if offer.version != VERSION {
        let text = format!("the running process hands over in version {}, this one takes {VERSION}", offer.version);
        return Err(io::Error::other(text));
    }
    let has_unix = offer.control_socket.is_some();
    let own = |count| pass::receive(&stream, count);
    let sockets = listeners_among(own(offer.sockets)?);
    let tcp = listeners_among(own(1)?).pop();
    let unix = own(usize::from(has_unix))?.pop();
    let generations = own(offer.generations)?.into_iter().map(|one| Generation(one.into())).collect();
    let unix = offer.control_socket.zip(unix).map(|(path, descriptor)| (descriptor.into(), path));
    let control = Inherited { tcp, unix };
    Ok(Estate { now: offer.now, sockets, control, predecessor: Predecessor { stream, generations } })
}

impl Predecessor {
    /// Another way to speak to it, for [`decline`].
    pub(super) fn share(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// Everything that can fail is done: asks for what is known of the destinations. `None`: it cannot be read here.
    pub(crate) fn ready(&self) -> io::Result<Option<SavedHealth>> {
        tell(&self.stream, &Word::Ready)?;
        let message = pass::receive_message(&self.stream, MOST)?;
        let saved: Result<SavedHealth, _> = serde_json::from_slice(&message);
        Ok(saved.ok().filter(|saved| saved.version == health::saved::VERSION))
    }

    /// Connections are accepted here: the other one may stop. Gives all old generations, oldest first.
    pub(crate) fn serving(self) -> io::Result<Vec<Generation>> {
        tell(&self.stream, &Word::Serving)?;
        expect(&self.stream, &Word::Over)?;
        let Self { stream, mut generations } = self;
        generations.push(Generation(stream));
        Ok(generations)
    }
}

impl Successor {
    /// The process at the other end of the stream.
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream }
    }

    /// Another way to end the conversation, for another thread.
    pub(crate) fn hold(&self) -> io::Result<Hold> {
        self.stream.try_clone().map(Hold)
    }

    /// Hands descriptors over and waits until the other one is ready. `now` is asked when the other one listens. Blocks.
    pub(crate) fn offer(self, goods: &Goods, now: impl Fn() -> Timestamp) -> io::Result<Self> {
        self.stream.set_read_timeout(Some(PATIENCE))?;
        self.stream.set_write_timeout(Some(PATIENCE))?;
        match hear(&self.stream)? {
            Word::Hello { .. } => {}
            other @ (Word::Ready | Word::Serving | Word::Over | Word::End | Word::Declined { .. }) => {
                return Err(unexpected(other));
            }
        }
        let control_socket = goods.control.unix.as_ref().map(|(_, path)| path.clone());
        let (sockets, generations) = (goods.sockets.len(), goods.generations.len());
        let offer = Offer { version: VERSION, now: now(), sockets, control_socket, generations };
        self.unless_declined(tell(&self.stream, &offer))?;
        let mut descriptors: Vec<_> = goods.sockets.iter().map(AsFd::as_fd).collect();
        descriptors.push(goods.control.tcp.as_fd());
        descriptors.extend(goods.control.unix.as_ref().map(|(listener, _)| listener.as_fd()));
        descriptors.extend(goods.generations.iter().map(|one| one.0.as_fd()));
        self.unless_declined(pass::send(&self.stream, &descriptors))?;
        expect(&self.stream, &Word::Ready)?;
        Ok(self)
    }

    /// Tells what is known and waits until the other one serves. From then on it is the one. Blocks.
    pub(crate) fn give(self, saved: &SavedHealth) -> io::Result<Self> {
        self.unless_declined(tell(&self.stream, saved))?;
        expect(&self.stream, &Word::Serving)?;
        // One that is gone by now has served for a moment and died: nobody could do better than to have handed over.
        let _ = tell(&self.stream, &Word::Over);
        Ok(self)
    }

    /// A word that nobody takes any more is explained by the last one of the other side, when that says why it went.
    fn unless_declined(&self, told: io::Result<()>) -> io::Result<()> {
        let Err(error) = told else { return Ok(()) };
        match hear(&self.stream) {
            Ok(declined @ Word::Declined { .. }) => Err(unexpected(declined)),
            Ok(Word::Hello { .. } | Word::Ready | Word::Serving | Word::Over | Word::End) | Err(_) => Err(error),
        }
    }

    /// Waits until this process is told to end at once; false when nobody will say so any more. Blocks.
    pub(crate) fn ends_us(&self) -> bool {
        let is_patient = self.stream.set_read_timeout(None).is_ok();
        is_patient && hear::<Word>(&self.stream).is_ok_and(|word| word == Word::End)
    }
}

/// Ends a conversation that goes on in another thread.
pub(crate) struct Hold(UnixStream);

impl Hold {
    /// Both sides hear the end.
    pub(crate) fn hang_up(&self) {
        // One that is closed already needs no end.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

impl Generation {
    /// Whether the process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        // It says nothing any more, so there is an end or nothing.
        let is_set = self.0.set_nonblocking(true).is_ok();
        let mut byte = [0];
        let ended = io::Read::read(&mut &self.0, &mut byte).is_ok();
        is_set && !ended
    }

    /// Another descriptor of the same stream.
    pub(crate) fn share(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Tells it to end at once.
    pub(crate) fn end(&self) {
        // One that has ended needs no word.
        let _ = tell(&self.0, &Word::End);
    }
}

fn tell(stream: &UnixStream, what: &impl Serialize) -> io::Result<()> {
    pass::send_message(stream, &serde_json::to_vec(what)?)
}

fn hear<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<T> {
    Ok(serde_json::from_slice(&pass::receive_message(stream, MOST)?)?)
}

fn expect(stream: &UnixStream, word: &Word) -> io::Result<()> {
    let heard: Word = hear(stream)?;
    if heard == *word { Ok(()) } else { Err(unexpected(heard)) }
}

fn unexpected(word: Word) -> io::Error {
    match word {
        Word::Declined { why } => io::Error::other(why),
        other @ (Word::Hello { .. } | Word::Ready | Word::Serving | Word::Over | Word::End) => {
            io::Error::new(io::ErrorKind::InvalidData, format!("{other:?} was not expected"))
        }
    }
}

/// A process that does not answer for so long hangs: names to resolve, files to read and threads to start are quicker.
const PATIENCE: Duration = Duration::from_secs(60);
/// Characters of a reason: some lines.
const LONGEST_REASON: usize = 4096;
/// Bytes of a message: health of some hundred thousand destinations.
const MOST: usize = 256 * 1024 * 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::config::{Control, ControlSocket};

    use super::*;
    use crate::running::HandOverError;

    /// What comes of an offer after the other side has done as told and gone.
    fn offered(other: impl FnOnce(&UnixStream)) -> HandOverError {
        let (ours, theirs) = UnixStream::pair().unwrap();
        other(&theirs);
        drop(theirs);
        let address = ([127, 0, 0, 1], 0).into();
        let control =
            Control { address, names: Vec::new(), socket: ControlSocket::Off, users: Vec::new(), token_file: None };
        let control = control::Listeners::bind(&control).unwrap().share().unwrap();
        let goods = Goods { sockets: Vec::new(), control, generations: Vec::new() };
        Successor::new(ours).offer(&goods, Timestamp::default).err().unwrap().into()
    }

    #[test]
    fn a_successor_that_declines_is_quoted_whenever_it_does() {
        let quoted = HandOverError::Successor("the disk is full".to_owned());
        assert_eq!(offered(|stream| decline(stream, "the disk is full")), quoted);
        let later = |stream: &UnixStream| {
            tell(stream, &Word::Hello { version: VERSION }).unwrap();
            decline(stream, "the disk is full");
        };
        assert_eq!(offered(later), quoted);
    }

    #[test]
    fn a_successor_that_ends_without_a_word_is_told_from_one_that_talks_nonsense() {
        assert_eq!(offered(|_| {}), HandOverError::Ended);
        assert_eq!(offered(|stream| tell(stream, &Word::Hello { version: VERSION }).unwrap()), HandOverError::Ended);
        let nonsense = offered(|stream| tell(stream, &Word::Over).unwrap());
        assert_eq!(nonsense, HandOverError::Successor("Over was not expected".to_owned()));
    }
}
