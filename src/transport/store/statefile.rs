//! Files written whole: temporary file, fsync, rename; mode 0600 in folders of mode 0700.
