//! Where the control API of the process is: told on the command line, else read from the configuration, else the
//! defaults.

use std::path::{Path, PathBuf};
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

/// What a command that changes things goes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changing {
    /// Where to send the change.
    pub(super) target: Target,
    /// The same process by another way, where `target` is a place that all processes share: both must be one.
    pub(super) witness: Option<Target>,
    /// Holds the token that admits changes over TCP.
    pub(super) token_file: Option<PathBuf>,
}

/// What a configuration says of the control API.
enum Configured {
    /// There is no configuration.
    Absent,
    Says(Control),
    /// It is there and tells nothing; why.
    Unreadable {
        name: String,
        why: Failure,
    },
}

impl TargetArguments {
    /// Where to read.
    pub(super) fn for_reading(&self) -> Result<Target, Failure> {
        if let Some(target) = &self.control {
            return Ok(target.clone());
        }
        Ok(Target::Tcp(match self.configured()? {
            Configured::Says(control) => control.address.to_string(),
            Configured::Absent => DEFAULT_ADDRESS.to_owned(),
            Configured::Unreadable { name, .. } => {
                let default = DEFAULT_ADDRESS;
                super::remark(&format!(
                    "{name} does not read, so the default {default} is asked; name it with --control"
                ));
                default.to_owned()
            }
        }))
    }

    /// Where to change things: the socket, or the address where there is none. `token_file` is that of the command line.
    pub(super) fn for_changing(&self, token_file: Option<&PathBuf>) -> Result<Changing, Failure> {
        let configured = self.configured()?;
        let token_file = token_file.cloned();
        match (&self.control, configured) {
            (Some(target), Configured::Says(Control { token_file: configured, .. })) => {
                Ok(Changing { target: target.clone(), witness: None, token_file: token_file.or(configured) })
            }
            (Some(target), Configured::Absent | Configured::Unreadable { .. }) => {
                Ok(Changing { target: target.clone(), witness: None, token_file })
            }
            (None, Configured::Says(control)) => chosen(control, token_file),
            (None, Configured::Absent) => {
                let path = PathBuf::from(DEFAULT_SOCKET);
                if !path.exists() {
                    return Err(no_socket(&path));
                }
                Ok(Changing { target: Target::Unix(path), witness: None, token_file })
            }
            // To change a process that was guessed is worse than to change none.
            (None, Configured::Unreadable { why, .. }) => Err(why),
        }
    }

    /// What the configuration says. One that is named must be there. It may be broken, for the process may well run on
    /// an older one: then its `control` section is enough.
    fn configured(&self) -> Result<Configured, Failure> {
        let found = DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists());
        let Some(path) = self.config.clone().or(found) else { return Ok(Configured::Absent) };
        let name = path.display().to_string();
        let bytes = match files::read_given(&path, config::source::MAX_BYTES)
            .map_err(|error| Failure::refused(format!("{name}: {error}")))
        {
            Ok(bytes) => bytes,
            Err(why) if self.config.is_some() => return Err(why),
            Err(why) => return Ok(Configured::Unreadable { name, why }),
        };
        let report = match config::load(&name, &bytes, config::FileKind::Auto, &config::PolicyNames::default(), None) {
            Ok(loaded) => return Ok(Configured::Says(loaded.config.control)),
            Err(report) => report,
        };
        Ok(config::control_of(&name, &bytes).map_or_else(
            || Configured::Unreadable { name, why: Failure::refused(report.render(config::Style::Plain)) },
            Configured::Says,
        ))
    }
}

/// The way to the process of a configuration.
fn chosen(control: Control, token_file: Option<PathBuf>) -> Result<Changing, Failure> {
    let address = Target::Tcp(control.address.to_string());
    let token_file = token_file.or(control.token_file);
    match control.socket {
        ControlSocket::Path(path) => Ok(Changing { target: Target::Unix(path), witness: None, token_file }),
        ControlSocket::Default(path) if path.exists() => {
            Ok(Changing { target: Target::Unix(path), witness: Some(address), token_file })
        }
        ControlSocket::Default(path) if token_file.is_none() => Err(no_socket(&path)),
        ControlSocket::Default(_) | ControlSocket::Off => Ok(Changing { target: address, witness: None, token_file }),
    }
}

fn no_socket(path: &Path) -> Failure {
    let path = path.display();
    Failure::unreachable(format!(
        "{path} does not exist; set control.socket (for example ./control.sock), or send SIGHUP to the process"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::exit::Exit;
    use std::fs;

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

    fn arguments(config: &Path) -> TargetArguments {
        TargetArguments { control: None, config: Some(config.to_owned()) }
    }

    #[test]
    fn a_named_configuration_must_be_there() {
        assert_eq!(arguments(Path::new("/nonexistent/lazaret.yaml")).for_reading().unwrap_err().exit, Exit::Refused);
    }

    #[test]
    fn a_broken_configuration_still_tells_which_process_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.yaml");
        fs::write(&file, "control: { address: 127.0.0.1:9191, socket: /tmp/own.sock }\nwibbel: 1\n").unwrap();
        assert_eq!(arguments(&file).for_reading().unwrap(), Target::Tcp("127.0.0.1:9191".to_owned()));
        let target = Target::Unix("/tmp/own.sock".into());
        assert_eq!(arguments(&file).for_changing(None).unwrap(), Changing { target, witness: None, token_file: None });
    }

    #[test]
    fn a_configuration_that_tells_nothing_is_read_at_the_default_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.yaml");
        fs::write(&file, "control: [\n").unwrap();
        assert_eq!(arguments(&file).for_reading().unwrap(), Target::Tcp(DEFAULT_ADDRESS.to_owned()));
        assert_eq!(arguments(&file).for_changing(None).unwrap_err().exit, Exit::Refused);
    }

    #[test]
    fn the_socket_all_processes_share_wants_a_witness() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let control = Control {
            address: "127.0.0.1:9191".parse().unwrap(),
            names: Vec::new(),
            socket: ControlSocket::Default(path.clone()),
            users: Vec::new(),
            token_file: None,
        };
        let missing = chosen(control.clone(), None).unwrap_err();
        assert_eq!(missing.exit, Exit::Unreachable);
        assert!(
            missing.text.contains("set control.socket (for example ./control.sock), or send SIGHUP"),
            "{missing:?}"
        );
        let address = Target::Tcp("127.0.0.1:9191".to_owned());
        let by_token = chosen(control.clone(), Some("token".into())).unwrap();
        assert_eq!((by_token.target, by_token.witness), (address.clone(), None));
        fs::write(&path, "").unwrap();
        let shared = chosen(control, None).unwrap();
        assert_eq!((shared.target, shared.witness), (Target::Unix(path), Some(address)));
    }
}
