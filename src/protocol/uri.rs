//! Addresses of upstream resources as hosts see them: `mcpx://<namespace>/<the upstream's own URI>`
//! and which addresses a URI template can give.
//!
//! The upstream's URI stands in the address as it is, not percent-encoded: a template then stays a
//! template (what a host fills in goes through to the upstream as it was filled in), and the way
//! back is to take the beginning off. A colon and empty segments are allowed in a path (RFC 3986,
//! 3.3), and readers of URLs leave them alone where they do not know the scheme.

/// What addresses of mcpx begin with.
const SCHEME: &str = "mcpx://";

/// The address of an upstream's URI, or of its URI template.
pub fn address(namespace: &str, uri: &str) -> String {
    format!("{SCHEME}{namespace}/{uri}")
}

/// Namespace and upstream URI of an address; either may be empty. `None` where it is none of mcpx's.
pub fn split(address: &str) -> Option<(&str, &str)> {
    // A scheme means the same in any case (RFC 3986, 3.1), and some hosts write it in their own.
    let (scheme, rest) = address.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| rest.split_once('/').unwrap_or((rest, "")))
}

/// What addresses of artifacts have in a namespace's place.
pub const ARTIFACTS: &str = "artifacts";

/// The address of an artifact (C-14).
pub fn artifact(id: &str) -> String {
    address(ARTIFACTS, id)
}

/// The id of an artifact's address. A server may have this namespace, too: its resources are told
/// apart by what follows, which is 32 hexadecimal digits for artifacts alone.
pub fn artifact_id(address: &str) -> Option<&str> {
    let (namespace, id) = split(address)?;
    (namespace == ARTIFACTS && is_artifact_id(id)).then_some(id)
}

/// Whether it is the id of an artifact: 128 bits in lower-case hexadecimal digits.
pub fn is_artifact_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether `template` (RFC 6570) can give `uri`. Generous: an expression stands for any text, because
/// servers do not agree on what a variable may hold.
pub fn may_give(template: &str, uri: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        literals.push(literal);
        let Some((_, after)) = after.split_once('}') else { return template == uri };
        rest = after;
    }
    let Some((first, between)) = literals.split_first() else { return template == uri };
    let Some(uri) = uri.strip_prefix(first).and_then(|uri| uri.strip_suffix(rest)) else {
        return false;
    };
    // The earliest place for each leaves the most to those behind it.
    let mut left = Some(uri);
    for literal in between {
        left = left.and_then(|text| text.split_once(literal)).map(|(_, after)| after);
    }
    left.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// there and back, whatever the upstream's URI is; templates stay templates.
    #[test]
    fn r01_addresses_lead_back() {
        for uri in [
            "file:///a/b c?d=e#f",
            "urn:isbn:1",
            "README.md",
            "/abs",
            "mcpx://inner/file:///x",
            "db://{table}/{+row}{?q}",
            "100%25 {}",
            "",
        ] {
            let address = address("ns", uri);
            assert_eq!(split(&address), Some(("ns", uri)), "{address}");
        }
        assert_eq!(address("ns", "file:///x"), "mcpx://ns/file:///x");
    }

    /// C-14.
    #[test]
    fn c14_addresses_of_artifacts() {
        let id = "00112233445566778899aabbccddeeff";
        assert_eq!(artifact_id(&artifact(id)), Some(id));
        for other in [
            "mcpx://artifacts/",
            "mcpx://artifacts/README.md",
            "mcpx://artifacts/file:///00112233445566778899aabbccddeeff",
            "mcpx://other/00112233445566778899aabbccddeeff",
            "mcpx://artifacts/00112233445566778899AABBCCDDEEFF",
        ] {
            assert_eq!(artifact_id(other), None, "{other}");
        }
    }

    #[test]
    fn r04_what_is_no_address_is_told_apart() {
        assert_eq!(split("MCPX://ns/a:b"), Some(("ns", "a:b")));
        assert_eq!(split("mcpx://"), Some(("", "")));
        assert_eq!(split("mcpx:///a:b"), Some(("", "a:b")));
        assert_eq!(split("mcpx://ns"), Some(("ns", "")));
        for other in ["file:///x", "mcpx:/ns/x", "mcpx", "", "mcpä://ns/x"] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn templates_give_what_fits_between_their_literals() {
        for (template, uri, fits) in [
            ("db://{t}", "db://users", true),
            ("db://{t}", "db:users", false),
            ("db://{t}/rows/{r}", "db://a/b/rows/7", true),
            ("db://{t}/rows/{r}", "db://a/b/row/7", false),
            ("{+uri}", "anything:at#all", true),
            ("search{?q}", "search?q=1", true),
            ("search{?q}", "search", true),
            ("a{b}a", "a", false),
            ("a:b", "a:b", true),
            ("a:b", "a:bc", false),
            ("odd{x", "odd{x", true),
            ("odd{x", "oddy", false),
        ] {
            assert_eq!(may_give(template, uri), fits, "{template} {uri}");
        }
    }
}
