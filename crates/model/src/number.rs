//! Numbers that may be infinite or no number at all, in formats that know only finite ones (JSON): the others as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Finite(f64),
    Other(String),
}

pub(crate) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let written = if number.is_finite() { Written::Finite(*number) } else { Written::Other(number.to_string()) };
    written.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match Written::deserialize(deserializer)? {
        Written::Finite(number) => Ok(number),
        Written::Other(text) => text.parse().map_err(serde::de::Error::custom),
    }
}
