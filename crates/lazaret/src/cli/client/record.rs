//! `lazaret record save`: what the health core was told of late, as a file for `lazaret lab replay`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use recorder::Recording;
use serde::Serialize;

use crate::cli::exit::Exit;

use super::http::{Answer, Bytes};
use super::reload::admitted;
use super::{Common, Failure, conclude, error_text, print};

/// What `record` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write the recording to a file that only its owner can read.
    Save(SaveArguments),
}

#[derive(clap::Args)]
struct SaveArguments {
    /// Where to; what is there is replaced [default: lazaret-INSTANCE-TIME.recording in the current folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// File with the token that admits changes over TCP [default: what the configuration says]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// What was saved.
#[derive(Serialize)]
struct Saved {
    file: PathBuf,
    bytes: usize,
    /// How far back it goes.
    seconds: u64,
    instance: String,
}

/// Asks for the recording and writes it. Fails when nothing is recorded.
pub(in crate::cli) fn run(arguments: &Arguments) -> Exit {
    let Command::Save(arguments) = &arguments.command;
    conclude(async || {
        let (client, token) = admitted(&arguments.common, arguments.token_file.as_ref()).await?;
        let Bytes { status, bytes } = client.ask_bytes("POST", "/api/recording", token.as_deref()).await?;
        if status != 200 {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return Err(Failure::failed(error_text(&Answer { status, text })));
        }
        // Read before it is written: a file that is there is worth something.
        let recording = Recording::read(&bytes).map_err(|error| Failure::failed(error.to_string()))?;
        let header = &recording.header;
        let file = arguments.out.clone().unwrap_or_else(|| {
            PathBuf::from(format!("lazaret-{}-{}.recording", header.instance, header.saved_at_unix_ms / 1000))
        });
        write(&file, &bytes).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
        let seconds = header.saved_at.since(recording.begins_at()).as_secs();
        let saved = Saved { file, bytes: bytes.len(), seconds, instance: header.instance.clone() };
        print(arguments.common.format, &saved, render);
        Ok(Exit::Done)
    })
}

fn render(saved: &Saved) -> String {
    format!("{}: {} bytes, the last {} s\n", saved.file.display(), saved.bytes, saved.seconds)
}

/// Beside its place first, so that what is there stays until the new one is whole.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    out.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    out.write_all(bytes)?;
    out.sync_all()?;
    std::fs::rename(part, file)
}
