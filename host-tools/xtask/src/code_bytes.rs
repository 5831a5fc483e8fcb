//! Bytes of each kernel, of its pieces and of its check on each board, from a program that has all of them (`firmware/footprint/src/every_kernel.rs`).
//!
//! [`update`] makes the table that `pack` tells `code_bytes_estimate` from (`host-tools/board/src/worst/code_bytes.json`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use arenite::kernels::api::candidate::Candidate;
use arenite::kernels::table::KernelVisitor;
use arenite::{KernelId, kernel_set};
use arenite_host::board::{Board, Firmware, loaded_footprint, start_bytes};
use arenite_host::worst::code_bytes::{Code, Codes, NONE, Part};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::stacks::relocations;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rewrites the rows of `boards` in the table at `path`; `note` hears of each.
///
/// # Errors
/// Where a program cannot be built or read.
pub fn update(path: &Path, boards: &[&'static Board], note: &mut dyn FnMut(&str)) -> Result<()> {
    let mut table: Codes = std::fs::read_to_string(path)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    for board in boards {
        let code = of(board)?;
        note(&format!("{}: {} kernels", board.name, code.kernels.len()));
        table.0.insert(board.name.to_owned(), code);
    }
    let mut text = "{\n".to_owned();
    for (index, (name, code)) in table.0.iter().enumerate() {
        let kernels = code.kernels.iter().map(|(name, kernel)| {
            let kernel = serde_json::to_string(kernel)?;
            Ok(format!("      {name:?}: {kernel}"))
        });
        let kernels = kernels.collect::<Result<Vec<_>>>()?.join(",\n");
        let shared = serde_json::to_string(&code.shared)?;
        let between = if index == 0 { "" } else { ",\n" };
        write!(
            text,
            "{between}  {name:?}: {{\n    \"start\": {},\n    \"load\": {},\n    \"shared\": {shared},\n    \"kernels\": {{\n{kernels}\n    }}\n  }}",
            code.start,
            serde_json::to_string(&code.load)?
        )?;
    }
    std::fs::write(path, text + "\n}\n")?;
    Ok(())
}

/// Whether a board's row is made: of one core of 32 bits, and of a build that no board before it has, compiled as programs of users are.
pub fn is_measured(board: &Board) -> bool {
    board.cores() == 1
        && board.counts_as().name == board.name
        && ["thumb", "riscv32"].iter().any(|core| board.triple.starts_with(core))
        && !board.rustflags.contains(&"opt-level=s")
}

/// Returns what the kernels of a board's build take.
///
/// # Errors
/// Where the program cannot be built or read.
pub fn of(board: &'static Board) -> Result<Code> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kernels.rs");
    let functions: Vec<(KernelId, Does)> = KernelId::ALL
        .iter()
        .filter(|kernel| board.has(**kernel) && **kernel != KernelId::EthosU)
        .flat_map(|&kernel| {
            let pieces = kernel.visit(InPieces).then_some(0..=NONE).into_iter().flatten();
            let all = [Does::Run, Does::Check].into_iter().chain(pieces.map(Does::Piece));
            all.map(move |does| (kernel, does))
        })
        .collect();
    std::fs::write(&path, text(&functions)?)?;
    let firmware = Firmware::build_kernels(board, &path)?;
    let linked = Linked::read(firmware.elf())?;
    let mut shared = BTreeMap::new();
    let mut code = Code {
        start: start_bytes(board)?,
        ..Code::default()
    };
    for (kernel, does) in functions {
        let name = name(kernel, does);
        let root = linked
            .names
            .get(&name)
            .ok_or_else(|| format!("{name} is not in the program"))?;
        let root = linked.behind(*root);
        let own = linked.objects.get(&root).copied().unwrap_or(0);
        let mut uses = BTreeSet::new();
        for object in linked.reached(root).into_iter().filter(|object| *object != root) {
            let next = shared.len();
            let at = *shared.entry(object).or_insert(next);
            if at == next {
                code.shared.push(linked.objects.get(&object).copied().unwrap_or(0));
            }
            uses.insert(at);
        }
        let row = code.kernels.entry(kernel.name().to_owned()).or_default();
        match does {
            Does::Run => row.whole = Part(own, uses),
            Does::Check => row.check = Part(own, uses),
            Does::Piece(piece) => _ = row.pieces.insert(piece, Part(own, uses)),
        }
    }
    for kernel in code.kernels.values_mut() {
        // Bits of nothing: the last one is none, and what it takes any other takes.
        let [none, any] = [NONE, NONE - 1].map(|bit| kernel.pieces.get(&bit).cloned());
        let last = kernel
            .pieces
            .iter()
            .rev()
            .find(|(bit, part)| **bit < NONE && any.as_ref() != Some(part));
        let last = last.map_or(0, |(bit, _)| *bit);
        kernel
            .pieces
            .retain(|bit, part| *bit == NONE || *bit <= last && none.as_ref() != Some(part));
    }
    // A program that loads has more than its kernels and their checks.
    let beside = |model: &str| -> Result<(u64, usize)> {
        let model = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/models")
            .join(model);
        let set = kernel_set(&std::fs::read(&model)?);
        let kernels = KernelId::ALL.iter().filter(|kernel| set.has(**kernel as u8));
        let kernels: Vec<_> = kernels.filter_map(|kernel| code.kernels.get(kernel.name())).collect();
        let bytes = loaded_footprint(board, &model)?.saturating_sub(code.loaded(&kernels));
        Ok((bytes, kernels.len()))
    };
    let ((single, 1), (several, 2..)) = (beside(SINGLE)?, beside(SEVERAL)?) else {
        return Err(format!("{SINGLE} has one kernel, and {SEVERAL} several").into());
    };
    code.load = [single, several];
    Ok(code)
}

/// A function of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It runs the kernel.
    Run,
    /// It reads and checks a step.
    Check,
    /// It runs one of its pieces.
    Piece(u8),
}

/// A model of one kernel, and one of several.
const SINGLE: &str = "typed/several.bin";
const SEVERAL: &str = "compat/mlp-v2.bin";

/// The most bytes of a function that only jumps to another.
const JUMP: u64 = 8;

/// How names of functions of kernels begin.
const FUNCTION: &str = "kernel_";

/// The name of a function of a kernel.
fn name(kernel: KernelId, does: Does) -> String {
    let does = match does {
        Does::Run => String::new(),
        Does::Check => "_check".to_owned(),
        Does::Piece(piece) => format!("_{piece}"),
    };
    format!("{FUNCTION}{}{does}", kernel.name())
}

/// Functions that each run a kernel or a piece of it, as [`arenite::kernels::table::runs`] does, or check a step of it, and a table of them.
fn text(functions: &[(KernelId, Does)]) -> std::result::Result<String, std::fmt::Error> {
    let mut text = String::new();
    for &(kernel, does) in functions {
        let (function, kernel) = (name(kernel, does), kernel.name());
        let pieces = match does {
            Does::Run => u32::MAX,
            Does::Piece(piece) => 1_u32.checked_shl(piece.into()).unwrap_or(0),
            Does::Check => {
                // As load does, which is compiled as the program is.
                writeln!(
                    text,
                    "#[unsafe(no_mangle)]\n#[inline(never)]\n#[allow(non_snake_case)]\n\
                     fn {function}(record: &[u8], bounds: &rt::Bounds<'_>) -> bool {{\n    \
                     rt::checked::<rt::kernel::{kernel}>(record, bounds)\n}}"
                )?;
                continue;
            }
        };
        writeln!(
            text,
            "#[unsafe(no_mangle)]\n#[optimize(speed)]\n#[inline(never)]\n#[allow(non_snake_case)]\n\
             fn {function}(op: &<rt::kernel::{kernel} as rt::Kernel>::Op, mem: &rt::Mem<'_>) -> Option<()> {{\n    \
             <rt::kernel::{kernel} as rt::Kernel>::run_pieces(op, mem, {pieces})\n}}"
        )?;
    }
    let each: String = functions
        .iter()
        .map(|&(kernel, does)| format!("    Function({} as *const ()),\n", name(kernel, does)))
        .collect();
    writeln!(
        text,
        "/// An address.\nstruct Function(#[allow(dead_code)] *const ());\n\
         // SAFETY: nothing is done with the address.\nunsafe impl Sync for Function {{}}\n\
         /// All functions.\nstatic ALL: &[Function] = &[\n{each}];"
    )?;
    Ok(text)
}

/// Whether a kernel's code is in pieces.
struct InPieces;

impl KernelVisitor for InPieces {
    type Output = bool;

    fn visit<K: Candidate>(self) -> bool {
        K::PIECES
    }
}

/// Functions and constants of a linked program, and what each refers to.
struct Linked {
    /// Bytes by address.
    objects: BTreeMap<u64, u64>,
    /// Addresses by name.
    names: BTreeMap<String, u64>,
    /// Address that each place refers to.
    references: BTreeMap<u64, u64>,
}

impl Linked {
    fn read(elf: &[u8]) -> Result<Self> {
        let file = object::File::parse(elf)?;
        let thumb = u64::from(file.architecture() == object::Architecture::Arm);
        let references = relocations(&file)?;
        let (mut objects, mut names) = (BTreeMap::new(), BTreeMap::new());
        for symbol in file.symbols() {
            let (Ok(name), true) = (symbol.name(), symbol.size() > 0) else {
                continue;
            };
            let address = match symbol.kind() {
                SymbolKind::Text => symbol.address() & !thumb,
                SymbolKind::Data => symbol.address(),
                _ => continue,
            };
            let bytes = objects.entry(address).or_insert(0);
            *bytes = symbol.size().max(*bytes);
            names.insert(name.to_owned(), address);
        }
        // Constants without a symbol end where the next one, or their section, does.
        let targets: BTreeSet<u64> = references.values().copied().collect();
        let constants: Vec<_> = file
            .sections()
            .filter(|section| section.name().is_ok_and(|name| name.contains("rodata")))
            .map(|section| section.address()..section.address() + section.size())
            .collect();
        for &at in &targets {
            let Some(section) = constants.iter().find(|section| section.contains(&at)) else {
                continue;
            };
            let before = objects.range(..=at).next_back();
            if before.is_some_and(|(&start, &bytes)| at < start + bytes) {
                continue;
            }
            let next = targets.range(at + 1..).next().copied().unwrap_or(u64::MAX);
            let known = objects.range(at + 1..).next().map_or(u64::MAX, |(&start, _)| start);
            objects.insert(at, next.min(known).min(section.end) - at);
        }
        Ok(Self {
            objects,
            names,
            references,
        })
    }

    /// The function that one of the same code goes on to, where it is nothing else.
    fn behind(&self, root: u64) -> u64 {
        let bytes = self.objects.get(&root).copied().unwrap_or(0);
        let others: Vec<u64> = self
            .references
            .range(root..root + bytes)
            .filter_map(|(_, &to)| self.object(to))
            .filter(|to| *to != root)
            .collect();
        match others.as_slice() {
            &[other]
                if bytes <= JUMP
                    && self
                        .names
                        .iter()
                        .any(|(name, at)| *at == other && name.starts_with(FUNCTION)) =>
            {
                other
            }
            _ => root,
        }
    }

    /// The object that holds an address.
    fn object(&self, address: u64) -> Option<u64> {
        let (&start, &bytes) = self.objects.range(..=address).next_back()?;
        (address < start + bytes).then_some(start)
    }

    /// All objects that `root` refers to, by others or not, and itself.
    fn reached(&self, root: u64) -> BTreeSet<u64> {
        let (mut open, mut seen) = (vec![root], BTreeSet::from([root]));
        while let Some(at) = open.pop() {
            let bytes = self.objects.get(&at).copied().unwrap_or(0);
            for (_, &to) in self.references.range(at..at + bytes) {
                if let Some(object) = self.object(to).filter(|object| seen.insert(*object)) {
                    open.push(object);
                }
            }
        }
        seen
    }
}
