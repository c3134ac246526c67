//! `lazaret reload`: the process reads its configuration again, all or nothing.

use std::path::{Path, PathBuf};

use control::document::event::EventPage;
use control::routes::change::ReloadDocument;

use crate::cli::exit::Exit;

use super::http::{Answer, Client};
use super::target::Changing;
use super::{Common, Failure, FormatWord, conclude, error_text, fetch, print};

/// What `reload` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// File with the token that admits changes over TCP [default: what the configuration says]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Asks for a reload and waits for its result.
pub(in crate::cli) fn run(arguments: &Arguments) -> Exit {
    conclude(async || {
        let (client, token) = admitted(&arguments.common, arguments.token_file.as_ref()).await?;
        let answer = client.ask("POST", "/api/reload", token.as_deref()).await?;
        conclusion(&answer, arguments.common.format)
    })
}

/// The way to the process that is meant, and what admits a change there.
pub(super) async fn admitted(
    common: &Common,
    token_file: Option<&PathBuf>,
) -> Result<(Client, Option<String>), Failure> {
    let Changing { target, witness, token_file } = common.target.for_changing(token_file)?;
    let token = token_file.as_deref().map(read_token).transpose()?;
    let client = Client::new(target);
    if let Some(witness) = witness {
        compare(&client, &Client::new(witness)).await?;
    }
    Ok((client, token))
}

/// Refuses to go on when the socket that all processes share belongs to another process than the one that is meant.
async fn compare(shared: &Client, meant: &Client) -> Result<(), Failure> {
    let page = "/api/transitions?limit=1";
    let EventPage { instance: found, .. } = fetch(shared, page).await.map_err(|failure| Failure {
        text: failure.text + "; set control.socket (for example ./control.sock), or send SIGHUP to the process",
        ..failure
    })?;
    let EventPage { instance: expected, .. } = fetch(meant, page).await?;
    if found == expected {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{shared} belongs to another lazaret (instance {found}; the one at {meant} is {expected}); give this one a \
         control.socket, or send it SIGHUP"
    )))
}

fn read_token(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::failed(format!("{}: {why}", path.display()));
    let bytes = files::read_given(path, TOKEN_BYTES).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    Ok(text.trim().to_owned())
}

fn conclusion(answer: &Answer, format: FormatWord) -> Result<Exit, Failure> {
    let document: Result<ReloadDocument, _> = serde_json::from_str(&answer.text);
    match (answer.status, document) {
        (200, Ok(document)) => {
            print(format, &document, render);
            Ok(Exit::Done)
        }
        (422, Ok(document)) if format == FormatWord::Json => {
            print(format, &document, render);
            Ok(Exit::Refused)
        }
        (422, Ok(document)) => Err(Failure::refused(render(&document))),
        (_, _) => Err(Failure::failed(error_text(answer))),
    }
}

fn render(document: &ReloadDocument) -> String {
    let parts = [&document.summary, &document.error_msg, &document.report];
    let lines: Vec<&str> = parts.into_iter().flatten().map(|part| part.trim_end()).collect();
    lines.join("\n") + "\n"
}

/// More than any token has.
const TOKEN_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::target::Target;
    use super::*;
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::{TcpListener, UnixListener};

    /// Answers one request as a process without events.
    async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, instance: &str) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let body = format!(r#"{{"instance":"{instance}","revision":0,"lost":false,"events":[]}}"#);
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn compared(at_socket: &str, at_address: &str) -> Result<(), Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Client::new(Target::Unix(path));
        let meant = Client::new(Target::Tcp(tcp.local_addr().unwrap().to_string()));
        let serve = async {
            answer(unix.accept().await.unwrap().0, at_socket).await;
            answer(tcp.accept().await.unwrap().0, at_address).await;
        };
        let (result, ()) = tokio::join!(compare(&shared, &meant), serve);
        result
    }

    #[tokio::test]
    async fn the_shared_socket_of_another_process_is_left_alone() {
        assert_eq!(compared("one", "one").await, Ok(()));
        let refused = compared("other", "mine").await.unwrap_err();
        assert_eq!(refused.exit, Exit::Failed);
        assert!(refused.text.contains("belongs to another lazaret (instance other"), "{refused:?}");
    }

    #[tokio::test]
    async fn a_shared_socket_that_nobody_serves_tells_what_else_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        let (shared, meant) = (Client::new(Target::Unix(path)), Client::new(Target::Tcp("127.0.0.1:1".to_owned())));
        let failure = compare(&shared, &meant).await.unwrap_err();
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(failure.text.contains("set control.socket"), "{failure:?}");
    }

    #[test]
    fn the_exit_code_tells_refused_from_failed() {
        let conclude = |status, text: &str| conclusion(&Answer { status, text: text.to_owned() }, FormatWord::Text);
        assert_eq!(conclude(200, r#"{"applied":true,"summary":"2 clusters"}"#), Ok(Exit::Done));
        let refused = conclude(422, r#"{"applied":false,"error_msg":"refused","report":"lazaret.yaml:1:1: no\n"}"#);
        assert_eq!(refused, Err(Failure { text: "refused\nlazaret.yaml:1:1: no\n".to_owned(), exit: Exit::Refused }));
        let busy = conclude(409, r#"{"applied":false,"error_msg":"busy"}"#);
        assert_eq!(busy, Err(Failure { text: "busy".to_owned(), exit: Exit::Failed }));
        let forbidden = conclude(403, r#"{"error_msg":"no"}"#);
        assert_eq!(forbidden, Err(Failure { text: "no".to_owned(), exit: Exit::Failed }));
        assert_eq!(conclude(500, "<html>").map_err(|failure| failure.exit), Err(Exit::Failed));
    }
}
