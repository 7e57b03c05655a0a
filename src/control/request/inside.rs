//! Ops on what goes on inside, from parameters and back.

use super::{Given, Values};
use crate::control::types::{AuditRequest, EventsRequest, TraceRequest};
use crate::protocol::jsonrpc::RawJson;

impl AuditRequest {
    pub(super) fn read(values: &Values<'_>) -> Self {
        Self {
            since: values.text("since"),
            server: values.text("server"),
            outcome: values.text("outcome"),
            id: values.text("id"),
            limit: values.read("limit"),
            follow: values.read("follow").unwrap_or(false),
        }
    }

    pub(super) fn given(&self) -> Given {
        let texts = [
            ("since", &self.since),
            ("server", &self.server),
            ("outcome", &self.outcome),
            ("id", &self.id),
        ];
        let mut given = some(texts);
        given.extend(self.limit.as_ref().map(|limit| ("limit", RawJson::write(limit))));
        given.push(("follow", RawJson::write(&self.follow)));
        given
    }
}

impl EventsRequest {
    pub(super) fn read(values: &Values<'_>) -> Self {
        Self {
            follow: values.read("follow").unwrap_or(true),
            server: values.text("server"),
            kind: values.text("kind"),
        }
    }

    pub(super) fn given(&self) -> Given {
        let mut given = some([("server", &self.server), ("kind", &self.kind)]);
        given.push(("follow", RawJson::write(&self.follow)));
        given
    }
}

impl TraceRequest {
    pub(super) fn read(values: &Values<'_>) -> Self {
        Self {
            server: values.needed("server"),
            frames: values.read("frames"),
            follow: values.read("follow").unwrap_or(false),
        }
    }

    pub(super) fn given(&self) -> Given {
        let mut given = vec![("server", RawJson::write(&self.server))];
        given.extend(self.frames.as_ref().map(|frames| ("frames", RawJson::write(frames))));
        given.push(("follow", RawJson::write(&self.follow)));
        given
    }
}

fn some<const N: usize>(texts: [(&'static str, &Option<String>); N]) -> Given {
    texts
        .into_iter()
        .filter_map(|(name, text)| Some((name, RawJson::write(text.as_ref()?))))
        .collect()
}
