//! Error codes of one era in the words of the other (H-30, R-03).

use super::questions::as_text;
use crate::protocol::jsonrpc::{Code, RESERVED_CODES, RpcError, URL_ELICITATION_REQUIRED};
use crate::protocol::revision::Revision;

/// See [`super::downgrade_error`].
pub(super) fn downgrade(revision: Revision, error: &RpcError) -> RpcError {
    if error.code == URL_ELICITATION_REQUIRED && revision != Revision::V2025_11_25 {
        return as_text(error);
    }
    let mut error = error.clone();
    let code = Code::from_number(error.code);
    if revision.is_modern() {
        if code == Some(Code::ResourceNotFound) {
            error.code = Code::InvalidParams.number();
        } else if code == Some(Code::HeaderMismatch) && error.relayed {
            // Speaks of headers between mcpx and an upstream, not of the host's own.
            error.code = Code::InternalError.number();
        } else if RESERVED_CODES.contains(&error.code) && code.is_none() {
            // A code of another revision or of nobody: this one must not be sent on.
            error.code = Code::InternalError.number();
        }
        return error;
    }
    let modern_only = matches!(
        code,
        Some(Code::HeaderMismatch | Code::MissingCapability | Code::UnsupportedRevision)
    );
    if modern_only {
        error.code = Code::InternalError.number();
    }
    error
}

/// See [`super::lift_error`].
pub(super) fn lift(revision: Revision, method: &str, mut error: RpcError) -> RpcError {
    // The legacy code means it from anybody; of a legacy server -32602 may mean anything (2026-07-28
    // resources page, error handling).
    let invalid = error.code == Code::InvalidParams.number();
    if method == "resources/read" && revision.is_modern() && invalid {
        error.code = Code::ResourceNotFound.number();
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(revision: Revision, code: i64) -> i64 {
        let error = RpcError { code, message: String::new(), data: None, relayed: true };
        downgrade(revision, &error).code
    }

    #[test]
    fn r03_not_found_by_era() {
        for revision in Revision::ALL {
            let expected = if revision.is_modern() { -32602 } else { -32002 };
            assert_eq!(code(revision, -32002), expected);
            assert_eq!(code(revision, -32602), -32602);
        }
    }

    /// H-31: ours is about the host's headers, an upstream's about ours.
    #[test]
    fn h31_whose_headers_do_not_match() {
        let own = RpcError::new(Code::HeaderMismatch, "no");
        assert_eq!(downgrade(Revision::NEWEST, &own), own);
        assert_eq!(code(Revision::NEWEST, -32020), -32603);
    }

    /// U-28: -32002 anywhere, -32602 from a modern server only, and to a read only.
    #[test]
    fn u28_not_found_is_typed() {
        let lifted = |revision: Revision, method, number| {
            let error =
                RpcError { code: number, message: String::new(), data: None, relayed: false };
            lift(revision, method, error).code
        };
        for revision in Revision::ALL {
            assert_eq!(lifted(revision, "resources/read", -32002), -32002);
            let expected = if revision.is_modern() { -32002 } else { -32602 };
            assert_eq!(lifted(revision, "resources/read", -32602), expected);
            assert_eq!(lifted(revision, "tools/call", -32602), -32602);
        }
    }

    /// H-30: no revision sees a code that it does not have, and vendors' own codes pass.
    #[test]
    fn h30_sweep() {
        for revision in Revision::ALL {
            for known in Code::ALL {
                let sent = code(revision, known.number());
                let reserved = RESERVED_CODES.contains(&sent);
                assert!(!reserved || revision.is_modern(), "{revision} {sent}");
                assert!(sent != -32002 || !revision.is_modern(), "{revision} {sent}");
            }
            for vendor in [-32000, -32001, 7, -1, 0] {
                assert_eq!(code(revision, vendor), vendor);
            }
            let url = code(revision, -32042);
            assert_eq!(url == -32042, revision == Revision::V2025_11_25);
        }
        assert_eq!(code(Revision::NEWEST, -32050), -32603);
    }
}
