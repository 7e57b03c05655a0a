//! One behaviour, one test per revision: a missing revision is visible in the list of tests.

/// Makes `r2024_11_05::name` … `r2026_07_28::name` of each function. `all` or `legacy` says which
/// revisions; these run under a paused clock, `all_real` and `legacy_real` (for tests with
/// processes) under the real one. Once per module, since it makes a module per revision:
///
/// ```text
/// for_revisions! { legacy;
///     async fn ping_is_answered(revision) { … }
///     async fn list_omits_icons(revision) { … }
/// }
/// ```
#[macro_export]
macro_rules! for_revisions {
    (@module $module:ident $text:literal $attributes:tt $($name:ident)+) => {
        mod $module {
            $(
                #[tokio::test $attributes]
                async fn $name() {
                    super::$name($text).await;
                }
            )+
        }
    };
    (@legacy $attributes:tt $($name:ident)+) => {
        $crate::for_revisions!(@module r2024_11_05 "2024-11-05" $attributes $($name)+);
        $crate::for_revisions!(@module r2025_03_26 "2025-03-26" $attributes $($name)+);
        $crate::for_revisions!(@module r2025_06_18 "2025-06-18" $attributes $($name)+);
        $crate::for_revisions!(@module r2025_11_25 "2025-11-25" $attributes $($name)+);
    };
    (@all $attributes:tt $($name:ident)+) => {
        $crate::for_revisions!(@legacy $attributes $($name)+);
        $crate::for_revisions!(@module r2026_07_28 "2026-07-28" $attributes $($name)+);
    };
    (@functions $($(#[$doc:meta])* async fn $name:ident($revision:ident) $body:block)+) => {
        $($(#[$doc])* async fn $name($revision: &'static str) $body)+
    };
    (all; $($(#[$doc:meta])* async fn $name:ident($revision:ident) $body:block)+) => {
        $crate::for_revisions!(@functions $($(#[$doc])* async fn $name($revision) $body)+);
        $crate::for_revisions!(@all (start_paused = true) $($name)+);
    };
    (all_real; $($(#[$doc:meta])* async fn $name:ident($revision:ident) $body:block)+) => {
        $crate::for_revisions!(@functions $($(#[$doc])* async fn $name($revision) $body)+);
        $crate::for_revisions!(@all () $($name)+);
    };
    (legacy; $($(#[$doc:meta])* async fn $name:ident($revision:ident) $body:block)+) => {
        $crate::for_revisions!(@functions $($(#[$doc])* async fn $name($revision) $body)+);
        $crate::for_revisions!(@legacy (start_paused = true) $($name)+);
    };
    (legacy_real; $($(#[$doc:meta])* async fn $name:ident($revision:ident) $body:block)+) => {
        $crate::for_revisions!(@functions $($(#[$doc])* async fn $name($revision) $body)+);
        $crate::for_revisions!(@legacy () $($name)+);
    };
}
