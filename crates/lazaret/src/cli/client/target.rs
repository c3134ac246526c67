//! Where the control API of the process is: told on the command line, else read from the configuration, else the
//! defaults.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use model::config::{Control, ControlSocket};

use super::Failure;

/// Where a process answers when nothing else is known.
const DEFAULT_ADDRESS: &str = "127.0.0.1:9090";
const DEFAULT_SOCKET: &str = "/run/lazaret/control.sock";
/// Where a configuration is looked for when none is named.
const DEFAULT_FILES: [&str; 2] = ["lazaret.yaml", "/etc/lazaret/lazaret.yaml"];

/// Which process is meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct TargetArguments {
    /// Control API of the process: an address such as 127.0.0.1:9090, or the path of its socket [default: what the
    /// configuration says]
    #[arg(long, value_name = "ADDRESS|SOCKET")]
    control: Option<Target>,
    /// Configuration of the process [default: ./lazaret.yaml, then /etc/lazaret/lazaret.yaml]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// One place to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Target {
    /// Host and port.
    Tcp(String),
    /// A unix socket.
    Unix(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        if text.contains('/') && !text.starts_with("http://") {
            return Ok(Self::Unix(text.into()));
        }
        let authority = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        match authority.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0) => {
                Ok(Self::Tcp(authority.to_owned()))
            }
            Some(_) | None => Err("an address is host:port, a socket is a path with a slash in it".to_owned()),
        }
    }
}

impl TargetArguments {
    /// Where to read.
    pub(super) fn for_reading(&self) -> Result<Target, Failure> {
        if let Some(target) = &self.control {
            return Ok(target.clone());
        }
        let configured = self.configured()?.map(|control| control.address.to_string());
        Ok(Target::Tcp(configured.unwrap_or_else(|| DEFAULT_ADDRESS.to_owned())))
    }

    /// Where to change things, and the token file that goes with it: the socket, or the address where there is none.
    pub(super) fn for_changing(&self) -> Result<(Target, Option<PathBuf>), Failure> {
        let configured = self.configured()?;
        let token_file = configured.as_ref().and_then(|control| control.token_file.clone());
        if let Some(target) = &self.control {
            return Ok((target.clone(), token_file));
        }
        let target = match configured {
            None => Target::Unix(DEFAULT_SOCKET.into()),
            Some(Control { socket: ControlSocket::Path(path), .. }) => Target::Unix(path),
            Some(Control { socket: ControlSocket::Default(path), .. }) if path.exists() || token_file.is_none() => {
                Target::Unix(path)
            }
            Some(Control { socket: ControlSocket::Default(_) | ControlSocket::Off, address, .. }) => {
                Target::Tcp(address.to_string())
            }
        };
        Ok((target, token_file))
    }

    /// The `control` section of the configuration. A file that was named must be there and hold; one that was only found
    /// may be broken, for the process may well run on an older one.
    fn configured(&self) -> Result<Option<Control>, Failure> {
        let found = DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists());
        let Some(path) = self.config.clone().or(found) else { return Ok(None) };
        let name = path.display().to_string();
        let loaded = fs::read(&path).map_err(|error| Failure::refused(format!("{name}: {error}"))).and_then(|bytes| {
            config::load(&name, &bytes, config::FileKind::Auto, &config::PolicyNames::default(), None)
                .map_err(|report| Failure::refused(report.render(config::Style::Plain)))
        });
        match loaded {
            Ok(loaded) => Ok(Some(loaded.config.control)),
            Err(failure) if self.config.is_some() => Err(failure),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_addresses_or_paths() {
        let parse = |text: &str| text.parse::<Target>();
        assert_eq!(parse("127.0.0.1:9090").unwrap(), Target::Tcp("127.0.0.1:9090".to_owned()));
        assert_eq!(parse("http://[::1]:9090/").unwrap(), Target::Tcp("[::1]:9090".to_owned()));
        assert_eq!(parse("./control.sock").unwrap(), Target::Unix("./control.sock".into()));
        assert_eq!(parse("unix:control.sock").unwrap(), Target::Unix("control.sock".into()));
        for text in ["", "localhost", ":9090", "localhost:0", "localhost:http"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_named_configuration_must_be_there() {
        let arguments = TargetArguments { control: None, config: Some("/nonexistent/lazaret.yaml".into()) };
        assert_eq!(arguments.for_reading().unwrap_err().code, 3);
    }
}
