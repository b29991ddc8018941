//! What of a tool's output the model gets: the tail, cut at a character and a line, while the whole goes to a file.
//!
//! Memory stays flat whatever a tool prints. Nothing here waits: writing to the file of the whole is a plain write.

use std::borrow::Cow;

use super::spill::Spill;

/// How many bytes of text the model gets unless the manifest says otherwise.
pub(crate) const DEFAULT_BYTES: usize = 51_200;

/// How many lines of text the model gets.
const MAX_LINES: usize = 2_000;

/// How much more than the limit is kept before the front is dropped: larger means fewer moves.
const SLACK: usize = 192 * 1024;

/// The text of a tool's stdout while it runs.
#[derive(Debug)]
pub(crate) struct Capture {
    limit: usize,
    /// The last bytes: all of them, or at least one more than the limit.
    tail: Vec<u8>,
    total: u64,
    line_breaks: u64,
    spill: Spill,
}

/// The text for the model, when the tool has ended.
#[derive(Debug)]
pub(crate) struct Captured {
    /// The text, without its last line break, and with a note if something was cut.
    pub(crate) text: String,
    /// Where the whole is, if something was cut and could be kept.
    pub(crate) full_output: Option<String>,
    /// Whether bytes that are no UTF-8 were replaced.
    pub(crate) has_invalid_bytes: bool,
}

impl Capture {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            tail: Vec::new(),
            total: 0,
            line_breaks: 0,
            spill: Spill::default(),
        }
    }

    /// Takes what the tool printed next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.line_breaks += count_line_breaks(bytes);
        if self.exceeds_bytes() {
            // Nothing was dropped so far, if the file is new: the tail is the whole beginning.
            self.spill.begin_with(&self.tail);
            self.spill.write(bytes);
        }
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > self.limit + SLACK {
            self.tail.drain(..self.tail.len() - self.limit - 1);
        }
    }

    /// The text so far, within the limit. A character that is not complete yet is left out.
    pub(crate) fn text_so_far(&self) -> String {
        let bytes = &self.tail[self.start()..];
        let text = String::from_utf8_lossy(&bytes[..complete_length(bytes)]);
        without_line_break(&text).to_owned()
    }

    /// The text, with the note that says what was cut.
    pub(crate) fn finish(mut self) -> Captured {
        let start = self.start();
        let bytes = &self.tail[start..];
        let text = String::from_utf8_lossy(bytes);
        let has_invalid_bytes = matches!(text, Cow::Owned(_));
        let mut text = without_line_break(&text).to_owned();
        let cut = self.total - bytes.len() as u64;
        let mut full_output = None;
        if cut > 0 {
            self.spill.begin_with(&self.tail);
            let kept = self.spill.keep();
            text.push_str(&format!(
                "\n\n[Output cut: the first {cut} of {} bytes are not shown. {}]",
                self.total, kept.sentence
            ));
            full_output = kept.path;
        }
        Captured {
            text,
            full_output,
            has_invalid_bytes,
        }
    }

    /// Whether nothing came.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Whether the model will get less than all.
    pub(crate) fn is_cut(&self) -> bool {
        self.start() > 0 || self.total > self.tail.len() as u64
    }

    fn exceeds_bytes(&self) -> bool {
        self.total > self.limit as u64
    }

    /// Where the text for the model begins in the tail.
    fn start(&self) -> usize {
        let by_bytes = if self.exceeds_bytes() {
            boundary(&self.tail, self.tail.len() - self.limit)
        } else {
            0
        };
        let by_lines = if self.line_breaks >= MAX_LINES as u64 {
            start_of_last_lines(&self.tail)
        } else {
            0
        };
        by_bytes.max(by_lines)
    }
}

#[expect(
    clippy::naive_bytecount,
    reason = "the compiler makes it fast enough: far beyond the speed of a pipe"
)]
fn count_line_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The first start of a line at or after `from`; in a line that is too long, the first start of a character.
fn boundary(bytes: &[u8], from: usize) -> usize {
    if from == 0 || bytes[from - 1] == b'\n' {
        return from;
    }
    let last = bytes.len().saturating_sub(1);
    let line_break = bytes[from..last].iter().position(|byte| *byte == b'\n');
    if let Some(at) = line_break {
        return from + at + 1;
    }
    let continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    from + bytes[from..]
        .iter()
        .take(3)
        .take_while(continuation)
        .count()
}

/// Where the last lines begin; a line break at the very end begins no line.
fn start_of_last_lines(bytes: &[u8]) -> usize {
    let end = bytes.len() - usize::from(bytes.ends_with(b"\n"));
    let breaks = bytes[..end].iter().enumerate().rev();
    breaks
        .filter(|(_, byte)| **byte == b'\n')
        .nth(MAX_LINES - 1)
        .map_or(0, |(at, _)| at + 1)
}

/// The length without the beginning of a character at the end.
fn complete_length(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        match bytes[at] {
            0b1100_0000..=0b1101_1111 if back < 2 => return at,
            0b1110_0000..=0b1110_1111 if back < 3 => return at,
            0b1111_0000..=0b1111_0111 if back < 4 => return at,
            0b1000_0000..=0b1011_1111 => {}
            _ => break,
        }
    }
    bytes.len()
}

/// The text without one line break at its end.
pub(crate) fn without_line_break(text: &str) -> &str {
    let Some(line) = text.strip_suffix('\n') else {
        return text;
    };
    line.strip_suffix('\r').unwrap_or(line)
}

/// A tool's stderr while it runs: the last of it is kept for the message of a failure, what does not fit is passed on.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    kept: Vec<u8>,
}

impl Lines {
    /// Takes what the tool printed next; gives `pass_on` the lines that are too old to keep, all at once.
    pub(crate) fn push(&mut self, bytes: &[u8], pass_on: &dyn Fn(String)) {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() > DEFAULT_BYTES + SLACK {
            let cut = boundary(&self.kept, self.kept.len() - DEFAULT_BYTES);
            pass_on(text_of_lines(&self.kept[..cut]));
            self.kept.drain(..cut);
        }
    }

    /// The text that is kept, without white space around it.
    pub(crate) fn trimmed(&self) -> String {
        let start = match self.kept.len() {
            length if length > DEFAULT_BYTES => boundary(&self.kept, length - DEFAULT_BYTES),
            _ => 0,
        };
        String::from_utf8_lossy(&self.kept[start..])
            .trim()
            .to_owned()
    }

    /// Passes on all that is kept.
    pub(crate) fn drain(&mut self, pass_on: &dyn Fn(String)) {
        if !self.kept.is_empty() {
            pass_on(text_of_lines(&self.kept));
        }
        self.kept.clear();
    }
}

/// Lines as text, without the last line break.
fn text_of_lines(bytes: &[u8]) -> String {
    without_line_break(&String::from_utf8_lossy(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(lines: usize) -> String {
        let lines: Vec<String> = (1..=lines).map(|line| line.to_string()).collect();
        lines.join("\n") + "\n"
    }

    fn captured(limit: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limit);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[track_caller]
    fn so_far(chunks: &[&[u8]], expected: &str) {
        let mut capture = Capture::new(DEFAULT_BYTES);
        for chunk in chunks {
            capture.push(chunk);
        }
        assert_eq!(capture.text_so_far(), expected);
    }

    #[test]
    fn short_text_is_whole() {
        let captured = captured(10, &[b"one\n", b"two\r\n"]);
        assert_eq!(captured.text, "one\ntwo");
        assert_eq!(captured.full_output, None);
        assert!(!captured.has_invalid_bytes);
    }

    #[test]
    fn cut_is_at_a_line_and_the_whole_is_kept() {
        let captured = captured(10, &[b"first\nsecond\n", b"third\n"]);
        let path = captured.full_output.unwrap();
        assert_eq!(
            captured.text,
            format!(
                "third\n\n[Output cut: the first 13 of 19 bytes are not shown. Full output: {path}]"
            )
        );
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "first\nsecond\nthird\n"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn cut_in_a_long_line_is_at_a_character() {
        let captured = captured(4, &["€€€\n".as_bytes()]);
        assert!(
            captured
                .text
                .starts_with("€\n\n[Output cut: the first 6 of 10 bytes")
        );
        assert!(!captured.has_invalid_bytes);
        std::fs::remove_file(captured.full_output.unwrap()).unwrap();
    }

    #[test]
    fn at_most_two_thousand_lines_are_kept() {
        let text: String = numbered(2_001);
        let captured = captured(DEFAULT_BYTES, &[text.as_bytes()]);
        assert!(
            captured.text.starts_with("2\n3\n"),
            "{}",
            &captured.text[..20]
        );
        let path = captured.full_output.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(path).unwrap();
        let exact: String = numbered(2_000);
        let captured = super::tests::captured(DEFAULT_BYTES, &[exact.as_bytes()]);
        assert_eq!(captured.full_output, None);
    }

    #[test]
    fn much_output_stays_small_in_memory() {
        let mut capture = Capture::new(100);
        let line = [b'x'; 999];
        for _ in 0..2_000 {
            capture.push(&line);
            capture.push(b"\n");
            assert!(capture.tail.len() <= 100 + SLACK + 1_000);
        }
        let captured = capture.finish();
        let path = captured.full_output.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 2_000_000);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn invalid_bytes_are_replaced_and_noticed() {
        let captured = captured(100, &[b"a\xff\xf0b\n"]);
        assert_eq!(captured.text, "a\u{fffd}\u{fffd}b");
        assert!(captured.has_invalid_bytes);
    }

    #[test]
    fn text_so_far_waits_for_whole_characters() {
        so_far(&[b"a\xe2\x82"], "a");
        so_far(&[b"a\xe2\x82", b"\xac"], "a€");
        so_far(&[b"\xffa\xf0\x9f\x98"], "\u{fffd}a");
        so_far(&[b"a\xe2\x82\xac"], "a€");
        so_far(&[b"one\n"], "one");
    }

    #[test]
    fn old_lines_of_stderr_are_passed_on() {
        let passed = std::cell::RefCell::new(Vec::new());
        let pass_on = |lines: String| {
            let lines = lines.lines().map(str::to_owned);
            passed.borrow_mut().extend(lines.collect::<Vec<_>>());
        };
        let mut stderr = Lines::default();
        for line in 0..100_000 {
            stderr.push(format!("line {line}\n").as_bytes(), &pass_on);
            assert!(stderr.kept.len() <= DEFAULT_BYTES + SLACK);
        }
        assert!(stderr.trimmed().ends_with("line 99999"));
        assert!(stderr.trimmed().len() <= DEFAULT_BYTES);
        stderr.drain(&pass_on);
        let expected: Vec<String> = (0..100_000).map(|line| format!("line {line}")).collect();
        assert_eq!(passed.into_inner(), expected);
    }
}
