//! `lazaret reload`: the process reads its configuration again, all or nothing.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use control::routes::change::ReloadDocument;

use super::http::{Answer, Client};
use super::{Common, Failure, FormatWord, conclude, error_text, print};

/// What `reload` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// File with the token that admits changes over TCP [default: what the configuration says]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Asks for a reload and waits for its result. Exit code 3 when the configuration is refused.
pub(in crate::cli) fn run(arguments: &Arguments) -> ExitCode {
    conclude(async || {
        let (target, configured) = arguments.common.target.for_changing()?;
        let token = arguments.token_file.as_ref().or(configured.as_ref()).map(read_token).transpose()?;
        let client = Client::new(target);
        let answer = client.ask("POST", "/api/reload", token.as_deref()).await?;
        conclusion(&answer, arguments.common.format)
    })
}

fn read_token(path: &PathBuf) -> Result<String, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => Err(Failure::failed(format!("{}: {error}", path.display()))),
    }
}

fn conclusion(answer: &Answer, format: FormatWord) -> Result<u8, Failure> {
    let document: Result<ReloadDocument, _> = serde_json::from_str(&answer.text);
    match (answer.status, document) {
        (200, Ok(document)) => {
            print(format, &document, render);
            Ok(0)
        }
        (422, Ok(document)) if format == FormatWord::Json => {
            print(format, &document, render);
            Ok(3)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells_refused_from_failed() {
        let conclude = |status, text: &str| conclusion(&Answer { status, text: text.to_owned() }, FormatWord::Text);
        assert_eq!(conclude(200, r#"{"applied":true,"summary":"2 clusters"}"#), Ok(0));
        let refused = conclude(422, r#"{"applied":false,"error_msg":"refused","report":"lazaret.yaml:1:1: no\n"}"#);
        assert_eq!(refused, Err(Failure { text: "refused\nlazaret.yaml:1:1: no\n".to_owned(), code: 3 }));
        let busy = conclude(409, r#"{"applied":false,"error_msg":"busy"}"#);
        assert_eq!(busy, Err(Failure { text: "busy".to_owned(), code: 1 }));
        let forbidden = conclude(403, r#"{"error_msg":"no"}"#);
        assert_eq!(forbidden, Err(Failure { text: "no".to_owned(), code: 1 }));
        assert_eq!(conclude(500, "<html>").map_err(|failure| failure.code), Err(1));
    }
}
