//! What is wrong with a file that a listener names, and which of its keys names it.

use std::fmt;

use model::id::ListenerId;

/// Which key of a listener's `tls` names the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKey {
    /// The chain of the certificate with this place in the list.
    Certificate(usize),
    /// The key of the certificate with this place in the list.
    Key(usize),
    /// The authorities of client certificates.
    ClientAuthorities,
    /// The keys of session tickets.
    TicketKeys,
}

/// What is wrong, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Who names the file.
    pub(super) key: FileKey,
    /// What is wrong, the file's name included.
    pub(super) message: String,
    /// What to do.
    pub(super) mend: &'static str,
}

/// The same, of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerFault {
    /// Whose.
    pub listener: ListenerId,
    /// What.
    pub(crate) fault: Fault,
}

impl ListenerFault {
    /// What is wrong, the file's name included.
    pub fn message(&self) -> &str {
        &self.fault.message
    }

    /// What to do.
    pub fn mend(&self) -> &str {
        self.fault.mend
    }

    /// The name of the setting in the native format, part by part.
    pub fn setting(&self) -> Vec<String> {
        let mut parts = vec!["listeners".to_owned(), self.listener.to_string(), "tls".to_owned()];
        let more: Vec<String> = match self.fault.key {
            FileKey::Certificate(at) => vec!["certificates".to_owned(), at.to_string(), "certificate".to_owned()],
            FileKey::Key(at) => vec!["certificates".to_owned(), at.to_string(), "key".to_owned()],
            FileKey::ClientAuthorities => vec!["client_auth".to_owned()],
            FileKey::TicketKeys => vec!["ticket_keys".to_owned()],
        };
        parts.extend(more);
        parts
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.mend)
    }
}

impl fmt::Display for ListenerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listener {}: {}", self.listener, self.fault)
    }
}
