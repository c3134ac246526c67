//! What destinations are told of the client: `X-Forwarded-*` and `Forwarded` (RFC 7239).

use serde::{Deserialize, Serialize};

/// What becomes of one of the fields that name the client. Nothing that came from a peer that is no trusted proxy ever
/// goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardAction {
    /// Overwritten.
    Set,
    /// Ours behind what a trusted proxy sent.
    Append,
    /// Removed.
    Remove,
    /// Nothing of ours; what a trusted proxy sent goes on.
    Off,
}

/// What becomes of `X-Forwarded-*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XForwarded {
    /// The client's address.
    pub address: ForwardAction,
    /// `http` or `https`.
    pub proto: ForwardAction,
    /// The Host that the client asked for.
    pub host: ForwardAction,
    /// The part of the path that is the proxy's own: there is none, so `Set` removes the field.
    pub prefix: ForwardAction,
    /// What the four names begin with; `X-Forwarded-` unless set.
    pub header_prefix: String,
}

/// A `Forwarded` field of ours (RFC 7239).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwarded {
    /// What stands in it, in this order.
    pub parts: Vec<ForwardedPart>,
    /// How it goes with what came.
    pub action: ForwardAction,
}

/// A parameter of `Forwarded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedPart {
    /// Who asked us.
    For(NodeFormat),
    /// Our own address that was asked.
    By(NodeFormat),
    /// `http` or `https`.
    Proto,
    /// The Host that the client asked for.
    Host,
}

/// How a node is named (RFC 7239 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFormat {
    /// The node.
    pub name: NodeName,
    /// Its port.
    pub port: NodePort,
}

/// How a node's address is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeName {
    /// By an identifier made for this request alone.
    #[default]
    Random,
    /// Not.
    Unknown,
    /// As it is.
    Ip,
}

/// How a node's port is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodePort {
    /// Not.
    #[default]
    None,
    /// As it is.
    Port,
    /// By an identifier made for this request alone.
    Random,
}
