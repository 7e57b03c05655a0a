//! Forms: what 2025-06-18 can ask for and what only later revisions can (SEP-1034, SEP-1330).
//!
//! 2025-06-18 has defaults of booleans alone, names the options of a choice in `enumNames`, and has
//! no way to choose several. Such a choice becomes one yes-or-no field for each option there, and
//! what its host says to these becomes the list that was asked for.

use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::revision::Revision;

/// One option of a choice.
struct Choice {
    value: RawJson,
    title: String,
}

/// What lets a form of a revision before 2025-11-25 read like a newer one: titled choices.
pub(super) fn lift(params: &mut Object) {
    with_properties(params, |_, name, property, out| {
        let mut property = Object::read_or_empty(Some(property));
        if let Some(options) = named_options(&property) {
            property.remove("enum");
            property.remove("enumNames");
            property.set("oneOf", RawJson::array(&options));
            out.set(name.to_owned(), property.write());
        }
    });
}

/// The reverse, for a host of 2025-06-18.
pub(super) fn downgrade(params: &mut Object) {
    let mut chosen = Vec::new();
    with_properties(params, |all, name, property, out| {
        let mut property = Object::read_or_empty(Some(property));
        if let Some(options) = several(&property) {
            chosen.push(name.to_owned());
            out.remove(name);
            let label = property.get_str("title").unwrap_or_else(|| name.to_owned());
            let defaults = property.get("default").and_then(RawJson::elements).unwrap_or_default();
            for (key, option) in fields(all, name, options) {
                let mut field = Object::new();
                field.set("type", RawJson::write("boolean"));
                field.set("title", RawJson::write(&format!("{label}: {}", option.title)));
                if let Some(description) = property.get("description") {
                    field.set("description", description.clone());
                }
                field.set("default", RawJson::write(&defaults.contains(&option.value)));
                out.set(key, field.write());
            }
            return;
        }
        let titled = property.get("oneOf").and_then(titled);
        if let Some(options) = &titled {
            property.remove("oneOf");
            property.set("enum", RawJson::array(options.iter().map(|option| &option.value)));
            let names: Vec<_> = options.iter().map(|option| option.title.as_str()).collect();
            property.set("enumNames", RawJson::write(&names));
        }
        let loses_default = property.get_str("type").as_deref() != Some("boolean")
            && property.remove("default").is_some();
        if titled.is_some() || loses_default {
            out.set(name.to_owned(), property.write());
        }
    });
    not_required(params, &chosen);
}

/// What a host of `revision` said to the form in `params`: choices of several as lists, and defaults
/// where nothing was said. Says whether anything changed.
pub(super) fn lift_reply(revision: Revision, params: &RawJson, reply: &mut Object) -> bool {
    if reply.get_str("action").as_deref() != Some("accept") {
        return false;
    }
    let schema = params.member("requestedSchema");
    let properties = schema.and_then(|schema| schema.member("properties"));
    let properties = Object::read_or_empty(properties.as_ref());
    let mut content = Object::read_or_empty(reply.get("content"));
    let mut changed = false;
    for (name, property) in properties.iter() {
        let property = Object::read_or_empty(Some(property));
        if revision < Revision::V2025_11_25
            && let Some(options) = several(&property)
        {
            changed |= gather(&properties, name, options, &mut content);
        }
        let default = property.get("default").filter(|default| !default.is_null());
        if let Some(default) = default
            && !content.contains(name)
        {
            content.set(name.to_owned(), default.clone());
            changed = true;
        }
    }
    if changed {
        reply.set("content", content.write());
    }
    changed
}

/// The list that the yes-or-no fields of one choice stand for, unless the host said nothing to any.
fn gather(all: &Object, name: &str, options: Vec<Choice>, content: &mut Object) -> bool {
    let mut said = false;
    let mut chosen = Vec::new();
    for (key, option) in fields(all, name, options) {
        let Some(answer) = content.remove(&key) else { continue };
        said = true;
        if answer.as_bytes() == b"true" {
            chosen.push(option.value);
        }
    }
    if said {
        content.set(name.to_owned(), RawJson::array(&chosen));
    }
    said
}

/// The fields that stand for a choice of several; none is called like a field that is there.
fn fields(all: &Object, name: &str, options: Vec<Choice>) -> Vec<(String, Choice)> {
    let numbered = options.into_iter().zip(1_u32..).map(|(option, number)| {
        let mut key = format!("{name}.{number}");
        while all.contains(&key) {
            key.push('_');
        }
        (key, option)
    });
    numbered.collect()
}

/// Goes through the properties of the requested schema; `step` gets all of them, one with its name,
/// and the place for what is to stand there.
fn with_properties(
    params: &mut Object,
    mut step: impl FnMut(&Object, &str, &RawJson, &mut Object),
) {
    let Some(Ok(mut schema)) = params.get("requestedSchema").map(Object::read) else { return };
    let Some(Ok(properties)) = schema.get("properties").map(Object::read) else { return };
    let mut out = Object::new();
    for (name, property) in properties.iter() {
        out.set(name.to_owned(), property.clone());
        step(&properties, name, property, &mut out);
    }
    schema.set("properties", out.write());
    params.set("requestedSchema", schema.write());
}

/// A yes-or-no field that had to be filled in would have to say yes.
fn not_required(params: &mut Object, names: &[String]) {
    let Some(Ok(mut schema)) = params.get("requestedSchema").map(Object::read) else { return };
    let Some(mut required) = schema.get("required").and_then(RawJson::elements) else { return };
    let before = required.len();
    required.retain(|name| name.text().is_none_or(|name| !names.contains(&name)));
    if required.len() < before {
        schema.set("required", RawJson::array(&required));
        params.set("requestedSchema", schema.write());
    }
}

/// The options of a choice of several.
fn several(property: &Object) -> Option<Vec<Choice>> {
    if property.get_str("type").as_deref() != Some("array") {
        return None;
    }
    let items = Object::read(property.get("items")?).ok()?;
    if let Some(options) = items.get("anyOf") {
        return titled(options);
    }
    let values = items.get("enum")?.elements()?;
    let options = values.into_iter().map(|value| {
        let title = value.text()?;
        Some(Choice { value, title })
    });
    options.collect()
}

/// `[{"const": …, "title": …}, …]`
fn titled(options: &RawJson) -> Option<Vec<Choice>> {
    let options = options.elements()?;
    let options = options.iter().map(|option| {
        let value = option.member("const")?;
        Some(Choice { title: option.member_str("title")?, value })
    });
    options.collect()
}

/// `enum` and `enumNames` as titled options, where there is a name for each.
fn named_options(property: &Object) -> Option<Vec<RawJson>> {
    let values = property.get("enum")?.elements()?;
    let names = property.get("enumNames")?.elements()?;
    if values.len() != names.len() || !names.iter().all(|name| name.text().is_some()) {
        return None;
    }
    let options = values.into_iter().zip(names).map(|(value, name)| {
        let mut option = Object::new();
        option.set("const", value);
        option.set("title", name);
        option.write()
    });
    Some(options.collect())
}
