//! The bearer token of hosts over HTTP: the one in the settings, else one of our own in the state
//! folder (product.md 5).

use std::fmt;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

use crate::actors::instance::spec::{Surroundings, expanded};
use crate::settings::typed::HttpSettings;
use crate::transport::clock;
use crate::transport::store::statefile;

/// Bytes of randomness in a token of our own.
const RANDOM: usize = 32;

/// A token; never shown by `Debug`.
#[derive(Clone)]
pub(crate) struct Token {
    text: Arc<str>,
    digest: [u8; 32],
    /// Where it comes from, for people.
    pub(crate) from: Arc<str>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token from {}", self.from)
    }
}

/// What a request showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Right,
    Wrong,
    Nothing,
}

impl Token {
    fn new(text: &str, from: &str) -> Result<Self, String> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token from {from} is not one word of plain ASCII, which is all that a header \
                 can carry"
            ));
        }
        let digest = Sha256::digest(text).into();
        Ok(Self { text: text.into(), digest, from: from.into() })
    }

    /// The text, for whoever may see it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Looks at `Authorization`. Digests are compared, whole, so that the time tells nothing of the
    /// token.
    pub(super) fn look(&self, headers: &HeaderMap) -> Shown {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Shown::Nothing };
        let (scheme, shown) = match value.as_bytes().iter().position(|byte| *byte == b' ') {
            Some(space) => value.as_bytes().split_at(space),
            None => (value.as_bytes(), &[][..]),
        };
        if values.next().is_some() || !scheme.eq_ignore_ascii_case(b"bearer") {
            return Shown::Wrong;
        }
        let shown: [u8; 32] = Sha256::digest(shown.trim_ascii()).into();
        let both = shown.iter().zip(&self.digest);
        let differs = both.fold(0, |differs, (a, b)| black_box(differs | (a ^ b)));
        if differs == 0 { Shown::Right } else { Shown::Wrong }
    }
}

/// The file of our own token.
pub(super) fn file(keys: &Path) -> PathBuf {
    keys.join("http-token")
}

/// The token in force, and what is to be said about it.
pub(super) async fn find(
    http: &HttpSettings,
    around: &dyn Surroundings,
    keys: &Path,
) -> Result<(Token, Option<String>), String> {
    let Some(secret) = &http.token else { return own(keys) };
    let text = expanded(around, "http.token", secret.written()).await;
    let text = text.map_err(|error| error.text)?;
    Ok((Token::new(&text, "the setting http.token")?, None))
}

/// Ours, made where there is none.
fn own(keys: &Path) -> Result<(Token, Option<String>), String> {
    let path = file(keys);
    let from = path.display().to_string();
    let failed = |error: std::io::Error| format!("the token in {from} cannot be had: {error}");
    statefile::private_folder(keys).map_err(failed)?;
    let mut said = None;
    if let Some(bytes) = statefile::read(&path).map_err(failed)? {
        if statefile::make_private(&path).map_err(failed)? {
            said = Some(format!(
                "{from} could be read by others and was closed to them; take it away and run \
                 `mcpx reload` for a new token"
            ));
        }
        let kept = std::str::from_utf8(&bytes).ok().map(str::trim);
        if let Some(Ok(token)) = kept.map(|text| Token::new(text, &from)) {
            return Ok((token, said));
        }
    }
    let text = URL_SAFE_NO_PAD.encode(clock::secret::<RANDOM>().map_err(failed)?);
    statefile::write(&path, format!("{text}\n").as_bytes()).map_err(failed)?;
    Ok((Token::new(&text, &from)?, said))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use http::HeaderValue;

    use super::*;

    fn look(token: &Token, header: &str) -> Shown {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(header).unwrap());
        token.look(&headers)
    }

    #[test]
    fn only_the_whole_token_is_right() {
        let token = Token::new("s3cret", "a test").unwrap();
        assert_eq!(token.look(&HeaderMap::new()), Shown::Nothing);
        for right in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "] {
            assert_eq!(look(&token, right), Shown::Right, "{right}");
        }
        for wrong in
            ["Bearer s3cre", "Bearer s3crets", "Bearer", "Bearer ", "Basic s3cret", "s3cret", ""]
        {
            assert_eq!(look(&token, wrong), Shown::Wrong, "{wrong}");
        }
        let mut twice = HeaderMap::new();
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer other"));
        assert_eq!(token.look(&twice), Shown::Wrong);
        assert!(!format!("{token:?}").contains("s3cret"));
    }

    #[test]
    fn our_own_is_made_once_kept_private_and_long() {
        let top = tempfile::tempdir().unwrap();
        let keys = top.path().join("keys");
        let (first, _) = own(&keys).unwrap();
        let (again, said) = own(&keys).unwrap();
        assert_eq!((first.text(), said), (again.text(), None));
        assert_eq!(first.text().len(), 43, "32 bytes");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&keys), mode(&file(&keys))), (0o700, 0o600));

        std::fs::set_permissions(file(&keys), std::fs::Permissions::from_mode(0o644)).unwrap();
        let (open, said) = own(&keys).unwrap();
        assert_eq!((open.text(), mode(&file(&keys))), (first.text(), 0o600));
        assert!(said.unwrap().contains("could be read by others"));

        statefile::write(&file(&keys), b"two words\n").unwrap();
        assert_ne!(own(&keys).unwrap().0.text(), first.text());
    }

    #[test]
    fn a_token_fits_into_a_header() {
        for bad in ["", "two words", "tab\t", "ümlaut", "line\n"] {
            assert!(Token::new(bad, "a test").unwrap_err().contains("plain ASCII"), "{bad:?}");
        }
    }
}
