//! One connection: hyper requests to [`super::HttpIn`] and back.
