//! The size of the runtime linked for one model, and the proof that it holds no panic.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionIndex};
use serde::Serialize;

use super::error::BoardError;
use super::firmware::Firmware;
use super::progress::Progress;
use super::table::Board;

/// Sizes of a program that does nothing but load and run one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Bytes of code, start-up included.
    pub text_bytes: u64,
    /// Bytes of constants, the model excluded.
    pub rodata_bytes: u64,
    /// Both: what the runtime adds to a program.
    pub code_bytes: u64,
    /// Bytes of the model, as linked.
    pub model_bytes: u64,
    /// Functions of the panic machinery that were linked; empty is the proof that nothing can panic.
    pub panics: Vec<String>,
}

/// Builds the runtime for a Cortex-M `board` with only the kernels that `model` needs, and measures it.
///
/// # Errors
/// Those of [`Firmware::build`]; [`BoardError::Elf`] for a board without a Cortex-M or a model that is not wholly linked.
pub fn footprint(board: &'static Board, model: &Path) -> Result<Footprint, BoardError> {
    footprint_watched(board, model, &mut |_| ())
}

/// [`footprint`], telling how far its build has come.
///
/// # Errors
/// As [`footprint`].
pub(super) fn footprint_watched(
    board: &'static Board,
    model: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Footprint, BoardError> {
    let unmeasured = |path: &Path, reason: &str| BoardError::Elf {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if !board.triple.starts_with("thumb") {
        return Err(unmeasured(model, "code size is measured on Cortex-M boards only"));
    }
    let model_bytes = std::fs::metadata(model)
        .map_err(|source| BoardError::File {
            path: model.to_owned(),
            source,
        })?
        .len();
    let firmware = Firmware::build_footprint(board, model, progress)?;
    let (text_bytes, rodata_and_model) = (firmware.section_bytes(".text"), firmware.section_bytes(".rodata"));
    let rodata_bytes = rodata_and_model
        .checked_sub(model_bytes)
        .ok_or_else(|| unmeasured(firmware.path(), "the model is not in .rodata"))?;
    Ok(Footprint {
        text_bytes,
        rodata_bytes,
        code_bytes: text_bytes + rodata_bytes,
        model_bytes,
        panics: panics(&firmware)?,
    })
}

/// Sizes of a program that does nothing but run one compiled model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompiledFootprint {
    /// Bytes of code and constants beyond start-up and the model's weights: kernels, calls, parameters of steps, padding.
    pub code_bytes: u64,
    /// Bytes of start-up alone.
    pub start_bytes: u64,
    /// Bytes of the weights.
    pub weights_bytes: u64,
    /// Functions of the panic machinery that were linked.
    pub panics: Vec<String>,
    /// Symbols that start-up and weights do not have, by name and bytes, the largest first.
    pub symbols: Vec<(String, u64)>,
}

/// The sections of code and constants. RISC-V's linker keeps small constants apart.
const FLASH: [&str; 3] = [".text", ".rodata", ".srodata"];

/// Builds the smallest program with `model` compiled for a Cortex-M `board` or one of RISC-V, and measures it. `weights` are the model's, in bytes.
///
/// # Errors
/// Those of [`footprint`].
pub fn compiled_footprint(board: &'static Board, model: &Path, weights: u64) -> Result<CompiledFootprint, BoardError> {
    is_measured(board, model)?;
    beyond(board, &Firmware::build_compiled(board, model)?, weights)
}

/// The same of two models in one program: `model`, and the one beside it with `.second` behind its name. `weights` are those of both.
///
/// # Errors
/// Those of [`footprint`].
pub fn compiled_footprint_of_two(
    board: &'static Board,
    model: &Path,
    weights: u64,
) -> Result<CompiledFootprint, BoardError> {
    is_measured(board, model)?;
    beyond(board, &Firmware::build_two(board, model)?, weights)
}

/// Bytes of code and constants beyond start-up and the model file of the smallest program that loads `model`, on a Cortex-M `board` or one of RISC-V.
///
/// # Errors
/// Those of [`footprint`].
pub fn loaded_footprint(board: &'static Board, model: &Path) -> Result<u64, BoardError> {
    is_measured(board, model)?;
    let firmware = Firmware::build_footprint(board, model, &mut |_| ())?;
    let file = std::fs::metadata(model).map_err(|source| BoardError::File {
        path: model.to_owned(),
        source,
    })?;
    Ok(beyond(board, &firmware, file.len())?.code_bytes)
}

fn is_measured(board: &Board, model: &Path) -> Result<(), BoardError> {
    if ["thumb", "riscv"].iter().any(|core| board.triple.starts_with(core)) {
        return Ok(());
    }
    Err(BoardError::Elf {
        path: model.to_owned(),
        reason: "the size of such programs is measured on Cortex-M and RISC-V boards only".to_owned(),
    })
}

/// Footprint of a program beyond start-up and `data` bytes of weights or model files.
fn beyond(board: &'static Board, firmware: &Firmware, data: u64) -> Result<CompiledFootprint, BoardError> {
    let start = Firmware::build_start(board)?;
    let start_bytes = flash_bytes(&start);
    let code_bytes = flash_bytes(firmware)
        .checked_sub(start_bytes + data)
        .ok_or_else(|| BoardError::Elf {
            path: firmware.path().to_owned(),
            reason: "what the program is to hold of its models is not in .rodata".to_owned(),
        })?;
    Ok(CompiledFootprint {
        code_bytes,
        start_bytes,
        weights_bytes: data,
        panics: panics(firmware)?,
        symbols: symbols(firmware, &start)?,
    })
}

fn flash_bytes(firmware: &Firmware) -> u64 {
    FLASH.iter().map(|section| firmware.section_bytes(section)).sum()
}

/// Bytes of code and constants of start-up alone.
///
/// # Errors
/// Those of [`Firmware::build`].
pub fn start_bytes(board: &'static Board) -> Result<u64, BoardError> {
    Ok(flash_bytes(&Firmware::build_start(board)?))
}

/// Functions and constants of a program that another has not, but for the weights: names and bytes, the largest first.
fn symbols(firmware: &Firmware, without: &Firmware) -> Result<Vec<(String, u64)>, BoardError> {
    let named = |object: &object::File<'_>| -> Vec<(String, u64)> {
        let is_flash = |section: Option<SectionIndex>| {
            let name = section.and_then(|index| object.section_by_index(index).ok()?.name().ok().map(str::to_owned));
            name.is_some_and(|name| FLASH.contains(&name.as_str()))
        };
        let symbols = object
            .symbols()
            .filter(|symbol| symbol.size() > 0 && is_flash(symbol.section_index()));
        let named = |symbol: object::Symbol<'_, '_>| {
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            Some((name, symbol.size()))
        };
        symbols.filter_map(named).collect()
    };
    let others = named(&without.object()?);
    let mut symbols = named(&firmware.object()?);
    symbols.retain(|symbol| !symbol.0.ends_with("::WEIGHTS") && !others.contains(symbol));
    symbols.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(symbols)
}

/// Bytes of code and constants that errors bring into a program with `model` whose panic handler prints, where a result is unwrapped: with the text of errors
/// (feature `error-text`), and without. For Cortex-M boards.
///
/// # Errors
/// Those of [`footprint`].
pub fn error_footprint(board: &'static Board, model: &Path) -> Result<[u64; 2], BoardError> {
    let bytes = |unwrap, text| -> Result<u64, BoardError> {
        let firmware = Firmware::build_printing(board, model, unwrap, text)?;
        Ok(firmware.section_bytes(".text") + firmware.section_bytes(".rodata"))
    };
    let without = bytes(false, false)?;
    Ok([
        bytes(true, true)?.saturating_sub(without),
        bytes(true, false)?.saturating_sub(without),
    ])
}

/// Parts of the names of functions that panic, or are called by all that do: `core::panicking`, the cold functions of slices, options and results, and the
/// panic handler itself, which is linked where a call of it is left, whatever was inlined into what.
const PANICS: [&str; 7] = [
    "core::panicking",
    "rust_begin_unwind",
    "unwrap_failed",
    "expect_failed",
    "slice::index::slice_",
    "len_mismatch_fail",
    "panic_",
];

/// The functions of the panic machinery that a program holds.
///
/// # Errors
/// [`BoardError::Elf`].
pub fn panics(firmware: &Firmware) -> Result<Vec<String>, BoardError> {
    let object = firmware.object()?;
    let names = object
        .symbols()
        .filter_map(|symbol| Some(format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?))));
    Ok(names
        .filter(|name| PANICS.iter().any(|part| name.contains(part)))
        .collect())
}
