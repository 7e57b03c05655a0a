//! Waiting for something outside this process. For e2e tests only: where a paused clock can be
//! used, it is.

/// Polls a condition until it holds; panics with the message when the time is over.
///
/// `eventually!(Duration::from_secs(5), daemon.descendants().is_empty(), "children left")`
#[macro_export]
macro_rules! eventually {
    ($within:expr, $condition:expr, $($message:tt)+) => {{
        let deadline = std::time::Instant::now() + $within;
        while !$condition {
            assert!(
                std::time::Instant::now() < deadline,
                "not within {:?}: {}", $within, format!($($message)+)
            );
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }};
    ($within:expr, $condition:expr) => {
        $crate::eventually!($within, $condition, "{}", stringify!($condition))
    };
}
