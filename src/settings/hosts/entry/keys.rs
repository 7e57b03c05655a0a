//! The spellings of keys and types in hosts' files.

use crate::settings::hosts::found::folded;

/// Keys that mean something here; anything else is kept as a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Command,
    Args,
    Env,
    Forwarded,
    EnvFile,
    Cwd,
    Url,
    HttpUrl,
    Kind,
    Transport,
    Headers,
    EnvHeaders,
    BearerVariable,
    Nested,
    Disabled,
    Enabled,
    Allow,
    Deny,
    Approved,
    Timeout,
    OAuth,
    Idle,
}

/// The spellings, folded: small letters, without `_` and `-`.
const ALIASES: &[(&str, Key)] = &[
    ("command", Key::Command),
    ("cmd", Key::Command),
    ("args", Key::Args),
    ("arguments", Key::Args),
    ("env", Key::Env),
    ("environment", Key::Env),
    ("envvars", Key::Forwarded),
    ("envfile", Key::EnvFile),
    ("cwd", Key::Cwd),
    ("workingdirectory", Key::Cwd),
    ("workingdir", Key::Cwd),
    ("url", Key::Url),
    ("serverurl", Key::Url),
    ("httpurl", Key::HttpUrl),
    ("type", Key::Kind),
    ("transporttype", Key::Kind),
    ("transport", Key::Transport),
    ("headers", Key::Headers),
    ("httpheaders", Key::Headers),
    ("requestoptions", Key::Nested),
    ("requestinit", Key::Nested),
    ("envhttpheaders", Key::EnvHeaders),
    ("bearertokenenvvar", Key::BearerVariable),
    ("disabled", Key::Disabled),
    ("enabled", Key::Enabled),
    ("enabledtools", Key::Allow),
    ("includetools", Key::Allow),
    ("tools", Key::Allow),
    ("disabledtools", Key::Deny),
    ("excludetools", Key::Deny),
    ("alwaysallow", Key::Approved),
    ("autoapprove", Key::Approved),
    ("autoapproved", Key::Approved),
    ("trust", Key::Approved),
    ("defaulttoolsapprovalmode", Key::Approved),
    ("timeout", Key::Timeout),
    ("timeoutms", Key::Timeout),
    ("timeoutsec", Key::Timeout),
    ("startuptimeoutsec", Key::Timeout),
    ("startuptimeoutms", Key::Timeout),
    ("tooltimeoutsec", Key::Timeout),
    ("connectiontimeout", Key::Timeout),
    ("requesttimeout", Key::Timeout),
    ("oauth", Key::OAuth),
    ("auth", Key::OAuth),
    ("authprovidertype", Key::OAuth),
    ("name", Key::Idle),
    ("id", Key::Idle),
    ("$schema", Key::Idle),
    ("source", Key::Idle),
    ("description", Key::Idle),
];

/// What `type` may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Program,
    Http,
    Sse,
    Address,
}

/// What a word of `type` says.
pub(super) fn kind_of(word: &str) -> Option<Kind> {
    Some(match folded(word).replace('+', "").as_str() {
        "stdio" | "local" | "command" => Kind::Program,
        "http" | "streamablehttp" | "streamable" => Kind::Http,
        "sse" | "httpsse" => Kind::Sse,
        "remote" => Kind::Address,
        _ => return None,
    })
}

/// What a key of an entry means, in any case.
pub(super) fn key_of(name: &str) -> Option<Key> {
    let name = folded(name);
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, key)| *key)
}
