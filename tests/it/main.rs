//! What the binary promises, a module per promise or command.

mod agent_loop;
mod declare;
mod formats;
mod hooks;
mod order;
mod pairing;
mod readme;
mod run;
mod stop;
mod support;
mod transcript;
