//! Parts of pages under `docs/` that tests write: what stands between two marks is made from the code.
//!
//! A test that finds such a part stale writes it and fails, so that the next run passes and the difference
//! is seen in review.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Tests run side by side, and several write parts of one page.
static WRITING: Mutex<()> = Mutex::new(());

/// Puts `text` between `<!-- NAME:begin -->` and `<!-- NAME:end -->` of `docs/PAGE`; fails where something
/// else stood there.
///
/// # Panics
///
/// Where the page was stale, or has no such marks.
#[expect(clippy::disallowed_methods, reason = "writes into the working copy, not at run time")]
pub(crate) fn ensure(page: &str, name: &str, text: &str) {
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let before = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = before.split_once(&begin).unwrap_or_else(|| panic!("no {begin} in {page}"));
    let (_, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end} in {page}"));
    let now = format!("{head}{begin}{text}{end}{tail}");
    if before != now {
        std::fs::write(&path, now).unwrap();
        panic!("docs/{page} was stale; it has been written anew, look at the difference");
    }
}
