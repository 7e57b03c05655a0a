//! `mcpx read` and `mcpx prompt`: one resource, or one filled-in prompt, for people and for pipes.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::ArgMatches;
use mcpx::control::OpCall;
use mcpx::control::types::PromptRequest;
use mcpx::protocol::jsonrpc::{Object, RawJson};

use crate::arguments::{self, Typed};
use crate::call::block;
use crate::ended::{Ended, Outcome};
use crate::output;
use crate::reach::Reach;
use crate::setup;

fn text(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).cloned().unwrap_or_default()
}

/// `mcpx read URI`: what it holds, byte for byte.
pub(crate) async fn read(reach: &Reach<'_>, matches: &ArgMatches) -> Outcome {
    let uri = text(matches, "uri");
    let project = setup::project(matches.get_one("project"));
    let answer = reach.ask(&OpCall::Read { uri: uri.clone(), project }).await?;
    if reach.printer.json {
        return output::bytes(&answer);
    }
    let (contents, binary) = contents(&uri, answer)?;
    if let Some(file) = matches.get_one::<PathBuf>("output") {
        return save(file, &contents);
    }
    if !binary {
        return output::bytes(&contents);
    }
    if std::io::stdout().is_terminal() {
        let size = contents.len();
        return Err(Ended::Failed(format!(
            "`{uri}` is binary ({size} bytes), which a terminal cannot show; give --output FILE, or \
             a pipe"
        )));
    }
    output::raw(&contents)
}

#[expect(clippy::disallowed_methods, reason = "a person's own file, with that person's umask")]
fn save(file: &Path, contents: &[u8]) -> Outcome {
    std::fs::write(file, contents)
        .map_err(|error| Ended::Failed(format!("{} cannot be written: {error}", file.display())))
}

/// All contents one after the other, and whether any of them is binary.
fn contents(uri: &str, answer: Bytes) -> Result<(Vec<u8>, bool), Ended> {
    let result =
        RawJson::parse(answer).map_err(|error| Ended::Failed(format!("the result is {error}")))?;
    let items = result.member("contents").and_then(|list| list.elements()).unwrap_or_default();
    let (mut all, mut binary) = (Vec::new(), false);
    for item in items {
        if let Some(text) = item.member_str("text") {
            all.extend_from_slice(text.as_bytes());
        } else if let Some(blob) = item.member_str("blob") {
            let bytes = STANDARD.decode(blob).map_err(|error| {
                Ended::Failed(format!("`{uri}`: its server sent what is no base64: {error}"))
            })?;
            all.extend_from_slice(&bytes);
            binary = true;
        }
    }
    Ok((all, binary))
}

/// `mcpx prompt NAMESPACE PROMPT [KEY=VALUE…]`: its messages.
pub(crate) async fn prompt(reach: &Reach<'_>, matches: &ArgMatches) -> Outcome {
    let arguments = match arguments::of(matches)? {
        Typed::Whole(raw) => raw,
        // A prompt's arguments are texts.
        Typed::Pairs(pairs) => arguments::typed(&pairs, None).map_err(Ended::Usage)?,
    };
    let call = OpCall::Prompt(PromptRequest {
        namespace: text(matches, "namespace"),
        prompt: text(matches, "prompt"),
        arguments: Some(arguments),
        project: setup::project(matches.get_one("project")),
    });
    let answer = reach.ask(&call).await?;
    if reach.printer.json {
        return output::bytes(&answer);
    }
    let result =
        RawJson::parse(answer).map_err(|error| Ended::Failed(format!("the result is {error}")))?;
    output::line(&messages(&result))
}

fn messages(result: &RawJson) -> String {
    let messages = result.member("messages").and_then(|list| list.elements()).unwrap_or_default();
    let shown = messages.iter().map(|message| {
        let message = Object::read_or_empty(Some(message));
        let role = message.get_str("role").unwrap_or_default();
        let content = message.get("content").map(block).unwrap_or_default();
        format!("{role}: {content}")
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_given_byte_for_byte() {
        let read = |text: &'static str| contents("u", Bytes::from_static(text.as_bytes()));
        let both = r#"{"contents":[{"text":"a\n"},{"blob":"AAEC"}]}"#;
        assert!(matches!(read(both), Ok((bytes, true)) if bytes == b"a\n\x00\x01\x02"));
        assert!(matches!(read(r#"{"contents":[]}"#), Ok((bytes, false)) if bytes.is_empty()));
        assert!(read(r#"{"contents":[{"blob":"?"}]}"#).is_err());
    }

    #[test]
    fn messages_have_their_roles() {
        let text = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#;
        assert_eq!(messages(&RawJson::parse(text.into()).unwrap()), "user: hi");
    }
}
