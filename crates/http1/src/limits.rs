//! How large a head may be. Each limit has its own error, so that the log names the one that was passed.

use model::timeouts::ClientLimits;

/// Limits on one head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Longest start line, bytes without its end.
    pub line: usize,
    /// Longest field section, bytes with all line ends.
    pub bytes: usize,
    /// Most field lines.
    pub fields: usize,
}

impl HeadLimits {
    /// What a destination may send: generous, as its operator is ours.
    pub const RESPONSE: Self = Self { line: 8 * 1024, bytes: 64 * 1024, fields: 256 };

    /// What a listener's clients may send.
    pub fn of_client(limits: &ClientLimits) -> Self {
        Self { line: limits.request_line, bytes: limits.header_bytes, fields: limits.header_fields }
    }

    /// No head within these limits is longer.
    pub fn total(&self) -> usize {
        // One empty line may come before the start line, and the start line has an end.
        self.line.saturating_add(self.bytes).saturating_add(4)
    }
}
