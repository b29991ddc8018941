//! What the binary promises, a module per promise or command.

mod agent_loop;
mod declare;
mod formats;
mod hooks;
mod journal;
mod nested;
mod order;
mod pairing;
mod readme;
mod run;
mod samples;
mod sandbox;
mod shipped;
mod stop;
mod support;
mod transcript;
