//! Which member of which object exists in which revision. Data; from the five schemas.
//!
//! What another revision defines and the one at hand does not is taken out (H-04, H-23, H-24, H-61,
//! H-62); what no revision defines, vendor keys and extensions, is kept.

use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::revision::Revision::{
    self, V2024_11_05 as R2411, V2025_03_26 as R2503, V2025_06_18 as R2506, V2025_11_25 as R2511,
    V2026_07_28 as R2607,
};

/// An object of the schemas that has different members in different revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// An item of `tools/list`.
    Tool,
    /// An item of `resources/list`.
    Resource,
    /// An item of `resources/templates/list`.
    ResourceTemplate,
    /// An item of `prompts/list`.
    Prompt,
    /// An argument of a prompt.
    PromptArgument,
    /// A text, image or audio block.
    Block,
    /// A resource block.
    Embedded,
    /// A link block.
    Link,
    /// What a resource holds.
    Contents,
    /// The annotations of blocks and resources.
    Annotations,
    /// `clientInfo` and `serverInfo`.
    Implementation,
    /// What a server declares.
    ServerCapabilities,
    /// What a client declares.
    ClientCapabilities,
    /// Its `elicitation` member.
    ElicitationCapability,
    /// Its `sampling` member.
    SamplingCapability,
    /// Its `roots` member.
    RootsCapability,
    /// Parameters of `tools/call`.
    CallParams,
    /// Parameters of `prompts/get` and `resources/read`.
    InputParams,
    /// Parameters of `completion/complete`.
    CompleteParams,
    /// Parameters of `notifications/progress`.
    ProgressParams,
    /// Parameters of `elicitation/create`.
    ElicitParams,
    /// The form in them.
    RequestedSchema,
    /// What is said to them.
    ElicitReply,
    /// Parameters of `sampling/createMessage`.
    SamplingParams,
    /// A message in them.
    SamplingMessage,
    /// Parameters of `roots/list`.
    RootsParams,
    /// What is said to them.
    RootsReply,
    /// One root.
    Root,
}

use Shape::{
    Annotations, Block, CallParams, ClientCapabilities, CompleteParams, Contents, ElicitParams,
    ElicitReply, ElicitationCapability, Embedded, Implementation, InputParams, Link,
    ProgressParams, Prompt, PromptArgument, RequestedSchema, Resource, ResourceTemplate, Root,
    RootsCapability, RootsReply, SamplingCapability, SamplingMessage, SamplingParams,
    ServerCapabilities, Tool,
};

/// Object, member, first and last revision that have it. A member of all five has no row.
pub(super) struct Field(
    pub(super) Shape,
    pub(super) &'static str,
    pub(super) Revision,
    pub(super) Revision,
);

pub(super) const FIELDS: &[Field] = &[
    Field(Tool, "annotations", R2503, R2607),
    Field(Tool, "title", R2506, R2607),
    Field(Tool, "outputSchema", R2506, R2607),
    Field(Tool, "_meta", R2506, R2607),
    Field(Tool, "icons", R2511, R2607),
    Field(Tool, "execution", R2511, R2511),
    Field(Resource, "title", R2506, R2607),
    Field(Resource, "_meta", R2506, R2607),
    Field(Resource, "icons", R2511, R2607),
    Field(ResourceTemplate, "title", R2506, R2607),
    Field(ResourceTemplate, "_meta", R2506, R2607),
    Field(ResourceTemplate, "icons", R2511, R2607),
    Field(Prompt, "title", R2506, R2607),
    Field(Prompt, "_meta", R2506, R2607),
    Field(Prompt, "icons", R2511, R2607),
    Field(PromptArgument, "title", R2506, R2607),
    Field(Block, "_meta", R2506, R2607),
    Field(Embedded, "_meta", R2506, R2607),
    Field(Contents, "_meta", R2506, R2607),
    Field(Link, "icons", R2511, R2607),
    Field(Annotations, "lastModified", R2506, R2607),
    Field(Implementation, "title", R2506, R2607),
    Field(Implementation, "description", R2511, R2607),
    Field(Implementation, "icons", R2511, R2607),
    Field(Implementation, "websiteUrl", R2511, R2607),
    Field(ServerCapabilities, "completions", R2503, R2607),
    Field(ServerCapabilities, "tasks", R2511, R2511),
    Field(ServerCapabilities, "extensions", R2607, R2607),
    Field(ClientCapabilities, "elicitation", R2506, R2607),
    Field(ClientCapabilities, "tasks", R2511, R2511),
    Field(ClientCapabilities, "extensions", R2607, R2607),
    Field(ElicitationCapability, "form", R2511, R2607),
    Field(ElicitationCapability, "url", R2511, R2607),
    Field(SamplingCapability, "context", R2511, R2607),
    Field(SamplingCapability, "tools", R2511, R2607),
    Field(RootsCapability, "listChanged", R2411, R2511),
    Field(CallParams, "task", R2511, R2511),
    Field(CallParams, "inputResponses", R2607, R2607),
    Field(CallParams, "requestState", R2607, R2607),
    Field(InputParams, "inputResponses", R2607, R2607),
    Field(InputParams, "requestState", R2607, R2607),
    Field(CompleteParams, "context", R2506, R2607),
    Field(ProgressParams, "message", R2503, R2607),
    Field(ElicitParams, "mode", R2511, R2607),
    Field(ElicitParams, "elicitationId", R2511, R2511),
    Field(ElicitParams, "task", R2511, R2511),
    Field(ElicitParams, "_meta", R2506, R2511),
    Field(RequestedSchema, "$schema", R2511, R2607),
    Field(ElicitReply, "_meta", R2506, R2511),
    Field(SamplingParams, "tools", R2511, R2607),
    Field(SamplingParams, "toolChoice", R2511, R2607),
    Field(SamplingParams, "task", R2511, R2511),
    Field(SamplingParams, "_meta", R2411, R2511),
    Field(SamplingMessage, "_meta", R2511, R2607),
    Field(RootsReply, "_meta", R2411, R2511),
    Field(Root, "_meta", R2506, R2607),
];

/// Outer object, member, the objects in it, and whether there is a list of them.
struct Part(Shape, &'static str, Shape, bool);

const PARTS: &[Part] = &[
    Part(Resource, "annotations", Annotations, false),
    Part(ResourceTemplate, "annotations", Annotations, false),
    Part(Prompt, "arguments", PromptArgument, true),
    Part(Block, "annotations", Annotations, false),
    Part(Embedded, "annotations", Annotations, false),
    Part(Embedded, "resource", Contents, false),
    Part(Link, "annotations", Annotations, false),
    Part(ClientCapabilities, "elicitation", ElicitationCapability, false),
    Part(ClientCapabilities, "sampling", SamplingCapability, false),
    Part(ClientCapabilities, "roots", RootsCapability, false),
    Part(ElicitParams, "requestedSchema", RequestedSchema, false),
    Part(SamplingParams, "messages", SamplingMessage, true),
    Part(RootsReply, "roots", Root, true),
];

/// Members of `shape` that `revision` lacks and another has.
fn foreign(shape: Shape, revision: Revision) -> impl Iterator<Item = &'static str> {
    FIELDS
        .iter()
        .filter(move |Field(owner, _, first, last)| {
            *owner == shape && !(*first..=*last).contains(&revision)
        })
        .map(|Field(_, name, _, _)| *name)
}

/// Whether the member `name` may have to go from `shape`, or something in it.
pub(super) fn is_foreign(shape: Shape, revision: Revision, name: &[u8]) -> bool {
    foreign(shape, revision).any(|known| known.as_bytes() == name)
        || parts(shape).any(|Part(_, known, _, _)| known.as_bytes() == name)
}

fn parts(shape: Shape) -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(move |Part(outer, ..)| *outer == shape)
}

/// Every name that may have to go from `shape` and what is in it.
pub(super) fn foreign_names(shape: Shape, revision: Revision) -> Vec<&'static str> {
    let mut names: Vec<_> = foreign(shape, revision).collect();
    for Part(_, _, inner, _) in parts(shape) {
        names.extend(foreign_names(*inner, revision));
    }
    names
}

/// Whether anything can have to go from `shape` or what is in it.
fn touches(shape: Shape, revision: Revision) -> bool {
    foreign(shape, revision).next().is_some()
        || parts(shape).any(|Part(_, _, inner, _)| touches(*inner, revision))
}

/// `raw` without what `revision` lacks; `None` where nothing has to go.
pub(super) fn spell(shape: Shape, revision: Revision, raw: &RawJson) -> Option<RawJson> {
    if !touches(shape, revision) {
        return None;
    }
    let mut object = Object::read(raw).ok()?;
    spell_open(shape, revision, &mut object).then(|| object.write())
}

/// [`spell`] for an object that is open already; says whether it was changed.
pub(super) fn spell_open(shape: Shape, revision: Revision, object: &mut Object) -> bool {
    let mut changed = false;
    for name in foreign(shape, revision) {
        changed |= object.remove(name).is_some();
    }
    for Part(_, name, inner, many) in parts(shape) {
        let Some(value) = object.get(name) else { continue };
        let spelled = if *many {
            spell_each(value, |item| spell(*inner, revision, item))
        } else {
            spell(*inner, revision, value)
        };
        if let Some(spelled) = spelled {
            object.set(*name, spelled);
            changed = true;
        }
    }
    changed
}

/// An array with each element spelled by `step`; `None` where no element changes.
pub(super) fn spell_each(
    array: &RawJson,
    mut step: impl FnMut(&RawJson) -> Option<RawJson>,
) -> Option<RawJson> {
    let mut elements = array.elements()?;
    let mut changed = false;
    for element in &mut elements {
        if let Some(spelled) = step(element) {
            *element = spelled;
            changed = true;
        }
    }
    changed.then(|| RawJson::array(&elements))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(shape: Shape, revision: Revision, text: &str) -> String {
        let raw = RawJson::parse(text.to_owned().into()).unwrap();
        spell(shape, revision, &raw).unwrap_or(raw).as_str().to_owned()
    }

    const TOOL: &str = r#"{"name":"t","x-vendor":{"icons":1},"title":"T","annotations":{"title":"A"},"inputSchema":{"title":"kept"},"outputSchema":{"type":"object"},"icons":[],"execution":{"taskSupport":"optional"},"_meta":{"k":1e2}}"#;

    #[test]
    fn h04_h58_tools_by_revision() {
        assert_eq!(
            spelled(Tool, R2411, TOOL),
            r#"{"name":"t","x-vendor":{"icons":1},"inputSchema":{"title":"kept"}}"#
        );
        assert_eq!(
            spelled(Tool, R2503, TOOL),
            r#"{"name":"t","x-vendor":{"icons":1},"annotations":{"title":"A"},"inputSchema":{"title":"kept"}}"#
        );
        assert!(!spelled(Tool, R2506, TOOL).contains(r#""icons":[]"#));
        assert!(spelled(Tool, R2506, TOOL).contains(r#""_meta":{"k":1e2}"#));
        assert_eq!(spelled(Tool, R2511, TOOL), TOOL);
        assert!(!spelled(Tool, R2607, TOOL).contains("execution"));
    }

    #[test]
    fn h61_titles_of_prompts_and_resources() {
        let prompt =
            r#"{"name":"p","title":"P","arguments":[{"name":"a","title":"A"},{"name":"b"}]}"#;
        assert_eq!(
            spelled(Prompt, R2503, prompt),
            r#"{"name":"p","arguments":[{"name":"a"},{"name":"b"}]}"#
        );
        assert_eq!(spelled(Prompt, R2506, prompt), prompt);
        let resource =
            r#"{"uri":"u","name":"r","title":"R","annotations":{"priority":1,"lastModified":"x"}}"#;
        assert_eq!(
            spelled(Resource, R2411, resource),
            r#"{"uri":"u","name":"r","annotations":{"priority":1}}"#
        );
    }

    #[test]
    fn names_are_gathered_from_all_depths() {
        assert!(foreign_names(Prompt, R2503).contains(&"title"));
        assert!(foreign_names(Block, R2503).contains(&"lastModified"));
        assert!(foreign_names(Block, R2506).is_empty());
    }
}
