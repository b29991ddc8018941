//! The side of the tool: one call, sent to the pitool that runs it. Blocking, for `pitool call`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::door;
use super::request::Request;

/// Has the running pitool call a tool; the answer is the outcome as one line of JSON.
///
/// `socket` is the value of `PITOOL_SOCKET`. Waits as long as the call takes. An error means that there is no outcome:
/// nobody listens there, or the running pitool has ended.
pub fn call(socket: &Path, name: &str, arguments: &Value) -> io::Result<String> {
    let request = Request {
        name: name.to_owned(),
        arguments: arguments.clone(),
    };
    match UnixStream::connect(socket) {
        Ok(stream) => ask(stream, &request),
        // No sockets in this sandbox; such a tool has a second door.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            door::pipes::ask(socket, &request)
        }
        Err(error) => Err(error),
    }
}

fn ask(mut stream: UnixStream, request: &Request) -> io::Result<String> {
    stream.write_all(&request.to_line())?;
    read_answer(stream)
}

pub(super) fn read_answer(source: impl io::Read) -> io::Result<String> {
    let mut answer = String::new();
    BufReader::new(source).read_line(&mut answer)?;
    if answer.ends_with('\n') {
        answer.pop();
        Ok(answer)
    } else {
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the running pitool has ended",
        ))
    }
}
