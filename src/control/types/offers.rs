//! Answers and requests about resources and prompts.

use serde::{Deserialize, Serialize};

use super::ScriptView;
use crate::protocol::jsonrpc::RawJson;

/// `GET /v1/search`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// Words that say what a tool is to do.
    pub query: String,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// At most so many tools.
    pub limit: Option<usize>,
    /// The project folder for which servers are started.
    pub project: Option<String>,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchAnswer {
    /// The tools that fit, the best first.
    pub tools: Vec<FoundTool>,
    /// The saved scripts that fit, the best first; none where a namespace is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptView>,
    /// Namespaces of servers of whose tools nothing is known, and so not searched.
    pub unlisted: Vec<String>,
    /// Where none fits: `namespace.tool` of those whose name is near.
    pub near: Vec<String>,
}

/// One tool that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundTool {
    /// Its server's namespace.
    pub namespace: String,
    /// Its name, for calls.
    pub tool: String,
    /// Its name after a dot, for scripts.
    pub member: String,
    /// How it is called, as TypeScript on one line.
    pub signature: String,
    /// The first sentence of its description.
    pub description: String,
}

/// `POST /v1/types`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypesRequest {
    /// Of this namespace.
    pub namespace: Option<String>,
    /// Only of these of its tools; of all where there are none.
    pub tools: Vec<String>,
    /// Of all namespaces, with everything else that scripts find.
    pub all: bool,
    /// The project folder for which servers are started.
    pub project: Option<String>,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypesAnswer {
    /// TypeScript.
    pub declarations: String,
    /// Namespaces of servers that were never listed, and so have no tools in it.
    pub unlisted: Vec<String>,
}

/// `GET /v1/resources`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourcesAnswer {
    /// Each server's resources, sorted by namespace.
    pub namespaces: Vec<NamespaceResources>,
}

/// The resources of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceResources {
    /// Its namespace.
    pub namespace: String,
    /// Its configuration key.
    pub server: String,
    /// How far its list is known: `never`, `whole` or `incomplete`.
    pub listing: String,
    /// Why it is not whole, or why the server cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The resources under addresses that `read` takes, otherwise as they came, in newest shape.
    pub resources: Vec<RawJson>,
    /// The templates, likewise.
    pub templates: Vec<RawJson>,
}

/// `GET /v1/prompts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsAnswer {
    /// Each server's prompts, sorted by namespace.
    pub namespaces: Vec<NamespacePrompts>,
}

/// The prompts of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacePrompts {
    /// Its namespace.
    pub namespace: String,
    /// Its configuration key.
    pub server: String,
    /// How far its list is known: `never`, `whole` or `incomplete`.
    pub listing: String,
    /// Why it is not whole, or why the server cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The prompts as they came, in newest shape, sorted by name.
    pub prompts: Vec<RawJson>,
}

/// `POST /v1/prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptRequest {
    /// The namespace.
    pub namespace: String,
    /// The prompt, by the server's own name for it.
    pub prompt: String,
    /// Its arguments: an object of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawJson>,
    /// The project folder on whose behalf it is filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}
