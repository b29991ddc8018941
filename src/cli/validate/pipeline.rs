//! A stream of values through all cores, in order and in constant memory.
//!
//! Each worker takes the next piece of the input (whole lines), works on it, waits for its turn and writes what came of
//! it: no queue can grow, and one thread alone does the same. Values may span lines: what a piece leaves unfinished at
//! its end is put before the next piece, which is then worked on again in its turn. If it is still unfinished after that
//! (one huge value, a session file), the rest of the stream is read by one thread.

use std::io::{self, BufRead, Read};
use std::mem;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// How much is read at once; a piece is larger only if one line is.
const PIECE: usize = 128 << 10;

/// Whole lines of the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a [u8],
    /// The number of its first line, from 1.
    pub(super) first_line: usize,
    /// Nothing comes behind it: what is unfinished here stays so.
    pub(super) is_last: bool,
}

/// What is done with the input.
pub(super) trait Work: Sync {
    /// What comes of a piece.
    type Output: Default + Send;

    /// Works on a piece. Answers where its unfinished end begins, if it has one.
    fn piece(&self, piece: Piece<'_>, output: &mut Self::Output) -> Option<usize>;

    /// Works on the rest of the stream, whose first line has this number, and calls `write` as often as it likes.
    fn rest(
        &self,
        rest: &mut dyn BufRead,
        first_line: usize,
        write: &mut dyn FnMut(&mut Self::Output) -> ControlFlow<()>,
    );

    /// Takes what came of the next piece, in order, and leaves it empty; may end the work.
    fn write(&self, output: &mut Self::Output) -> ControlFlow<()>;
}

/// Works on all of `input` with as many threads as there are cores. An input that cannot be read any further ends the
/// work with that error, after what came before it.
pub(super) fn run<W, R>(input: R, work: W) -> io::Result<()>
where
    W: Work + Send + 'static,
    R: Read + Send + 'static,
{
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    run_on(input, work, cores)
}

fn run_on<W, R>(input: R, work: W, threads: usize) -> io::Result<()>
where
    W: Work + Send + 'static,
    R: Read + Send + 'static,
{
    let pipeline = Arc::new(Pipeline {
        work,
        source: Mutex::new(Source::new(input)),
        turn: Mutex::new(Turn {
            workers: threads,
            ..Turn::default()
        }),
        turned: Condvar::new(),
    });
    if threads == 1 {
        pipeline.work();
        return pipeline.finish();
    }
    for _ in 0..threads {
        // Not joined: one may wait for input when nobody wants it any more. `finish` waits for all others.
        let pipeline = Arc::clone(&pipeline);
        thread::spawn(move || pipeline.work());
    }
    pipeline.finish()
}

struct Pipeline<W, R> {
    work: W,
    source: Mutex<Source<R>>,
    turn: Mutex<Turn>,
    turned: Condvar,
}

/// Whose piece is next, and what the pieces before it left.
#[derive(Debug, Default)]
struct Turn {
    next: usize,
    /// Workers that have not ended.
    workers: usize,
    /// The unfinished end of the piece before; while the stage is `Rest`, also all pieces since.
    carried: Vec<u8>,
    /// The line on which it begins.
    carried_line: usize,
    stage: Stage,
    has_panicked: bool,
}

/// What becomes of the pieces.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// They are worked on.
    #[default]
    Pieces,
    /// They are collected, until one thread reads them and all that is left.
    Rest,
    /// Nobody wants them.
    Unwanted,
}

/// A worker's own piece, and what came of it.
#[derive(Default)]
struct Slot<O> {
    text: Vec<u8>,
    number: usize,
    first_line: usize,
    output: O,
}

/// Counts a worker out, even if it panics: nobody may wait for its turn then.
struct Leave<'t>(&'t Mutex<Turn>, &'t Condvar);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut turn = lock(self.0);
        turn.workers -= 1;
        turn.has_panicked |= thread::panicking();
        self.1.notify_all();
    }
}

impl<W: Work, R: Read> Pipeline<W, R> {
    fn work(&self) {
        let _leave = Leave(&self.turn, &self.turned);
        let mut slot = Slot::default();
        let mut stage = Stage::Pieces;
        while stage == Stage::Pieces && lock(&self.source).next(&mut slot) {
            let unfinished = self.work_on(&mut slot);
            let mut turn = self.wait(|turn| turn.next == slot.number);
            match turn.stage {
                Stage::Pieces => self.take_turn(&mut turn, &mut slot, unfinished),
                Stage::Rest => turn.carried.append(&mut slot.text),
                Stage::Unwanted => {}
            }
            turn.next += 1;
            stage = turn.stage;
            drop(turn);
            self.turned.notify_all();
        }
    }

    fn work_on(&self, slot: &mut Slot<W::Output>) -> Option<usize> {
        let piece = Piece {
            text: &slot.text,
            first_line: slot.first_line,
            is_last: false,
        };
        self.work.piece(piece, &mut slot.output)
    }

    fn wait(&self, condition: impl Fn(&Turn) -> bool) -> MutexGuard<'_, Turn> {
        let turn = self
            .turned
            .wait_while(lock(&self.turn), |turn| {
                !turn.has_panicked && !condition(turn)
            })
            .expect("no holder of the lock panics");
        assert!(!turn.has_panicked, "a worker panicked");
        turn
    }

    fn take_turn(&self, turn: &mut Turn, slot: &mut Slot<W::Output>, unfinished: Option<usize>) {
        let mut unfinished = unfinished;
        if !turn.carried.is_empty() {
            let carried = turn.carried.len();
            turn.carried.append(&mut slot.text);
            mem::swap(&mut turn.carried, &mut slot.text);
            slot.first_line = turn.carried_line;
            slot.output = W::Output::default();
            unfinished = self.work_on(slot);
            if unfinished.is_some_and(|begin| begin < carried) {
                turn.stage = Stage::Rest;
            }
        }
        if let Some(begin) = unfinished {
            turn.carried.extend_from_slice(&slot.text[begin..]);
            turn.carried_line = slot.first_line + count_lines(&slot.text[..begin]);
        }
        if self.work.write(&mut slot.output).is_break() {
            turn.stage = Stage::Unwanted;
        }
    }

    /// Waits for the workers and takes what they left: nothing, an unfinished end, or a rest for one thread.
    fn finish(&self) -> io::Result<()> {
        let is_over = |turn: &Turn| turn.workers == 0 || turn.stage == Stage::Unwanted;
        let mut turn = self.wait(is_over);
        let carried = mem::take(&mut turn.carried);
        match turn.stage {
            Stage::Unwanted => return Ok(()),
            Stage::Pieces if carried.is_empty() => {}
            Stage::Pieces => self.last_piece(&carried, turn.carried_line),
            Stage::Rest => self.rest(carried, turn.carried_line),
        }
        lock(&self.source).error.take().map_or(Ok(()), Err)
    }

    fn last_piece(&self, text: &[u8], first_line: usize) {
        let mut output = W::Output::default();
        let piece = Piece {
            text,
            first_line,
            is_last: true,
        };
        self.work.piece(piece, &mut output);
        // There is nothing left that could be ended.
        let _ = self.work.write(&mut output);
    }

    fn rest(&self, carried: Vec<u8>, first_line: usize) {
        let mut source = lock(&self.source);
        let tail = mem::take(&mut source.tail);
        let begin = io::Cursor::new(carried).chain(io::Cursor::new(tail));
        let mut rest = begin.chain(io::BufReader::with_capacity(PIECE, &mut source.reader));
        let mut write = |output: &mut W::Output| self.work.write(output);
        self.work.rest(&mut rest, first_line, &mut write);
    }
}

/// Cuts the input into pieces at line ends.
struct Source<R> {
    reader: R,
    /// What was read behind the last line end.
    tail: Vec<u8>,
    number: usize,
    next_line: usize,
    has_ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> Source<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            tail: Vec::new(),
            number: 0,
            next_line: 1,
            has_ended: false,
            error: None,
        }
    }

    /// Fills the slot with the next piece; false if there is none.
    fn next<O>(&mut self, slot: &mut Slot<O>) -> bool {
        slot.text.clear();
        slot.text.append(&mut self.tail);
        while !self.has_ended {
            let known = slot.text.len();
            if !self.read(&mut slot.text) {
                break;
            }
            if let Some(end) = memchr::memrchr(b'\n', &slot.text[known..]) {
                self.tail.extend_from_slice(&slot.text[known + end + 1..]);
                slot.text.truncate(known + end + 1);
                break;
            }
        }
        if slot.text.is_empty() {
            return false;
        }
        slot.number = self.number;
        slot.first_line = self.next_line;
        self.number += 1;
        self.next_line += count_lines(&slot.text);
        true
    }

    /// Adds what the reader has at hand, waiting only if that is nothing; false at the end of the input.
    fn read(&mut self, text: &mut Vec<u8>) -> bool {
        let known = text.len();
        text.resize(known + PIECE, 0);
        let length = loop {
            match self.reader.read(&mut text[known..]) {
                Ok(length) => break length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    break 0;
                }
            }
        };
        text.truncate(known + length);
        self.has_ended |= length == 0;
        length > 0
    }
}

pub(super) fn count_lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of the lock panics")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Understands values in brackets, `(…)`, that may span lines, and answers each with its line.
    struct Brackets {
        results: mpsc::Sender<String>,
        /// Ends the work after this value.
        last: Option<&'static str>,
    }

    fn answer(text: &str, line: usize) -> String {
        format!("{line}: {}", text.trim().replace('\n', " "))
    }

    impl Work for Brackets {
        type Output = Vec<String>;

        fn piece(&self, piece: Piece<'_>, output: &mut Vec<String>) -> Option<usize> {
            let text = str::from_utf8(piece.text).unwrap();
            let mut begin = 0;
            loop {
                begin += text[begin..].len() - text[begin..].trim_start().len();
                let line = piece.first_line + count_lines(&piece.text[..begin]);
                let Some(length) = text[begin..].find(')') else {
                    break;
                };
                output.push(answer(&text[begin..=begin + length], line));
                begin += length + 1;
            }
            if begin == text.len() {
                return None;
            }
            if piece.is_last {
                output.push(answer("unfinished", piece.first_line));
                return None;
            }
            Some(begin)
        }

        fn rest(
            &self,
            rest: &mut dyn BufRead,
            first_line: usize,
            write: &mut dyn FnMut(&mut Vec<String>) -> ControlFlow<()>,
        ) {
            let mut text = Vec::new();
            rest.read_to_end(&mut text).unwrap();
            let piece = Piece {
                text: &text,
                first_line,
                is_last: true,
            };
            let mut output = vec!["rest".to_owned()];
            self.piece(piece, &mut output);
            let _ = write(&mut output);
        }

        fn write(&self, output: &mut Vec<String>) -> ControlFlow<()> {
            for line in output.drain(..) {
                let is_last = self.last.is_some_and(|last| line.ends_with(last));
                self.results.send(line).unwrap();
                if is_last {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        }
    }

    /// Gives out one given text at each read.
    struct Reads(Vec<String>);

    impl Read for Reads {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let mut text = self.0.remove(0);
            if text.len() > buffer.len() {
                self.0.insert(0, text.split_off(buffer.len()));
            }
            buffer[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }

    #[track_caller]
    fn case(reads: &[&str], expected: &[&str]) {
        for threads in [1, 2, 5] {
            let reads = Reads(reads.iter().map(|&text| text.to_owned()).collect());
            let (results, lines) = mpsc::channel();
            let work = Brackets {
                results,
                last: None,
            };
            run_on(reads, work, threads).unwrap();
            assert_eq!(
                lines.iter().collect::<Vec<_>>(),
                expected,
                "{threads} threads"
            );
        }
    }

    #[test]
    fn values_keep_their_order_and_lines() {
        case(&[], &[]);
        case(
            &["(a)\n(b)\n", "\n(c)", "\n(d)"],
            &["1: (a)", "2: (b)", "4: (c)", "5: (d)"],
        );
        let texts: Vec<String> = (1..500).map(|number| format!("({number})\n")).collect();
        let reads: Vec<&str> = texts.iter().map(String::as_str).collect();
        let lines: Vec<String> = (1..500)
            .map(|number| format!("{number}: ({number})"))
            .collect();
        let expected: Vec<&str> = lines.iter().map(String::as_str).collect();
        case(&reads, &expected);
    }

    #[test]
    fn a_value_may_lie_across_two_pieces() {
        case(
            &["(a)\n(b\n", "c)\n(d)\n"],
            &["1: (a)", "2: (b c)", "4: (d)"],
        );
        case(&["(a\n", "b)(c\n", "d)\n"], &["1: (a b)", "2: (c d)"]);
    }

    #[test]
    fn a_value_across_many_pieces_is_read_by_one_thread() {
        case(
            &["(a)\n(b\n", "c\n", "d\n", "e)\n(f)\n", "(g)"],
            &["1: (a)", "rest", "2: (b c d e)", "6: (f)", "7: (g)"],
        );
    }

    #[test]
    fn what_stays_unfinished_is_judged_at_the_end() {
        case(&["(a)\n(b\n"], &["1: (a)", "2: unfinished"]);
    }

    /// Blocks for ever behind its first text.
    struct Endless(mpsc::Receiver<String>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let text = self.0.recv().unwrap_or_default();
            buffer[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }

    #[test]
    fn ending_early_does_not_wait_for_more_input() {
        let (texts, input) = mpsc::channel();
        texts.send("(a)\n(b)\n(c)\n".to_owned()).unwrap();
        let (results, lines) = mpsc::channel();
        let work = Brackets {
            results,
            last: Some("(b)"),
        };
        run_on(Endless(input), work, 2).unwrap();
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["1: (a)", "2: (b)"]);
        drop(texts);
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }

    #[test]
    fn an_input_that_breaks_is_an_error_behind_what_came_before() {
        let (results, lines) = mpsc::channel();
        let work = Brackets {
            results,
            last: None,
        };
        let input = io::Cursor::new("(a)\n(b)").chain(Broken);
        assert_eq!(run_on(input, work, 2).unwrap_err().to_string(), "gone");
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["1: (a)", "2: (b)"]);
    }
}
