//! What the binary promises, a module per promise or command.

mod agent_loop;
mod declare;
mod formats;
mod hooks;
mod journal;
mod mcp;
mod nested;
mod order;
mod pairing;
mod readme;
mod run;
mod samples;
mod sandbox;
mod serve;
mod shipped;
mod stop;
mod support;
mod transcript;
