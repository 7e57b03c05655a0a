//! Profiles as people read them.

use std::fmt::Write as _;

use super::{toml_key, toml_string};
use crate::control::types::ProfileConfig;
use crate::settings::policy::PolicyRule;
use crate::settings::profiles::ProfileDef;

impl ProfileConfig {
    pub(super) fn of(def: &ProfileDef) -> Self {
        let rule = |rule: &PolicyRule| (rule.pattern(), rule.rule.as_str().to_owned());
        let words = |globs: &Vec<_>| globs.iter().map(ToString::to_string).collect();
        Self {
            profile: def.name.clone(),
            servers: def.servers.as_ref().map(words),
            expose: def.expose.map(|mode| mode.as_str().to_owned()),
            name_limit: def.name_limit,
            project: def.project.as_ref().map(|project| project.display().to_string()),
            policy: def.policy.iter().map(rule).collect(),
        }
    }
}

/// Its table.
pub(super) fn toml(text: &mut String, profile: &ProfileConfig) {
    let ProfileConfig { profile: name, servers, expose, name_limit, project, policy } = profile;
    let gap = if text.is_empty() { "" } else { "\n" };
    let mut lines = vec![format!("{gap}[profiles.{}]", toml_key(name))];
    if let Some(servers) = servers {
        let servers: Vec<_> = servers.iter().map(|server| toml_string(server)).collect();
        lines.push(format!("servers = [{}]", servers.join(", ")));
    }
    lines.extend(expose.as_ref().map(|expose| format!("expose = {}", toml_string(expose))));
    lines.extend(name_limit.map(|limit| format!("name_limit = {limit}")));
    lines.extend(project.as_ref().map(|project| format!("project = {}", toml_string(project))));
    if !policy.is_empty() {
        let rules = policy.iter();
        let rules = rules
            .map(|(pattern, rule)| format!("{} = {}", toml_string(pattern), toml_string(rule)));
        lines.push(format!("policy = {{ {} }}", rules.collect::<Vec<_>>().join(", ")));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", lines.join("\n"));
}
