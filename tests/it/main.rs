//! What the binary promises, a module per promise or command.

mod agent_loop;
mod course;
mod declare;
mod formats;
mod hooks;
mod hostile;
mod journal;
mod look;
mod mcp;
mod nested;
mod order;
mod pairing;
mod progress;
mod readme;
mod run;
mod samples;
mod sandbox;
mod schema;
mod serve;
mod shipped;
mod stop;
mod support;
mod timeline;
mod transcript;
mod validate;
