//! The stack that a load and a run of each kernel take on each board, from the linked firmware: the largest sum of frames along the calls.
//!
//! [`update`] makes the table that `pack` and `bench` tell from (`host-tools/board/src/worst/stacks.json`); `tests/tests/boards/worst.rs` compares it with what
//! boards measure by painting. `ARENITE_STACK_PATHS=1` prints the deepest way of each kernel.

mod code;
mod instruction;
mod relocations;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arenite::KernelId;
use arenite::kernels::api::candidate::Candidate;
use arenite::kernels::table::KernelVisitor;
use arenite_host::board::{Board, Firmware};
use arenite_host::worst::stack::{Stack, Stacks};

pub use code::{Function, Program};
pub use relocations::relocations;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rewrites the rows of `boards` in the table at `path`; `note` hears of each.
///
/// # Errors
/// Where a firmware cannot be built or read.
pub fn update(path: &Path, boards: &[&'static Board], note: &mut dyn FnMut(&str)) -> Result<()> {
    let mut table: Stacks = std::fs::read_to_string(path)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    for board in boards {
        let firmware = Firmware::build_for_stacks(board)?;
        let stack = of(board, firmware.path())?;
        note(&format!("{}: {} kernels", board.name, stack.run.len()));
        table.0.insert(board.name.to_owned(), stack);
    }
    let rows = table.0.iter().map(|(name, stack)| {
        let row = |what: &str, of: &BTreeMap<String, u64>| {
            let entries: Vec<_> = of
                .iter()
                .map(|(kernel, bytes)| format!("      \"{kernel}\": {bytes}"))
                .collect();
            format!("    \"{what}\": {{\n{}\n    }}", entries.join(",\n"))
        };
        let around = format!("    \"load_alone\": {}", stack.load_alone);
        format!(
            "  \"{name}\": {{\n{around},\n{},\n{}\n  }}",
            row("load", &stack.load),
            row("run", &stack.run)
        )
    });
    let text = format!("{{\n{}\n}}\n", rows.collect::<Vec<_>>().join(",\n"));
    std::fs::write(path, text)?;
    Ok(())
}

/// Returns the stack that the firmware at `path` takes on `board`.
///
/// # Errors
/// Where it is not what [`Firmware::build_for_stacks`] builds, and where a function's stack cannot be told.
pub fn of(board: &Board, path: &Path) -> Result<Stack> {
    let program = Program::read(path, board.triple)?;
    let named = |part: &str| program.find(|function| function.is(part) && !function.is("call_once"));
    let none = BTreeSet::new();
    let runs = named("arenite::kernels::table::run::<");
    let checks: BTreeSet<u64> = named("arenite::kernels::table::check::<").into_iter().collect();
    // Functions that the program measures: closures that call the session and the load.
    let roots = program.find(|function| function.is("infer::") && function.is("{closure") && !function.is("call_once"));
    let from = |targets: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
        let targets: Vec<u64> = targets.collect();
        let reaches = |&&root: &&u64| targets.iter().any(|&target| program.held_at(root, target).is_some());
        roots.iter().filter(reaches).copied().collect()
    };
    let running = from(&mut runs.iter().copied());
    let loading = from(&mut checks.iter().copied());
    if running.is_empty() || loading.is_empty() {
        return Err(format!("{}: no function of the program infer runs or loads", path.display()).into());
    }
    let held = |roots: &[u64], target: u64| roots.iter().filter_map(|&root| program.held_at(root, target)).max();

    let computes: BTreeMap<u64, u64> = compute_functions(&program);
    let all: BTreeSet<u64> = computes.values().copied().collect();
    let mut stack = Stack::default();
    for &root in &loading {
        stack.load_alone = stack.load_alone.max(deepest(&program, root, &checks)?);
    }
    for (index, &kernel) in KernelId::ALL.iter().enumerate() {
        let names = kernel.visit(Names);
        // Of kernels of the same code there is one.
        let same =
            |other: &KernelId| other.backend() == kernel.backend() && other.visit(Names).operator == names.operator;
        let others = KernelId::ALL
            .iter()
            .enumerate()
            .filter(|(_, other)| same(other))
            .map(|(index, _)| index as u64);
        let own: Vec<u64> = match computes.get(&(index as u64)) {
            Some(&own) => vec![own],
            None => others.filter_map(|other| computes.get(&other).copied()).collect(),
        };
        if own.is_empty() {
            // The board's build has no such kernel.
            continue;
        }
        let missing = |what: &str| format!("{}: {what} of {} is not in the program", board.name, kernel.name());
        let mut run = None;
        for &address in &runs {
            if !is_of(&program, address, &names.operator) {
                continue;
            }
            let function = &program.functions[&address];
            for &compute in &own {
                let at = function
                    .calls
                    .iter()
                    .filter(|&&(to, _)| to == compute)
                    .map(|&(_, held)| held);
                let Some(at) = at.chain(function.indirect).max() else {
                    continue;
                };
                let inside = deepest(&program, address, &all)?.max(at + deepest(&program, compute, &none)?);
                run = run.max(held(&running, address).map(|held| held + inside));
            }
        }
        stack
            .run
            .insert(kernel.name().to_owned(), run.ok_or_else(|| missing("the run"))?);
        let mut load = None;
        for &check in checks
            .iter()
            .filter(|&&address| is_of(&program, address, &names.kernel))
        {
            let inside = deepest(&program, check, &none)?;
            load = load.max(held(&loading, check).map(|held| held + inside));
        }
        stack
            .load
            .insert(kernel.name().to_owned(), load.ok_or_else(|| missing("the check"))?);
    }
    Ok(stack)
}

/// Whether `caller` may call `called` through a register. Only checks do so: of an operator's operands each is visited by a closure, and what checks asks the
/// kernel, behind a trait, for its operands and their distances.
fn goes(caller: &Function, called: &Function) -> bool {
    let visits = caller.is("::operands") || caller.is("Operands>::each");
    called.is(if visits { "{closure" } else { "Operands>::" })
}

/// The stack of `root`.
fn deepest(program: &Program, root: u64, outside: &BTreeSet<u64>) -> Result<u64> {
    if let Some(cycle) = program.cycle(root) {
        let names: Vec<_> = cycle.iter().filter_map(|function| function.readable().next()).collect();
        return Err(format!("without bound, for it calls itself: {}", names.join(" > ")).into());
    }
    let (bytes, path) = program.depth(root, outside, &goes);
    if std::env::var_os("ARENITE_STACK_PATHS").is_some() {
        let path = path.iter().filter_map(|at| program.functions.get(at));
        let path: Vec<_> = path
            .map(|function| format!("{} {}", function.readable().next().unwrap_or_default(), function.frame))
            .collect();
        eprintln!("{bytes}: {}", path.join(" > "));
    }
    Ok(bytes)
}

/// The functions that compute a kernel, by its place in the table: they are of one name, numbered by the compiler in the order of the source.
fn compute_functions(program: &Program) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for (&address, function) in &program.functions {
        found.extend(function.names.iter().filter_map(|name| Some((number(name)?, address))));
    }
    found
}

/// `…5table8run_step7compute` is the first, `…8run_steps_7compute` the next, then come `s0_`, `s1_`, … to the base of 62.
fn number(name: &str) -> Option<u64> {
    let (_, behind) = name.split_once("5table8run_step")?;
    let (digits, _) = behind.split_once("7compute")?;
    let Some(digits) = digits.strip_prefix('s') else {
        return digits.is_empty().then_some(0);
    };
    let Some(digits) = digits.strip_suffix('_').filter(|digits| !digits.is_empty()) else {
        return (digits == "_").then_some(1);
    };
    let value = |c: char| match c {
        '0'..='9' => Some(u64::from(c) - u64::from('0')),
        'a'..='z' => Some(u64::from(c) - u64::from('a') + 10),
        'A'..='Z' => Some(u64::from(c) - u64::from('A') + 36),
        _ => None,
    };
    digits
        .chars()
        .try_fold(0, |sum, c| Some(sum * 62 + value(c)?))
        .map(|value| value + 2)
}

/// Whether one of a function's names is of the type `wanted`, whatever types those are made of.
fn is_of(program: &Program, address: u64, wanted: &str) -> bool {
    let names = program.functions.get(&address);
    let of = |name: &str| {
        let (_, of) = name.split_once("::<")?;
        of.strip_suffix('>').map(str::to_owned)
    };
    names.is_some_and(|function| {
        function
            .readable()
            .filter_map(|name| of(&name))
            .any(|of| of == wanted || plain(&of) == wanted)
    })
}

/// A type without what it is made of.
fn plain(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

/// The types of a kernel and of its operator.
struct Names;

struct Types {
    kernel: String,
    operator: String,
}

impl KernelVisitor for Names {
    type Output = Types;

    fn visit<K: Candidate>(self) -> Types {
        Types {
            kernel: std::any::type_name::<K>().to_owned(),
            operator: plain(std::any::type_name::<K::Op>()).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn the_compilers_numbers_are_read() {
        let name = |middle: &str| format!("_RNvNvNtNtCs_7arenite7kernels5table8run_step{middle}7compute");
        for (middle, index) in [
            ("", 0),
            ("s_", 1),
            ("s0_", 2),
            ("s5_", 7),
            ("sz_", 37),
            ("sA_", 38),
            ("s10_", 64),
        ] {
            assert_eq!(number(&name(middle)), Some(index), "{middle}");
        }
        assert_eq!(number("_RNv5table8run_step"), None);
    }
}
