//! Sixteen bad days of a provider, through the recommended client stack, over real sockets, with a healthy second
//! provider: what the caller sees, and what the providers saw. The same on a paused clock, layer by layer, is in
//! `fallback`.

mod answers;
mod streams;
mod world;
