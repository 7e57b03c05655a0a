//! Capped reading of bodies, and bodies made of chunks.
