//! The attach of a shim: what its HTTP upgrade says, and the lines between the two that are no
//! frames.
//!
//! Old shims outlive upgrades, so a daemon serves the version before its own as well (product.md 5).

use std::fmt;

pub use crate::protocol::session::shim::{DRAIN_LINE, VIEW_LINE};

use super::route::{decode, encode};
use super::types::{ApiError, FailureCode};

/// The version of the attach stream that this program speaks.
pub const VERSION: u32 = 1;

/// The oldest version that a daemon of this program serves.
pub const OLDEST: u32 = if VERSION > 1 { VERSION - 1 } else { VERSION };

const VERSION_HEADER: &str = "x-mcpx-attach";
const PROFILE_HEADER: &str = "x-mcpx-profile";
const PROJECT_HEADER: &str = "x-mcpx-project";
const VIEW_HEADER: &str = "x-mcpx-view";
const SESSION_HEADER: &str = "x-mcpx-session";

/// What a shim says of itself when it attaches.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attach {
    /// The project folder of its host.
    pub project: Option<String>,
    /// The view its host saw last, by the digest of a [`VIEW_LINE`], when it attaches again.
    pub view: Option<String>,
    /// A name that the shim drew for itself and that nobody guesses: it is the same host's when it
    /// attaches again, and what belongs to that, its tasks, is still its own (T-13).
    pub session: Option<String>,
    /// The profile by which its host comes in.
    pub profile: Option<String>,
}

impl fmt::Debug for Attach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { project, view, session, profile } = self;
        let named = session.is_some();
        write!(
            f,
            "Attach {{ project: {project:?}, profile: {profile:?}, view: {view:?}, named: {named} }}"
        )
    }
}

impl Attach {
    /// The headers of the upgrade.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![(VERSION_HEADER, VERSION.to_string())];
        headers.extend(self.project.as_ref().map(|project| (PROJECT_HEADER, encode(project))));
        headers.extend(self.view.as_ref().map(|view| (VIEW_HEADER, encode(view))));
        headers.extend(self.profile.as_ref().map(|profile| (PROFILE_HEADER, encode(profile))));
        headers.extend(self.session.as_ref().map(|name| (SESSION_HEADER, encode(name))));
        headers
    }

    /// What the headers of an upgrade say; refused where the versions do not meet.
    pub fn read(header: impl Fn(&str) -> Option<String>) -> Result<Self, ApiError> {
        let said = header(VERSION_HEADER);
        let version = said.as_deref().and_then(|said| said.parse::<u32>().ok());
        if !version.is_some_and(|version| (OLDEST..=VERSION).contains(&version)) {
            let text = format!(
                "the shim speaks attach version {}, the daemon {OLDEST} to {VERSION}",
                said.as_deref().unwrap_or("none")
            );
            return Err(ApiError::new(FailureCode::Refused, text).with_hint(
                "restart the daemon (mcpx stop --daemon) and the host, so that both \
                            run the same mcpx",
            ));
        }
        let read = |name: &str| header(name).map(|text| decode(&text, false)).transpose();
        Ok(Self {
            project: read(PROJECT_HEADER)?,
            view: read(VIEW_HEADER)?,
            session: read(SESSION_HEADER)?.filter(|name| !name.is_empty()),
            profile: read(PROFILE_HEADER)?.filter(|name| !name.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&'static str, String)]) -> Result<Attach, ApiError> {
        Attach::read(|name| {
            headers.iter().find(|(header, _)| *header == name).map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn an_attach_survives_its_headers() {
        for attach in [
            Attach::default(),
            Attach {
                project: Some("/home/ü x\n".to_owned()),
                view: Some("ab12".to_owned()),
                profile: Some("re-view".to_owned()),
                session: Some("0f1e".to_owned()),
            },
        ] {
            let headers = attach.headers();
            assert!(headers.iter().all(|(_, value)| value.bytes().all(|b| b.is_ascii_graphic())));
            assert_eq!(read(&headers), Ok(attach));
        }
    }

    #[test]
    fn other_versions_are_refused_with_what_to_do() {
        for version in ["0", "99", "x"] {
            let error = read(&[(VERSION_HEADER, version.to_owned())]).unwrap_err().error;
            assert_eq!(error.code, FailureCode::Refused);
            assert!(error.hint.is_some());
        }
        assert!(read(&[]).is_err());
    }
}
