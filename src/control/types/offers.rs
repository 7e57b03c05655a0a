//! Answers and requests about resources and prompts.

use serde::{Deserialize, Serialize};

use crate::protocol::jsonrpc::RawJson;

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
