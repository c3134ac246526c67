//! The full name of a setting, in the words of the native format: `clusters.api.retry.attempts`.

use std::fmt;

/// Names of keys from the root. `Display` joins them by dots; a name with a dot in it stands in quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<String>);

impl Path {
    /// The root.
    pub fn root() -> Self {
        Self::default()
    }

    /// From the root down.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(str::to_owned).collect())
    }

    /// One step down.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Self(names)
    }

    /// One step up; `None` at the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last name; empty for the root.
    pub fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if name.is_empty() || name.contains(['.', '"']) { write!(f, "{name:?}")? } else { f.write_str(name)? }
        }
        Ok(())
    }
}
