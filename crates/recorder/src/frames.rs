//! The parts that files are made of: each with its length, and a checksum that tells a damaged one.
//!
//! ```text
//!   kind (1 byte)  length (8 bytes, little endian)  payload  checksum of all three (8 bytes, FNV-1a)
//! ```

use std::sync::Arc;

use model::cluster::Cluster;

use crate::bytes::{Reader, Writer, checksum};

/// Why there is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFrame {
    /// There are not enough bytes for one.
    Short,
    /// Its checksum is of other bytes.
    Damaged,
}

/// Appends one.
pub(crate) fn push(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let start = out.len();
    out.push(kind);
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(payload);
    let sum = checksum(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
}

/// The first one's kind and payload, and what follows it.
#[allow(clippy::type_complexity, reason = "three parts of one slice")]
pub(crate) fn next(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), NoFrame> {
    let (kind, rest) = bytes.split_first().ok_or(NoFrame::Short)?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or(NoFrame::Short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| NoFrame::Short)?;
    let (payload, rest) = rest.split_at_checked(length).ok_or(NoFrame::Short)?;
    let (sum, rest) = rest.split_first_chunk::<8>().ok_or(NoFrame::Short)?;
    let whole = bytes.get(..9 + length).unwrap_or_default();
    if checksum(whole) != u64::from_le_bytes(*sum) {
        return Err(NoFrame::Damaged);
    }
    Ok((*kind, payload, rest))
}

/// The payload of a configuration: its number, and its clusters as JSON.
pub(crate) fn configuration(number: u64, json: &[u8]) -> Vec<u8> {
    let mut payload = Writer::default();
    payload.number(number);
    payload.text(json);
    payload.0
}

/// The same, read.
pub(crate) fn read_configuration(payload: &[u8]) -> Option<(u64, &[u8])> {
    let mut reader = Reader(payload);
    Some((reader.number()?, reader.text()?))
}

/// The clusters of a configuration.
pub(crate) fn clusters(number: u64, json: &[u8]) -> Result<Vec<Arc<Cluster>>, String> {
    serde_json::from_slice(json).map_err(|error| format!("configuration {number}: {error}"))
}

pub(crate) const HEADER: u8 = b'H';
pub(crate) const CONFIGURATION: u8 = b'C';
pub(crate) const SEGMENT: u8 = b'S';
pub(crate) const RECORDS: u8 = b'R';
pub(crate) const END: u8 = b'E';
