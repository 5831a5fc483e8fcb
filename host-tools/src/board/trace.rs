//! What the plugin of qemu saw: executed instructions by address, and the deepest stack write, for each counted interval.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::error::BoardError;
use super::firmware;
use super::firmware::Firmware;

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
    /// Instructions.
    pub instructions: u64,
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
    /// Its disassembly, without encoding.
    pub text: String,
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

/// Builds the plugin and returns what makes qemu load it for `firmware`.
pub(super) fn arguments(firmware: &Firmware) -> Result<Vec<String>, BoardError> {
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
    let plugin = plugin.display().to_string().replace(',', ",,");
    Ok(vec![
        "-plugin".to_owned(),
        format!("{plugin},begin={begin:x},end={end:x},stack={low:x}-{high:x},most={MOST_INTERVALS},out={TRACE_FILE}"),
    ])
}

/// Reads the plugin's file.
pub(super) fn read(board: &'static str, path: &Path) -> Result<ExecutionTrace, BoardError> {
    let text = fs::read_to_string(path).map_err(|source| BoardError::File {
        path: path.to_owned(),
        source,
    })?;
    let mut raw: Vec<Raw> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let known = match line.strip_prefix("interval ") {
            Some(head) => Raw::begin(head).map(|begun| raw.push(begun)),
            None => raw.last_mut().and_then(|interval| interval.line(line)),
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
    depth: u64,
}

impl Raw {
    fn begin(head: &str) -> Option<Self> {
        let mut words = head.split(' ').skip(1).map(|word| u64::from_str_radix(word, 16).ok());
        let (first, lowest) = (words.next()??, words.next()??);
        Some(Self {
            executed: BTreeMap::new(),
            depth: first - lowest,
        })
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.splitn(4, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let (size, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let text = without_encoding(words.next()?, size).to_owned();
        self.executed.insert(address, Executed { size, count, text });
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
            }
        }
        self.executed.retain(|_, executed| executed.count > 0);
        Interval {
            executed: self.executed,
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

/// The plugin, built once a process.
fn plugin() -> Result<PathBuf, BoardError> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = BUILT.get() {
        return Ok(path.clone());
    }
    let root = firmware::root()?;
    let target = root.join("target/boards");
    let library = target.join("plugin/release/libarenite_qemu_plugin.so");
    firmware::exclusively(&target, || {
        let output = firmware::cargo(&root.join("host-tools/qemu-plugin"))
            .args(["build", "--quiet", "--release", "--target-dir"])
            .arg(target.join("plugin"))
            .output()
            .map_err(|error| firmware::cargo_missing(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(BoardError::Build {
            board: "qemu's plugin",
            program: "arenite-qemu-plugin".to_owned(),
            output,
        })
    })?;
    Ok(BUILT.get_or_init(|| library).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_own_interval_is_subtracted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        let own = "10 2 1 nop\n20 2 1 bx lr\n";
        let text = format!(
            "interval 0 100 f0\n{own}interval 1 100 f0\n{own}interval 2 100 d0\n{own}30 2 7 157d addi a0,a0,-1\n"
        );
        fs::write(&path, text).expect("writes");
        let trace = read("board", &path).expect("reads");
        assert_eq!((trace.load.instructions, trace.load.stack_bytes), (7, 0x20));
        assert_eq!(
            trace.load.histogram().into_iter().collect::<Vec<_>>(),
            [("addi".to_owned(), 7)]
        );
        assert!(trace.runs.is_empty());
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
