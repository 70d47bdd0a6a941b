//! The example gateway over real sockets, with simulated providers behind it: what its callers see, and what the providers
//! saw.

mod app;
mod args;
mod bad_config;
mod bad_input;
mod callers;
mod chaos;
mod money;
mod outages;
mod running;
mod world;
