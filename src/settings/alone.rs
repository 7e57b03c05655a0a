//! Whether one server stands for itself behind mcpx.

use std::sync::Arc;

use super::{ExposeMode, ServerDef, Settings};

impl Settings {
    /// The server that is exposed alone: the only one that is passed through, under its own names
    /// (`prefix = ""`). What mcpx does not know of its protocol is passed on both ways (product.md 3),
    /// which could not be done for several.
    pub fn alone(&self) -> Option<&Arc<ServerDef>> {
        let mode = |def: &ServerDef| def.expose.unwrap_or(self.expose.mode);
        let mut shown = self.servers.iter().filter(|def| mode(def) != ExposeMode::Core);
        let only = shown.next()?;
        (shown.next().is_none() && only.prefix.as_deref() == Some("")).then_some(only)
    }

    /// Whether that is the server of this key.
    pub fn is_alone(&self, key: &str) -> bool {
        self.alone().is_some_and(|def| def.key == key)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn one_server_is_alone_and_only_under_its_own_names() {
        let loaded = Settings::defaults(Path::new("/nowhere/mcpx")).unwrap();
        let mut settings = Settings::clone(&loaded.settings);
        settings.expose.mode = ExposeMode::Passthrough;
        let server = |key: &str, prefix: Option<&str>, expose| {
            let demo = ServerDef::demo(Path::new("/nowhere/mcpx"));
            Arc::new(ServerDef {
                key: key.to_owned(),
                prefix: prefix.map(str::to_owned),
                expose,
                ..demo
            })
        };
        settings.servers = vec![server("a", Some(""), None)];
        assert!(settings.is_alone("a") && !settings.is_alone("b"));
        settings.servers.push(server("b", None, Some(ExposeMode::Core)));
        assert!(settings.is_alone("a"), "one behind the core tools is not exposed");
        settings.servers.push(server("c", Some(""), None));
        assert!(settings.alone().is_none());
        settings.servers = vec![server("a", None, None)];
        assert!(settings.alone().is_none());
        settings.servers = vec![server("a", Some(""), None)];
        settings.expose.mode = ExposeMode::Core;
        assert!(settings.alone().is_none());
    }
}
