//! Where a running tool reaches pitool: a socket in a folder of its own, and for a tool that may have no sockets
//! a named pipe beside it.
//!
//! Who comes through the door is known by the door: each tool has its own.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::private_folder::PrivateFolder;

use super::request::Request;

/// How a tool can come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// By the socket.
    Socket,
    /// Its sandbox allows no socket.
    PipesOnly,
}

/// The door of one running tool; gone with its folder when it is dropped.
#[derive(Debug)]
pub(super) struct Door {
    socket: PathBuf,
    listener: UnixListener,
    pipes: Option<pipes::Pipes>,
    _folder: PrivateFolder,
}

/// Somebody who asks for one call.
#[derive(Debug)]
pub(super) enum Visitor {
    Socket(BufReader<UnixStream>),
    Pipes(pipes::Visitor),
}

impl Door {
    pub(super) fn open(reach: Reach) -> io::Result<Self> {
        let folder = PrivateFolder::for_socket("call")?;
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket)?;
        let pipes = match reach {
            Reach::Socket => None,
            Reach::PipesOnly => Some(pipes::Pipes::open(folder.path())?),
        };
        Ok(Self {
            socket,
            listener,
            pipes,
            _folder: folder,
        })
    }

    /// The value of `PITOOL_SOCKET`.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits for the next visitor. Safe to drop and ask again.
    pub(super) async fn next(&mut self) -> Visitor {
        loop {
            let visitor = match &mut self.pipes {
                None => accept(&self.listener).await,
                Some(pipes) => tokio::select! {
                    visitor = accept(&self.listener) => visitor,
                    visitor = pipes.next() => visitor.map(Visitor::Pipes),
                },
            };
            match visitor {
                Ok(visitor) => return visitor,
                // Out of descriptors, mostly: others have to close theirs first.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    }
}

async fn accept(listener: &UnixListener) -> io::Result<Visitor> {
    let (stream, _) = listener.accept().await?;
    Ok(Visitor::Socket(BufReader::new(stream)))
}

impl Visitor {
    /// What it asks for; `None` if that is no request.
    pub(super) async fn request(&mut self) -> Option<Request> {
        match self {
            Self::Socket(stream) => {
                let mut line = Vec::new();
                let mut limited = stream.take(Request::MAX_BYTES);
                limited.read_until(b'\n', &mut line).await.ok()?;
                Request::read(&line)
            }
            Self::Pipes(visitor) => visitor.request(),
        }
    }

    /// Waits until it hangs up; for ever where that cannot be seen.
    pub(super) async fn left(&mut self) {
        match self {
            Self::Socket(stream) => {
                let mut ignored = [0; 64];
                while stream.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
            }
            Self::Pipes(_) => std::future::pending().await,
        }
    }

    /// Answers with one line. Nobody hears it if the visitor has left.
    pub(super) async fn answer(self, mut line: Vec<u8>) {
        line.push(b'\n');
        let _ = match self {
            Self::Socket(mut stream) => stream.write_all(&line).await,
            Self::Pipes(visitor) => visitor.answer(&line).await,
        };
    }
}

/// The second door. A visitor writes its request into a file, makes a named pipe for the answer and writes the name of
/// both into the named pipe `requests`; names are short, so two of them never mix.
#[cfg(target_os = "linux")]
pub(super) mod pipes {
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
    use tokio::net::unix::pipe;

    use super::super::client::read_answer;
    use super::super::request::Request;

    const REQUESTS: &str = "requests";

    #[derive(Debug)]
    pub(in super::super) struct Pipes {
        folder: PathBuf,
        names: Lines<BufReader<pipe::Receiver>>,
    }

    #[derive(Debug)]
    pub(in super::super) struct Visitor {
        request: PathBuf,
        answer: PathBuf,
    }

    impl Visitor {
        fn new(folder: &Path, name: &str) -> Self {
            Self {
                request: folder.join(format!("{name}.request")),
                answer: folder.join(format!("{name}.answer")),
            }
        }

        /// The folder is the tool's, so the file may be anything by now: only a real one is read.
        pub(super) fn request(&self) -> Option<Request> {
            let file = open_real(OpenOptions::new().read(true), &self.request).ok()?;
            if !file.metadata().ok()?.is_file() {
                return None;
            }
            let mut line = Vec::new();
            file.take(Request::MAX_BYTES).read_to_end(&mut line).ok()?;
            Request::read(&line)
        }

        pub(super) async fn answer(&self, line: &[u8]) -> io::Result<()> {
            let file = open_real(OpenOptions::new().write(true), &self.answer)?;
            if !file.metadata()?.file_type().is_fifo() {
                return Err(io::Error::other("no pipe"));
            }
            pipe::Sender::from_file(file)?.write_all(line).await
        }
    }

    fn open_real(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
        options
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
    }

    impl Pipes {
        pub(super) fn open(folder: &Path) -> io::Result<Self> {
            let path = folder.join(REQUESTS);
            make_pipe(&path)?;
            // Open for writing too, so that it never ends between two visitors.
            let receiver = pipe::OpenOptions::new()
                .read_write(true)
                .open_receiver(path)?;
            Ok(Self {
                folder: folder.to_path_buf(),
                names: BufReader::new(receiver).lines(),
            })
        }

        pub(super) async fn next(&mut self) -> io::Result<Visitor> {
            loop {
                let Some(name) = self.names.next_line().await? else {
                    std::future::pending().await
                };
                if !name.contains('/') {
                    return Ok(Visitor::new(&self.folder, &name));
                }
            }
        }
    }

    fn make_pipe(path: &Path) -> io::Result<()> {
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(mknodat(CWD, path, FileType::Fifo, mode, 0)?)
    }

    /// The visitor's side; see [`super::super::client`].
    pub(in super::super) fn ask(socket: &Path, request: &Request) -> io::Result<String> {
        let folder = socket.parent().unwrap_or(Path::new("."));
        let name = format!("{}-{}", std::process::id(), crate::message::unix_millis());
        let visitor = Visitor::new(folder, &name);
        std::fs::write(&visitor.request, request.to_line())?;
        make_pipe(&visitor.answer)?;
        // Open for writing too, so that the answer can be waited for before anybody writes it.
        let answer = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&visitor.answer)?;
        let mut requests = OpenOptions::new()
            .append(true)
            .open(folder.join(REQUESTS))?;
        requests.write_all(format!("{name}\n").as_bytes())?;
        read_answer(answer)
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) mod pipes {
    //! Sandboxes are a matter of Linux, and so is their second door.

    use std::io;
    use std::path::Path;

    use super::super::request::Request;

    #[derive(Debug)]
    pub(in super::super) enum Pipes {}

    #[derive(Debug)]
    pub(in super::super) enum Visitor {}

    impl Visitor {
        pub(super) fn request(&self) -> Option<Request> {
            match *self {}
        }

        pub(super) async fn answer(&self, _line: &[u8]) -> io::Result<()> {
            match *self {}
        }
    }

    impl Pipes {
        pub(super) fn open(_folder: &Path) -> io::Result<Self> {
            Err(io::Error::from(io::ErrorKind::Unsupported))
        }

        pub(super) async fn next(&mut self) -> io::Result<Visitor> {
            match *self {}
        }
    }

    pub(in super::super) fn ask(_socket: &Path, _request: &Request) -> io::Result<String> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}
