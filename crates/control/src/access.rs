//! Who may make changing calls: over the unix socket root, our own user and `control.users`; over either socket whoever
//! knows the token. Reading is open to everybody who can connect.
//!
//! Users and token are looked up at each changing call, so that a reload or a new token file counts at once.

use std::io;
use std::path::Path;

use model::config::Control;
use nix::unistd::{Uid, User};

/// Longest token that is read.
const TOKEN_BYTES: usize = 4096;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Somebody who reached the TCP address.
    Tcp,
    /// A local process of this user, as the kernel says (SO_PEERCRED).
    Unix {
        /// Its effective user id when it connected.
        uid: u32,
    },
}

/// Why a changing call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Over TCP, without a token: 401 (or 403 where no token is configured).
    #[error("changing calls need the unix socket{}", if *.has_token { " or the token (Authorization: Bearer)" } else { "" })]
    NoToken {
        /// Whether a token would help.
        has_token: bool,
    },
    /// The token is not the one in the file: 401.
    #[error("the token does not match")]
    WrongToken,
    /// The user is not among those admitted: 403.
    #[error("user {uid} is not admitted: changing calls are for root, lazaret's own user and control.users")]
    User {
        /// Whose process it was.
        uid: u32,
    },
}

/// Whether `peer`, who sent this Authorization value, may make a changing call.
pub fn admit(peer: Peer, authorization: Option<&str>, control: &Control) -> Result<(), Refused> {
    if let Some(presented) = authorization.and_then(bearer) {
        let expected = control.token_file.as_deref().and_then(read_token);
        return if expected.is_some_and(|expected| is_same(presented.as_bytes(), expected.as_bytes())) {
            Ok(())
        } else {
            Err(Refused::WrongToken)
        };
    }
    match peer {
        Peer::Tcp => Err(Refused::NoToken { has_token: control.token_file.is_some() }),
        Peer::Unix { uid } if uid == 0 || uid == Uid::effective().as_raw() => Ok(()),
        Peer::Unix { uid } if control.users.iter().any(|name| uid_of(name) == Some(uid)) => Ok(()),
        Peer::Unix { uid } => Err(Refused::User { uid }),
    }
}

/// The token of an Authorization value of the scheme Bearer (RFC 6750 2.1; the scheme's case does not count).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// The token in a file. One that is empty would admit everybody, so it is none.
pub fn token(path: &Path) -> io::Result<String> {
    let text = files::read_text(path, TOKEN_BYTES)?;
    match text.trim() {
        "" => Err(io::Error::new(io::ErrorKind::InvalidData, "there is no token in it")),
        token => Ok(token.to_owned()),
    }
}

fn read_token(path: &Path) -> Option<String> {
    match token(path) {
        Ok(token) => Some(token),
        Err(error) => {
            tracing::warn!(target: "control", path = %path.display(), %error, "control.token_file cannot be read");
            None
        }
    }
}

/// Compares without telling by its duration where the texts differ.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

fn uid_of(name: &str) -> Option<u32> {
    match name.parse() {
        Ok(uid) => Some(uid),
        Err(_) => User::from_name(name).ok().flatten().map(|user| user.uid.as_raw()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use model::config::ControlSocket;
    use std::fs;

    fn control(users: &[&str], token_file: Option<&Path>) -> Control {
        Control {
            address: ([127, 0, 0, 1], 0).into(),
            names: Vec::new(),
            socket: ControlSocket::Off,
            users: users.iter().map(|&user| user.to_owned()).collect(),
            token_file: token_file.map(Path::to_owned),
        }
    }

    #[test]
    fn the_socket_admits_root_ourselves_and_the_users_named() {
        let own = Uid::effective().as_raw();
        assert_eq!(admit(Peer::Unix { uid: 0 }, None, &control(&[], None)), Ok(()));
        assert_eq!(admit(Peer::Unix { uid: own }, None, &control(&[], None)), Ok(()));
        assert_eq!(admit(Peer::Unix { uid: 4242 }, None, &control(&["nobody-at-all", "4242"], None)), Ok(()));
        let refused = admit(Peer::Unix { uid: 4242 }, None, &control(&["nobody-at-all"], None));
        assert_eq!(refused, Err(Refused::User { uid: 4242 }));
    }

    #[test]
    fn a_pipe_in_place_of_the_token_admits_nobody_and_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("token");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(admit(Peer::Tcp, Some("Bearer x"), &control(&[], Some(&pipe))), Err(Refused::WrongToken));
    }

    #[test]
    fn tcp_needs_the_token() {
        let folder = std::env::temp_dir().join(format!("lazaret-token-{}", std::process::id()));
        fs::write(&folder, "s3cret\n").unwrap();
        let with = control(&[], Some(&folder));
        assert_eq!(admit(Peer::Tcp, Some("bearer s3cret"), &with), Ok(()));
        assert_eq!(admit(Peer::Tcp, Some("Bearer s3creT"), &with), Err(Refused::WrongToken));
        assert_eq!(admit(Peer::Tcp, Some("Basic s3cret"), &with), Err(Refused::NoToken { has_token: true }));
        assert_eq!(admit(Peer::Tcp, Some("Bearer "), &with), Err(Refused::NoToken { has_token: true }));
        fs::write(&folder, "\n").unwrap();
        assert_eq!(admit(Peer::Tcp, Some("Bearer x"), &with), Err(Refused::WrongToken));
        fs::remove_file(&folder).unwrap();
        assert_eq!(admit(Peer::Tcp, Some("Bearer x"), &with), Err(Refused::WrongToken));
        assert_eq!(admit(Peer::Tcp, None, &control(&[], None)), Err(Refused::NoToken { has_token: false }));
    }
}
