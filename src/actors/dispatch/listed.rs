//! Which lists a host was given last, so that it is told of a change only where there is one (F38).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::session::upstream::ListKind;

/// The lists that have a notification of their own; that of resources is their templates', too.
const TOLD: [ListKind; 3] = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];

/// The place of a list among [`TOLD`].
const fn place(kind: ListKind) -> usize {
    match kind {
        ListKind::Tools => 0,
        ListKind::Resources | ListKind::Templates => 1,
        ListKind::Prompts => 2,
    }
}

/// Digests of the lists that hosts see.
///
/// As text, which the shim keeps for them, they stand in the order of [`TOLD`] with a dot between; a
/// text of fewer is of an earlier version and says nothing of the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Views(pub(super) [Arc<str>; 3]);

impl Views {
    /// The digest of a list.
    pub(crate) fn of(&self, kind: ListKind) -> &Arc<str> {
        let [tools, resources, prompts] = &self.0;
        match place(kind) {
            0 => tools,
            1 => resources,
            _ => prompts,
        }
    }

    /// The lists that are others than in `before`.
    pub(crate) fn changed_since(&self, before: &Self) -> Vec<ListKind> {
        TOLD.into_iter().filter(|kind| self.of(*kind) != before.of(*kind)).collect()
    }

    /// The same, for views as text.
    pub(crate) fn changed_since_text(&self, before: &str) -> Vec<ListKind> {
        let known = TOLD.into_iter().zip(before.split('.'));
        known.filter(|(kind, digest)| **self.of(*kind) != **digest).map(|(kind, _)| kind).collect()
    }

    /// The lists that a host has in another form than this one.
    pub(crate) fn not_as_given(&self, listed: &Listed) -> Vec<ListKind> {
        self.as_given(listed).map(|given| self.changed_since(&given)).unwrap_or_default()
    }

    /// These, but each list the one that the host was given, where it was; `None` where that makes no
    /// difference.
    pub(crate) fn as_given(&self, listed: &Listed) -> Option<Self> {
        let given = listed.digests.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = given.iter().zip(&self.0);
        if all.all(|(given, known)| given.as_ref().is_none_or(|given| given == known)) {
            return None;
        }
        let [tools, resources, prompts] = &*given;
        let or = |given: &Option<Arc<str>>, kind| given.as_ref().unwrap_or(self.of(kind)).clone();
        Some(Self([
            or(tools, ListKind::Tools),
            or(resources, ListKind::Resources),
            or(prompts, ListKind::Prompts),
        ]))
    }
}

impl fmt::Display for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tools, resources, prompts] = &self.0;
        write!(f, "{tools}.{resources}.{prompts}")
    }
}

/// The digests of the lists that one host was given last; none before its first of each.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    digests: Mutex<[Option<Arc<str>>; 3]>,
}

impl Listed {
    /// A list is on its way to the host.
    pub(crate) fn note(&self, kind: ListKind, digest: Arc<str>) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = digests.get_mut(place(kind)) {
            *last = Some(digest);
        }
    }

    /// The list that the host was given last.
    pub(crate) fn last(&self, kind: ListKind) -> Option<Arc<str>> {
        let digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        digests.get(place(kind)).cloned().flatten()
    }

    /// Whether the host has this list already.
    pub(crate) fn is(&self, kind: ListKind, digest: &str) -> bool {
        self.last(kind).as_deref() == Some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Views {
        /// Lists with these digests.
        pub(crate) fn made_up(digests: [&str; 3]) -> Self {
            Self(digests.map(Arc::from))
        }
    }

    fn views(digests: [&str; 3]) -> Views {
        Views::made_up(digests)
    }

    /// F38: each list is told of by itself, also across versions.
    #[test]
    fn f38_what_changed_is_told_apart() {
        let now = views(["t", "r", "p"]);
        assert_eq!(now.to_string(), "t.r.p");
        assert_eq!(now.changed_since(&views(["t", "x", "p"])), [ListKind::Resources]);
        assert_eq!(now.changed_since_text("t.r.x"), [ListKind::Prompts]);
        assert_eq!(now.changed_since_text("x"), [ListKind::Tools]);
        assert!(now.changed_since_text("t").is_empty());
    }

    #[test]
    fn f38_templates_are_resources() {
        let listed = Listed::default();
        listed.note(ListKind::Templates, "x".into());
        assert!(listed.is(ListKind::Resources, "x"));
        let given = views(["t", "r", "p"]).as_given(&listed).unwrap();
        assert_eq!(given.to_string(), "t.x.p");
        assert_eq!(given.as_given(&listed), None);
        assert_eq!(views(["t", "r", "p"]).not_as_given(&listed), [ListKind::Resources]);
        assert!(given.not_as_given(&listed).is_empty());
    }
}
