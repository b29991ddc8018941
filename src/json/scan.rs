//! The grammar of JSON as a machine that takes bytes as they come: where does a value end, and what is wrong?
//!
//! It knows nothing of values. Its memory is one bit of knowledge per open container, so that neither depth nor
//! size of a text matters, and it can be stopped and resumed anywhere, which a stream needs.

/// What is wrong with a text, at which byte of what was scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScanError {
    pub(super) offset: usize,
    pub(super) message: String,
}

impl ScanError {
    fn behind(self, bytes: usize) -> Self {
        Self {
            offset: bytes + self.offset,
            ..self
        }
    }
}

/// The one value of a text, without the white space around it.
pub(super) fn only_value(text: &[u8]) -> Result<&[u8], ScanError> {
    let start = blank_prefix(text);
    let mut scan = Scan::default();
    let end = match scan.push(&text[start..]) {
        Ok(Some(end)) => start + end,
        Ok(None) => scan
            .finish()
            .map(|()| text.len())
            .map_err(|error| error.behind(start))?,
        Err(error) => return Err(error.behind(start)),
    };
    let rest = end + blank_prefix(&text[end..]);
    if rest < text.len() {
        return Err(ScanError {
            offset: rest,
            message: "unexpected text after the value".to_owned(),
        });
    }
    Ok(&text[start..end])
}

/// How many bytes of white space a text begins with.
pub(super) fn blank_prefix(text: &[u8]) -> usize {
    text.iter()
        .position(|byte| !is_blank(*byte))
        .unwrap_or(text.len())
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    ItemOrEnd,
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    Text(Role),
    Escape(Role),
    Hex(Role, u8),
    Literal(&'static str, usize),
    Number(Digits),
}

/// Whether a string is a key or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Key,
    Value,
}

/// How far a number has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    E,
    ESign,
    Exponent,
}

/// What one byte did.
enum Step {
    /// It belongs to the value, which goes on.
    Taken,
    /// It is the last one of the value.
    Last,
    /// It stands behind the value.
    Behind,
}

/// One value being scanned; no white space may stand before it.
#[derive(Debug)]
pub(super) struct Scan {
    state: State,
    open: Vec<Container>,
    scanned: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            state: State::Value,
            open: Vec::new(),
            scanned: 0,
        }
    }
}

impl Scan {
    /// Scans the next bytes of the value and tells where it ends, counted from its beginning, once it has ended.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Option<usize>, ScanError> {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Text(_) = self.state {
                at += plain_prefix(&bytes[at..]);
                let Some(_) = bytes.get(at) else { break };
            }
            let step = self.step(bytes[at]).map_err(|message| ScanError {
                offset: self.scanned + at,
                message,
            })?;
            match step {
                Step::Taken => at += 1,
                Step::Last => return Ok(Some(self.scanned + at + 1)),
                Step::Behind => return Ok(Some(self.scanned + at)),
            }
        }
        self.scanned += bytes.len();
        Ok(None)
    }

    /// Whether what was scanned is a whole value, now that nothing follows.
    pub(super) fn finish(&self) -> Result<(), ScanError> {
        let ended = match self.state {
            State::Number(digits) => digits.may_end(),
            State::Literal(word, known) => known == word.len(),
            _ => false,
        };
        if ended && self.open.is_empty() {
            return Ok(());
        }
        Err(ScanError {
            offset: self.scanned,
            message: "unexpected end of the text".to_owned(),
        })
    }

    fn step(&mut self, byte: u8) -> Result<Step, String> {
        match self.state {
            State::Text(role) => self.text(role, byte),
            State::Escape(role) => self.escape(role, byte),
            State::Hex(role, left) => self.hex(role, left, byte),
            State::Literal(word, known) => self.literal(word, known, byte),
            State::Number(digits) => self.number(digits, byte),
            _ if is_blank(byte) => Ok(Step::Taken),
            State::ItemOrEnd if byte == b']' => Ok(self.close()),
            State::ItemOrEnd | State::Value => self.value(byte),
            State::KeyOrEnd if byte == b'}' => Ok(self.close()),
            State::KeyOrEnd | State::Key => self.key(byte),
            State::Colon if byte == b':' => Ok(self.go(State::Value)),
            State::Colon => Err("expected `:`".to_owned()),
            State::CommaOrEnd => self.comma_or_end(byte),
        }
    }

    fn go(&mut self, state: State) -> Step {
        self.state = state;
        Step::Taken
    }

    fn value(&mut self, byte: u8) -> Result<Step, String> {
        let next = match byte {
            b'[' => return Ok(self.open(Container::Array, State::ItemOrEnd)),
            b'{' => return Ok(self.open(Container::Object, State::KeyOrEnd)),
            b'"' => State::Text(Role::Value),
            b't' => State::Literal("true", 1),
            b'f' => State::Literal("false", 1),
            b'n' => State::Literal("null", 1),
            b'-' => State::Number(Digits::Minus),
            b'0' => State::Number(Digits::Zero),
            b'1'..=b'9' => State::Number(Digits::Integer),
            _ => return Err("expected a value".to_owned()),
        };
        Ok(self.go(next))
    }

    fn open(&mut self, container: Container, state: State) -> Step {
        self.open.push(container);
        self.go(state)
    }

    fn close(&mut self) -> Step {
        self.open.pop();
        self.ended()
    }

    /// The state behind a value whose last byte was just taken.
    fn ended(&mut self) -> Step {
        self.state = State::CommaOrEnd;
        if self.open.is_empty() {
            Step::Last
        } else {
            Step::Taken
        }
    }

    fn key(&mut self, byte: u8) -> Result<Step, String> {
        match (byte, self.state) {
            (b'"', _) => Ok(self.go(State::Text(Role::Key))),
            (_, State::KeyOrEnd) => Err("expected a key in double quotes or `}`".to_owned()),
            _ => Err("expected a key in double quotes".to_owned()),
        }
    }

    fn comma_or_end(&mut self, byte: u8) -> Result<Step, String> {
        match (self.open.last(), byte) {
            (Some(Container::Array), b',') => Ok(self.go(State::Value)),
            (Some(Container::Object), b',') => Ok(self.go(State::Key)),
            (Some(Container::Array), b']') | (Some(Container::Object), b'}') => Ok(self.close()),
            (Some(Container::Object), _) => Err("expected `,` or `}`".to_owned()),
            _ => Err("expected `,` or `]`".to_owned()),
        }
    }

    fn text(&mut self, role: Role, byte: u8) -> Result<Step, String> {
        match (byte, role) {
            (b'"', Role::Key) => Ok(self.go(State::Colon)),
            (b'"', Role::Value) => Ok(self.ended()),
            (b'\\', _) => Ok(self.go(State::Escape(role))),
            (..=0x1F, _) => Err("control character in a string".to_owned()),
            _ => Ok(Step::Taken),
        }
    }

    fn escape(&mut self, role: Role, byte: u8) -> Result<Step, String> {
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                Ok(self.go(State::Text(role)))
            }
            b'u' => Ok(self.go(State::Hex(role, 4))),
            _ => Err("invalid escape in a string".to_owned()),
        }
    }

    fn hex(&mut self, role: Role, left: u8, byte: u8) -> Result<Step, String> {
        match (byte.is_ascii_hexdigit(), left) {
            (false, _) => Err("invalid escape in a string".to_owned()),
            (true, 1) => Ok(self.go(State::Text(role))),
            (true, _) => Ok(self.go(State::Hex(role, left - 1))),
        }
    }

    fn literal(&mut self, word: &'static str, known: usize, byte: u8) -> Result<Step, String> {
        match word.as_bytes().get(known) {
            Some(expected) if *expected == byte => Ok(self.go(State::Literal(word, known + 1))),
            Some(_) => Err(format!("expected `{word}`")),
            None => self.behind_scalar(byte, || format!("expected the end of `{word}`")),
        }
    }

    fn number(&mut self, digits: Digits, byte: u8) -> Result<Step, String> {
        match digits.next(byte) {
            Some(next) => Ok(self.go(State::Number(next))),
            None if digits.may_end() => {
                self.behind_scalar(byte, || "expected the end of the number".to_owned())
            }
            None => Err("expected a digit".to_owned()),
        }
    }

    /// Takes the first byte behind a number or literal, whose end nothing else marks.
    fn behind_scalar(&mut self, byte: u8, message: impl Fn() -> String) -> Result<Step, String> {
        if !is_blank(byte) && !matches!(byte, b',' | b'[' | b']' | b'{' | b'}' | b'"' | b':') {
            return Err(message());
        }
        match self.ended() {
            Step::Last => Ok(Step::Behind),
            _ => self.step(byte),
        }
    }
}

/// How many bytes from here on are certainly inside the string.
fn plain_prefix(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1F))
        .unwrap_or(bytes.len())
}

impl Digits {
    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => Some(Self::Integer),
            (Self::Zero | Self::Integer, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Some(Self::E),
            (Self::E, b'+' | b'-') => Some(Self::ESign),
            (Self::E | Self::ESign | Self::Exponent, b'0'..=b'9') => Some(Self::Exponent),
            _ => None,
        }
    }

    fn may_end(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Integer | Self::Fraction | Self::Exponent
        )
    }
}
