//! `mcpx_exec`.

use std::time::Duration;

use super::{Script, run};
use crate::actors::dispatch::arguments::{object_of, only_known};
use crate::actors::dispatch::{Context, Request};
use crate::protocol::model::tool_result::text_result;
use crate::protocol::session::Outcome;

/// Runs what a host gives.
pub(in crate::actors::dispatch) async fn answer(context: &Context, request: Request) -> Outcome {
    match wanted(&request) {
        Ok(script) => run(context, request, script).await,
        Err(text) => Ok(text_result(&text, true)),
    }
}

fn wanted(request: &Request) -> Result<Script, String> {
    let given = object_of(request.params.member("arguments").as_ref())?;
    only_known("mcpx_exec", &given, &["code", "input", "timeout"])?;
    let source = given.get_str("code").filter(|code| !code.trim().is_empty()).ok_or_else(|| {
        "mcpx_exec needs `code`: a script, in TypeScript or JavaScript, as text".to_owned()
    })?;
    let input = given.get("input").cloned();
    let timeout = match given.get("timeout").filter(|timeout| !timeout.is_null()) {
        Some(timeout) => Some(seconds(timeout.as_str())?),
        None => None,
    };
    Ok(Script { source, input, timeout, ..Script::default() })
}

/// A time in seconds, as a number or as text.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.trim_matches('"').parse().ok();
    let time = number.filter(|seconds| *seconds > 0.0);
    time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("`timeout` is a number of seconds greater than 0, not {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_number_of_seconds() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(seconds("\"2\""), Ok(Duration::from_secs(2)));
        for wrong in ["0", "-1", "\"soon\"", "1e400", "{}"] {
            assert!(seconds(wrong).unwrap_err().contains("number of seconds"), "{wrong}");
        }
    }
}
