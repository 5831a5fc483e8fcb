//! Trace of qemu's plugin: executed instructions by address, blocks executed behind each block, and the deepest stack write, for each counted interval.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::BoardError;
use super::firmware::Firmware;
use super::plugin::plugin;
use super::table::Board;

/// Name of the plugin's file in the folder of a run.
pub(super) const TRACE_FILE: &str = "trace";
/// Intervals that are reported; later ones repeat the same code on other data.
const MOST_INTERVALS: u32 = 1024;

/// The counted intervals of a run of `infer`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionTrace {
    /// The checked load.
    pub load: Interval,
    /// Each run, or when profiling each step of each run.
    pub runs: Vec<Interval>,
}

/// One counted interval, less what counting itself takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interval {
    /// By address.
    pub executed: BTreeMap<u64, Executed>,
    /// How often each block was executed right behind each other one; `None` is the interval's start.
    pub edges: BTreeMap<(Option<Block>, Block), u64>,
    /// How often the flash had to be read, where there was one.
    pub flash: Option<FlashReads>,
    /// Instructions.
    pub instructions: u64,
    /// By core, on a board of several.
    pub cores: Vec<CoreCount>,
    /// Bytes of stack written below the caller, exact.
    pub stack_bytes: u64,
}

/// An instruction that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Its bytes.
    pub size: u64,
    /// How often.
    pub count: u64,
    /// Further transfers of its unaligned accesses, each beside the first one, on a bus of 32 bits that has them aligned: a word at an even address is two
    /// halfwords, at an odd one a byte, a halfword and a byte.
    pub split: u64,
    /// Its accesses that cross a multiple of eight bytes.
    pub crossing: u64,
    /// Its bytes as a number, the first ones lowest: a Thumb instruction of four bytes has its first halfword in the low half.
    pub encoding: u32,
    /// Its disassembly, without encoding; `?` where qemu does not know it.
    pub text: String,
}

/// Instructions of one core of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CoreCount {
    /// While it works.
    pub instructions: u64,
    /// While it waits for others.
    pub waiting: u64,
}

/// Reads of a flash that caches did not save it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlashReads {
    /// For an instruction that does not lie behind the one before it.
    pub jumps: u64,
    /// For the next instructions.
    pub sequential: u64,
    /// For data.
    pub data: u64,
}

/// Instructions that follow each other in memory and were executed one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// Where the first one is.
    pub address: u64,
    /// How many.
    pub instructions: u32,
}

impl Interval {
    /// Executions by mnemonic.
    pub fn histogram(&self) -> BTreeMap<String, u64> {
        let mut histogram = BTreeMap::new();
        for executed in self.executed.values() {
            *histogram.entry(executed.mnemonic().to_owned()).or_default() += executed.count;
        }
        histogram
    }
}

impl Executed {
    /// The first word of the disassembly.
    pub fn mnemonic(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }
}

/// Builds the plugin and returns what makes qemu load it for `firmware`; it counts the reads of a `flash`, told as `Flash::argument` tells it.
pub(super) fn arguments(firmware: &Firmware, flash: Option<&str>) -> Result<Vec<String>, BoardError> {
    let plugin = plugin()?;
    let symbol = |name: &str| {
        firmware.symbol(name).ok_or_else(|| BoardError::Elf {
            path: firmware.path().to_owned(),
            reason: format!("no symbol `{name}`: it was built without counting"),
        })
    };
    let (begin, end) = (symbol("arenite_count_begin")?, symbol("arenite_count_end")?);
    let board = firmware.board();
    let (low, high) = (board.ram.end() - board.stack, board.ram.end());
    let flash = flash.map_or_else(String::new, |flash| format!(",flash={flash}"));
    let marks = firmware
        .symbol("arenite_wait_begin")
        .zip(firmware.symbol("arenite_wait_end"));
    let wait = marks.map_or_else(String::new, |(begin, end)| format!(",wait={begin:x}-{end:x}"));
    let plugin = plugin.display().to_string().replace(',', ",,");
    Ok(vec![
        "-plugin".to_owned(),
        format!(
            "{plugin},begin={begin:x},end={end:x},stack={low:x}-{high:x},most={MOST_INTERVALS},out={TRACE_FILE}{flash}{wait}"
        ),
    ])
}

/// Reads the plugin's file.
pub(super) fn read(board: &'static str, path: &Path) -> Result<ExecutionTrace, BoardError> {
    let text = fs::read_to_string(path).map_err(|source| BoardError::File {
        path: path.to_owned(),
        source,
    })?;
    let triple = Board::find(board).map_or("", |board| board.triple);
    let mut raw: Vec<Raw> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let known = match line.strip_prefix("interval ") {
            Some(head) => Raw::begin(head).map(|begun| raw.push(begun)),
            None => raw.last_mut().and_then(|interval| interval.line(line, triple)),
        };
        known.ok_or_else(|| BoardError::Protocol {
            board,
            reason: format!("line {number} of the trace: `{line}`"),
        })?;
    }
    // The counter's own interval comes first, the meter's second, the load third.
    let mut raw = raw.into_iter();
    let own = raw.next().unwrap_or_default();
    let mut intervals = raw.skip(1).map(|interval| interval.less(&own));
    Ok(ExecutionTrace {
        load: intervals.next().unwrap_or_default(),
        runs: intervals.collect(),
    })
}

/// An interval as the plugin reports it.
#[derive(Default)]
struct Raw {
    executed: BTreeMap<u64, Executed>,
    edges: BTreeMap<(Option<Block>, Block), u64>,
    flash: Option<FlashReads>,
    cores: Vec<CoreCount>,
    depth: u64,
}

impl Raw {
    fn begin(head: &str) -> Option<Self> {
        let mut words = head.split(' ').skip(1).map(|word| u64::from_str_radix(word, 16).ok());
        let (first, lowest) = (words.next()??, words.next()??);
        Some(Self {
            depth: first - lowest,
            ..Self::default()
        })
    }

    fn line(&mut self, line: &str, triple: &str) -> Option<()> {
        if let Some(edge) = line.strip_prefix("edge ") {
            let mut words = edge.split(' ');
            let mut block = || {
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let instructions = words.next()?.parse().ok()?;
                Some(Block { address, instructions })
            };
            let (from, to) = (block()?, block()?);
            let from = (from.instructions > 0).then_some(from);
            self.edges.insert((from, to), words.next()?.parse().ok()?);
            return Some(());
        }
        if let Some(reads) = line.strip_prefix("flash ") {
            let mut numbers = reads.split(' ').map(|number| number.parse().ok());
            let mut number = || numbers.next()?;
            self.flash = Some(FlashReads {
                jumps: number()?,
                sequential: number()?,
                data: number()?,
            });
            return Some(());
        }
        if let Some(core) = line.strip_prefix("core ") {
            let mut numbers = core.split(' ').skip(1).map(|number| number.parse().ok());
            let mut number = || numbers.next()?;
            self.cores.push(CoreCount {
                instructions: number()?,
                waiting: number()?,
            });
            return Some(());
        }
        let mut words = line.splitn(7, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (size, count, split, crossing) = (number()?, number()?, number()?, number()?);
        let bytes = words.next()?;
        let bytes: Vec<u8> = (0..bytes.len() / 2)
            .map(|at| u8::from_str_radix(bytes.get(2 * at..2 * at + 2)?, 16).ok())
            .collect::<Option<_>>()?;
        let first = u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]);
        // At the end of a page qemu has looked at the next instruction already, and counts its bytes to this one.
        let known = if triple.starts_with("thumb") {
            if first >> 11 >= 0b11101 { 4 } else { 2 }
        } else if triple.starts_with("riscv") {
            if first & 3 == 3 { 4 } else { 2 }
        } else {
            size
        };
        let size = size.min(known);
        let encoding = bytes
            .iter()
            .take(size as usize)
            .rev()
            .fold(0, |all: u32, &byte| all << 8 | u32::from(byte));
        let executed = Executed {
            size,
            count,
            split,
            crossing,
            encoding,
            text: without_encoding(words.next()?, size).to_owned(),
        };
        self.executed.insert(address, executed);
        Some(())
    }

    fn total(&self) -> u64 {
        self.executed.values().map(|executed| executed.count).sum()
    }

    fn less(mut self, own: &Raw) -> Interval {
        let instructions = self.total().saturating_sub(own.total());
        for (address, executed) in &own.executed {
            if let Some(mine) = self.executed.get_mut(address) {
                mine.count = mine.count.saturating_sub(executed.count);
                mine.split = mine.split.saturating_sub(executed.split);
                mine.crossing = mine.crossing.saturating_sub(executed.crossing);
            }
        }
        self.executed.retain(|_, executed| executed.count > 0);
        for (edge, count) in &own.edges {
            if let Some(mine) = self.edges.get_mut(edge) {
                *mine = mine.saturating_sub(*count);
            }
        }
        self.edges.retain(|_, count| *count > 0);
        Interval {
            executed: self.executed,
            edges: self.edges,
            flash: self.flash,
            cores: self.cores,
            instructions,
            stack_bytes: self.depth.saturating_sub(own.depth),
        }
    }
}

/// RISC-V's disassembly starts with the encoding.
fn without_encoding(text: &str, size: u64) -> &str {
    match text.split_once(' ') {
        Some((first, rest)) if first.len() as u64 == 2 * size && first.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            rest.trim_start()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_own_interval_is_subtracted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        let own = "10 2 1 0 0 00bf nop\n20 2 1 0 0 7047 bx lr\nedge 0 0 10 1 1\nedge 10 1 20 1 1\n";
        let text = format!(
            "interval 0 100 f0\n{own}interval 1 100 f0\n{own}interval 2 100 d0\n{own}\
             30 2 7 3 1 7d15 157d addi a0,a0,-1\nedge 10 1 30 1 1\nedge 30 1 30 1 6\n"
        );
        fs::write(&path, text).expect("writes");
        let trace = read("board", &path).expect("reads");
        assert_eq!((trace.load.instructions, trace.load.stack_bytes), (7, 0x20));
        assert_eq!(
            trace.load.histogram().into_iter().collect::<Vec<_>>(),
            [("addi".to_owned(), 7)]
        );
        assert!(trace.runs.is_empty());
        let executed = &trace.load.executed[&0x30];
        assert_eq!((executed.split, executed.crossing, executed.encoding), (3, 1, 0x157d));
        let block = |address| Block {
            address,
            instructions: 1,
        };
        let edges = [
            ((Some(block(0x10)), block(0x30)), 1),
            ((Some(block(0x30)), block(0x30)), 6),
        ];
        assert_eq!(trace.load.edges, edges.into_iter().collect());
    }

    #[test]
    fn what_qemu_looked_at_ahead_is_cut_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        let begin = "interval 0 0 0\ninterval 1 0 0\ninterval 2 0 0\n";
        fs::write(
            &path,
            format!("{begin}ffa 6 1 0 0 cde9009ecde9 strd sb, lr, [sp]\nffe 4 1 0 0 00bf7047 nop\n"),
        )
        .expect("writes");
        let trace = read("mps2-an386", &path).expect("reads");
        let sizes: Vec<_> = trace
            .load
            .executed
            .values()
            .map(|executed| (executed.size, executed.encoding))
            .collect();
        assert_eq!(sizes, [(4, 0x9e00_e9cd), (2, 0xbf00)]);
    }

    #[test]
    fn encodings_are_stripped_where_they_are_as_long_as_the_instruction() {
        assert_eq!(without_encoding("157d    addi a0,a0,-1", 2), "addi a0,a0,-1");
        assert_eq!(without_encoding("00000317   auipc t1,0", 4), "auipc t1,0");
        assert_eq!(without_encoding("adds r0, r0, r1", 2), "adds r0, r0, r1");
    }

    #[test]
    fn a_damaged_trace_names_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        fs::write(&path, "interval 0 100 f0\nnonsense\n").expect("writes");
        assert!(
            read("board", &path)
                .expect_err("is damaged")
                .to_string()
                .contains("line 2")
        );
    }
}
