//! A linked program's functions: what each takes of the stack, what it calls and how deep it is there, and whose addresses it takes.
//!
//! Instructions are followed from each function's first one, so that code of the compiler, of the precompiled libraries and of assembly blocks is counted
//! alike. Where the compiler states a function's stack (`-Z emit-stack-sizes`), the larger of the two holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::instruction::{Flow, Moves, Set};
use super::relocations::relocations;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Its mangled names: functions of the same code may share it.
    pub names: Vec<String>,
    /// The most bytes that it takes itself.
    pub frame: u64,
    /// Functions that it calls, and the bytes that it holds there.
    pub calls: BTreeSet<(u64, u64)>,
    /// Bytes that it holds where it calls what a register says.
    pub indirect: Option<u64>,
    /// Functions whose addresses it takes, itself or by the data that it refers to.
    pub takes: BTreeSet<u64>,
    /// Bytes that the compiler states.
    pub stated: Option<u64>,
}

impl Function {
    /// Whether one of its names, demangled, holds `part`.
    pub fn is(&self, part: &str) -> bool {
        self.readable().any(|name| name.contains(part))
    }

    /// Its names, demangled.
    pub fn readable(&self) -> impl Iterator<Item = String> {
        self.names
            .iter()
            .map(|name| format!("{:#}", rustc_demangle::demangle(name)))
    }
}

/// Functions by their addresses.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Each function.
    pub functions: BTreeMap<u64, Function>,
}

/// Whether the first may call the second through a register.
pub(super) type Goes<'a> = &'a dyn Fn(&Function, &Function) -> bool;

struct Instruction {
    next: u64,
    flow: Flow,
    moves: Moves,
    /// Bytes that aligning the stack pointer by it may add.
    aligning: u64,
}

impl Program {
    /// Reads the ELF file at `path`, linked with its relocations, for `triple`.
    ///
    /// # Errors
    /// Where the file cannot be read or the disassembler does not start.
    pub fn read(path: &Path, triple: &str) -> Result<Self> {
        let bytes = std::fs::read(path)?;
        let file = object::File::parse(&*bytes)?;
        let set = Set::of(triple);
        let thumb = u64::from(set == Set::Thumb);

        let mut functions = BTreeMap::<u64, Function>::new();
        let mut sizes = BTreeMap::<u64, u64>::new();
        let mut by_name = HashMap::new();
        let mut data = BTreeMap::<u64, u64>::new();
        for symbol in file.symbols() {
            let (Ok(name), address) = (symbol.name(), symbol.address()) else {
                continue;
            };
            match symbol.kind() {
                SymbolKind::Text if !name.is_empty() && !name.starts_with('$') => {
                    let address = address & !thumb;
                    functions.entry(address).or_default().names.push(name.to_owned());
                    let size = sizes.entry(address).or_default();
                    *size = (*size).max(symbol.size());
                    by_name.insert(name.to_owned(), address);
                }
                SymbolKind::Data if symbol.size() > 0 => _ = data.insert(address, symbol.size()),
                // The disassembler may call a section's first function by the linker's name of its start.
                _ => _ = by_name.entry(name.to_owned()).or_insert(address),
            }
        }
        for (address, size) in stated(&file, thumb)? {
            if let Some(function) = functions.get_mut(&address) {
                function.stated = Some(size);
            }
        }

        let listing = disassembly(path, set, &by_name)?;
        let starts: Vec<u64> = functions.keys().copied().collect();
        for (index, &start) in starts.iter().enumerate() {
            let next = starts.get(index + 1).copied().unwrap_or(u64::MAX);
            let end = match sizes[&start] {
                0 => next,
                size => next.min(start + size),
            };
            if let Some(function) = functions.get_mut(&start) {
                follow(function, start..end, &listing, &starts)?;
            }
        }
        references(&file, &mut functions, &sizes, &data, thumb)?;
        Ok(Self { functions })
    }

    /// The addresses of the functions that `wanted` accepts.
    pub fn find(&self, wanted: impl Fn(&Function) -> bool) -> Vec<u64> {
        let found = self.functions.iter().filter(|(_, function)| wanted(function));
        found.map(|(&address, _)| address).collect()
    }

    /// The most bytes that a call of `root` takes, without entering what `outside` names; and the path to them.
    ///
    /// A function called through a register has its address taken by a function that is being executed, for no pointer to a function outlives the frame that
    /// made it. `goes` says whether a caller may call functions of such names.
    pub fn depth(&self, root: u64, outside: &BTreeSet<u64>, goes: Goes<'_>) -> (u64, Vec<u64>) {
        self.deepest(root, outside, goes, &mut Vec::new())
    }

    fn deepest(&self, at: u64, outside: &BTreeSet<u64>, goes: Goes<'_>, path: &mut Vec<u64>) -> (u64, Vec<u64>) {
        let Some(function) = self.functions.get(&at).filter(|_| !outside.contains(&at)) else {
            return (0, Vec::new());
        };
        path.push(at);
        let mut most = (function.frame, vec![at]);
        let through = function
            .indirect
            .map(|held| self.through(function, path, goes).into_iter().map(move |to| (to, held)));
        for (to, held) in function.calls.iter().copied().chain(through.into_iter().flatten()) {
            // Nothing calls itself by name, as [`Program::cycle`] says, and what visits operands visits them once inside of another visit.
            if path.iter().filter(|&&on| on == to).count() > 1 {
                continue;
            }
            let (below, way) = self.deepest(to, outside, goes, path);
            if held + below > most.0 {
                most = (held + below, std::iter::once(at).chain(way).collect());
            }
        }
        path.pop();
        most
    }

    /// Returns the functions that `function`, the last of `path`, may call through a register: those of the nearest function of the path that takes any.
    fn through(&self, function: &Function, path: &[u64], goes: Goes<'_>) -> BTreeSet<u64> {
        let taken = |at: &u64| -> BTreeSet<u64> {
            let takes = self.functions.get(at).into_iter().flat_map(|function| &function.takes);
            takes
                .copied()
                .filter(|to| self.functions.get(to).is_some_and(|to| goes(function, to)))
                .collect()
        };
        path.iter()
            .rev()
            .map(taken)
            .find(|taken| !taken.is_empty())
            .unwrap_or_default()
    }

    /// A function, called from `root`, that calls itself by name, over others or not: its stack has no bound.
    pub fn cycle(&self, root: u64) -> Option<Vec<&Function>> {
        self.cycle_at(root, &mut Vec::new(), &mut BTreeSet::new())
    }

    fn cycle_at(&self, at: u64, path: &mut Vec<u64>, done: &mut BTreeSet<u64>) -> Option<Vec<&Function>> {
        let function = self.functions.get(&at)?;
        if let Some(from) = path.iter().position(|&on| on == at) {
            return Some(path.iter().skip(from).filter_map(|on| self.functions.get(on)).collect());
        }
        if !done.insert(at) {
            return None;
        }
        path.push(at);
        let found = function.calls.iter().find_map(|&(to, _)| self.cycle_at(to, path, done));
        path.pop();
        found
    }

    /// The most bytes held where `target` begins, called from `root` by name; `None` where it is not.
    pub fn held_at(&self, root: u64, target: u64) -> Option<u64> {
        self.held_over(root, target, &mut Vec::new())
    }

    fn held_over(&self, at: u64, target: u64, path: &mut Vec<u64>) -> Option<u64> {
        if at == target {
            return Some(0);
        }
        let function = self.functions.get(&at).filter(|_| !path.contains(&at))?;
        path.push(at);
        let over = |&(to, held): &(u64, u64)| Some(held + self.held_over(to, target, path)?);
        let most = function.calls.iter().filter_map(over).max();
        path.pop();
        most
    }
}

/// Returns the stacks that the compiler states: an address and a number in base 128, one after another.
fn stated(file: &object::File<'_>, thumb: u64) -> Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let width = if file.is_64() { 8 } else { 4 };
    for section in file.sections().filter(|section| section.name() == Ok(".stack_sizes")) {
        let mut rest = section.data()?;
        while rest.len() > width {
            let (address, behind) = rest.split_at(width);
            let address = address.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            let length = behind.iter().take_while(|&&byte| byte >= 128).count() + 1;
            let (digits, behind) = behind.split_at(length.min(behind.len()));
            let size = digits
                .iter()
                .rev()
                .fold(0, |sum, &byte| sum << 7 | u64::from(byte & 127));
            found.push((address & !thumb, size));
            rest = behind;
        }
    }
    Ok(found)
}

/// The disassembler of the toolchain, else of the machine.
fn disassembler() -> std::path::PathBuf {
    let said = |arguments: &[&str]| {
        let output = Command::new("rustc").args(arguments).output().ok()?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let ours = said(&["--print", "target-libdir"]).map(|folder| Path::new(&folder).join("../bin/llvm-objdump"));
    ours.filter(|path| path.is_file())
        .unwrap_or_else(|| "llvm-objdump".into())
}

fn disassembly(path: &Path, set: Set, by_name: &HashMap<String, u64>) -> Result<BTreeMap<u64, Instruction>> {
    let program = disassembler();
    let output = Command::new(&program)
        .args(["-d", "--no-show-raw-insn"])
        .arg(path)
        .output();
    let output = output.map_err(|e| {
        format!(
            "{}: {e}; `rustup component add llvm-tools` installs it",
            program.display()
        )
    })?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let named = |name: &str| by_name.get(name).copied();
    let mut listing = BTreeMap::<u64, Instruction>::new();
    let (mut last, mut aligned) = (None, 0);
    for line in text.lines() {
        let Some((address, instruction)) = line.split_once(':') else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address.trim(), 16) else {
            continue;
        };
        let instruction = instruction.trim();
        let (mnemonic, operands) = instruction.split_once('\t').unwrap_or((instruction, ""));
        if let Some(last) = last.take().and_then(|last| listing.get_mut(&last)) {
            last.next = address;
        }
        // Data among the code.
        if line.contains("\t.") {
            continue;
        }
        let moves = set.moves(mnemonic, operands);
        // `bfc r4, #0, #5` and then `mov sp, r4`; `and sp, x9, #0xffffffffffffffe0`.
        aligned = match (mnemonic, operands.split(['#', ',']).next_back()) {
            ("bfc", Some(bits)) => bits
                .trim()
                .trim_start_matches("0x")
                .parse()
                .map_or(aligned, |bits: u32| 1 << bits),
            ("and" | "andi", Some(mask)) if operands.trim_start().starts_with("sp") => alignment(mask),
            _ => aligned,
        };
        let aligning = if moves == Moves::FromRegister {
            std::mem::take(&mut aligned)
        } else {
            0
        };
        let flow = set.flow(mnemonic, operands, &named);
        listing.insert(
            address,
            Instruction {
                next: address + 4,
                flow,
                moves,
                aligning,
            },
        );
        last = Some(address);
    }
    Ok(listing)
}

/// The power of two that a mask such as `-16` or `0xfffffffffffffff0` aligns to.
fn alignment(mask: &str) -> u64 {
    let mask = mask.trim();
    let value = match (mask.strip_prefix("0x"), mask.strip_prefix("-0x")) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).unwrap_or(0),
        (_, Some(hex)) => u64::from_str_radix(hex, 16).unwrap_or(0).wrapping_neg(),
        _ => mask.parse::<i64>().unwrap_or(0) as u64,
    };
    value & value.wrapping_neg()
}

/// Follows a function's instructions.
fn follow(
    function: &mut Function,
    range: std::ops::Range<u64>,
    listing: &BTreeMap<u64, Instruction>,
    starts: &[u64],
) -> Result<()> {
    let mut held = HashMap::<u64, u64>::new();
    let mut open = vec![(range.start, 0)];
    let mut jumped = None;
    let mut extra = 0;
    loop {
        while let Some((at, depth)) = open.pop() {
            if !range.contains(&at) {
                // Runs on into the next function, which falls to it.
                if starts.binary_search(&at).is_ok() {
                    function.calls.insert((at, depth));
                }
                continue;
            }
            if held.get(&at).is_some_and(|&known| known >= depth) {
                continue;
            }
            let Some(instruction) = listing.get(&at) else { continue };
            held.insert(at, depth);
            let behind = match instruction.moves {
                Moves::No => depth,
                Moves::Down(bytes) => depth.saturating_add_signed(bytes),
                Moves::FromRegister => {
                    extra = extra.max(instruction.aligning);
                    depth
                }
                Moves::Unknown => function.stated.map_or(depth, |stated| stated.max(depth)),
            };
            if instruction.moves == Moves::Unknown && function.stated.is_none() {
                return Err(format!(
                    "{:?} moves the stack pointer at {at:#x} in a way that is not known",
                    function.names
                )
                .into());
            }
            if behind > 1 << 20 {
                return Err(format!("{:?} takes more and more of the stack at {at:#x}", function.names).into());
            }
            function.frame = function.frame.max(behind);
            let mut goes = |to: u64, open: &mut Vec<(u64, u64)>| {
                if range.contains(&to) {
                    open.push((to, behind));
                } else {
                    function.calls.insert((to, behind));
                }
            };
            match instruction.flow {
                Flow::Next | Flow::EndOrNext => open.push((instruction.next, behind)),
                Flow::Branch(to) => {
                    goes(to, &mut open);
                    open.push((instruction.next, behind));
                }
                Flow::Jump(to) => goes(to, &mut open),
                // In small Thumb code a far jump inside a function looks so.
                Flow::Call(to) if range.contains(&to) && to != range.start => {
                    open.extend([(to, behind), (instruction.next, behind)])
                }
                Flow::Call(to) => {
                    function.calls.insert((to, behind));
                    // A call at the end of a function does not return.
                    if range.contains(&instruction.next) {
                        open.push((instruction.next, behind));
                    }
                }
                Flow::CallIndirect => {
                    function.indirect = function.indirect.max(Some(behind));
                    open.push((instruction.next, behind));
                }
                Flow::JumpIndirect => {
                    jumped = jumped.max(Some(behind));
                    // A call in the place of a return holds nothing more; what does is a table's.
                    if behind == 0 {
                        function.indirect = function.indirect.max(Some(0));
                    }
                }
                Flow::End => {}
            }
        }
        // A target of a table of jumps holds the bytes held at the jump.
        let unseen = listing
            .range(range.clone())
            .map(|(&at, _)| at)
            .find(|at| !held.contains_key(at));
        match (jumped, unseen) {
            (Some(depth), Some(at)) => open.push((at, depth)),
            _ => break,
        }
    }
    function.frame = function.frame.max(function.stated.unwrap_or(0)) + extra;
    if extra > 0 {
        let calls = std::mem::take(&mut function.calls);
        function.calls = calls.into_iter().map(|(to, held)| (to, held + extra)).collect();
        function.indirect = function.indirect.map(|held| held + extra);
    }
    Ok(())
}

/// Adds whose addresses each function takes.
fn references(
    file: &object::File<'_>,
    functions: &mut BTreeMap<u64, Function>,
    sizes: &BTreeMap<u64, u64>,
    data: &BTreeMap<u64, u64>,
    thumb: u64,
) -> Result<()> {
    let all = relocations(file)?;
    let starts: Vec<u64> = functions.keys().copied().collect();
    // An object without a symbol of its own goes on to the next address that something refers to.
    let targets: BTreeSet<u64> = all.values().copied().collect();
    let object = |address: u64| {
        let known = data
            .range(..=address)
            .next_back()
            .filter(|&(&start, &size)| address < start + size);
        let next = || targets.range(address + 1..).next().map_or(0, |&next| next - address);
        known.map_or_else(|| (address, next()), |(&start, &size)| (start, size))
    };
    let in_code = |address: u64| {
        let before = sizes.range(..=address).next_back();
        before.is_some_and(|(&start, &size)| address < start + size)
    };
    for (&start, &size) in sizes {
        let mut taken = BTreeSet::new();
        let (mut open, mut seen) = (vec![(start, size)], BTreeSet::new());
        while let Some((from, size)) = open.pop() {
            for (_, &to) in all.range(from..from + size) {
                let code = to & !thumb;
                if starts.binary_search(&code).is_ok() {
                    taken.insert(code);
                    continue;
                }
                let (object, bytes) = object(to);
                // Not a place in a function.
                if !in_code(to) && seen.insert(object) {
                    open.push((object, bytes));
                }
            }
        }
        if let Some(function) = functions.get_mut(&start) {
            // Calls by name refer to what they call as well.
            let called: BTreeSet<u64> = function.calls.iter().map(|&(to, _)| to).collect();
            function.takes = taken.difference(&called).copied().filter(|&to| to != start).collect();
        }
    }
    Ok(())
}
