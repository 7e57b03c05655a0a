//! Namespaces from configuration keys, and the names under which a host sees upstream tools.
