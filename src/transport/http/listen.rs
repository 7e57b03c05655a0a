//! Accept loops over Unix and TCP sockets: classes of accept errors, connection limit, close first.
