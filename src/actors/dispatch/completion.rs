//! `completion/complete`: for the arguments of prompts and the variables of templates.

use std::sync::Arc;

use super::outcome::ask;
use super::resources::view;
use super::{Context, Request, prompts, resources};
use crate::actors::upstreams::CallWant;
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::model::answers::no_completion;
use crate::protocol::session::Outcome;

pub(super) async fn complete(context: &Context, request: Request) -> Outcome {
    let reference = request.params.member("ref").and_then(|raw| Object::read(&raw).ok());
    let mut reference = reference.ok_or_else(|| malformed("completion/complete needs a `ref`"))?;
    let server = match reference.get_str("type").as_deref() {
        Some("ref/prompt") => {
            let name = reference.get_str("name");
            let name = name.ok_or_else(|| malformed("a `ref/prompt` needs a `name`"))?;
            let prompt = prompts::find(context, &request.caller, &name).await?;
            reference.set("name", RawJson::write(&prompt.offer.key));
            prompt.server
        }
        Some("ref/resource") => {
            let address = reference.get_str("uri");
            let address = address.ok_or_else(|| malformed("a `ref/resource` needs a `uri`"))?;
            let target = match view(context).resolve_template(&address) {
                Ok(target) => target,
                // Templates may be known once servers have been listed.
                Err(_) => resources::find(context, &request.caller, &address)
                    .await
                    .map_err(|missing| malformed(&missing.to_string()))?,
            };
            reference.set("uri", RawJson::write(&target.uri));
            target.server
        }
        _ => return Err(malformed("the `type` of a `ref` is ref/prompt or ref/resource")),
    };
    // Of one that completes nothing, nothing is to be suggested: mcpx declares completions for all.
    if server.lacks("completions") {
        return Ok(no_completion());
    }
    let mut params = Object::read_or_empty(Some(&request.params));
    params.set("ref", reference.write());
    let key = server.def.key.as_str();
    let want = CallWant {
        server: Arc::from(key),
        caller: request.caller,
        method: Method::known("completion/complete"),
        params: params.write(),
        progress: None,
        repeatable: true,
        task: None,
    };
    match ask(context, &format!("a completion by server `{key}`"), want).await {
        Ok(Err(error)) if error.code == Code::MethodNotFound.number() => Ok(no_completion()),
        Ok(outcome) => outcome,
        Err(told) => Err(told.as_error()),
    }
}

fn malformed(text: &str) -> RpcError {
    RpcError::new(Code::InvalidParams, text)
}
