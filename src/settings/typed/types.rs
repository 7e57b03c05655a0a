//! `types.*`, resolved.

use super::Values;

/// Limits of TypeScript that is made of schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypesSettings {
    /// `types.depth`: levels of a schema.
    pub depth: usize,
    /// `types.nodes`: schemas and values of one schema.
    pub nodes: usize,
    /// `types.size`: bytes that `mcpx_types` gives at once.
    pub size: usize,
    /// `types.description`: bytes of one description.
    pub description: usize,
}

impl Values<'_> {
    pub(super) fn types(&self) -> TypesSettings {
        TypesSettings {
            depth: self.count("types.depth"),
            nodes: self.count("types.nodes"),
            size: self.count("types.size"),
            description: self.count("types.description"),
        }
    }
}
