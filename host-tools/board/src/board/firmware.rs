//! Builds the firmware's programs for a board, once, and reads what the runner needs from their ELF files.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::error::BoardError;
use super::progress::Progress;
use super::table::{AddressRange, Board};
use super::toolchain::{cargo, cargo_missing, exclusively, has_target, not_built, watched};
use super::workshop::{Workshop, at_hand, cannot_keep, keep, kept};

/// A program built for a board.
#[derive(Debug, Clone)]
pub struct Firmware {
    board: &'static Board,
    path: PathBuf,
    elf: Arc<Vec<u8>>,
}

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As products are: optimised, arithmetic wraps.
    Release,
    /// As the firmware is while it is written: arithmetic is checked for overflow, debug assertions hold.
    Development,
}

/// Built programs of this process by board and program: asking cargo again costs a fraction of a second each time. Each has a lock of its own.
static BUILT: Mutex<Option<HashMap<(&'static str, String), Place>>> = Mutex::new(None);

type Place = Arc<Mutex<Option<Firmware>>>;

impl Firmware {
    /// Builds `program` (a binary of the firmware package) for `board`, or takes the build of before.
    ///
    /// # Errors
    /// [`BoardError::TargetMissing`], [`BoardError::ToolMissing`] without cargo, [`BoardError::NoSources`],
    /// [`BoardError::Build`] with the compiler's words, [`BoardError::File`].
    pub fn build(board: &'static Board, program: &'static str) -> Result<Self, BoardError> {
        Self::build_in(board, program, Profile::Release)
    }

    /// [`Firmware::build`], telling how far it has come where there is something to compile.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_watched(
        board: &'static Board,
        program: &'static str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BoardError> {
        Self::once(board, &Recipe::plain(board, program), progress)
    }

    /// [`Firmware::build`] in a profile.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_in(board: &'static Board, program: &'static str, profile: Profile) -> Result<Self, BoardError> {
        let name = match profile {
            Profile::Release => program.to_owned(),
            Profile::Development => format!("{program}-development"),
        };
        let plain = Recipe::plain(board, program);
        Self::once(board, &Recipe { profile, name, ..plain }, &mut |_| ())
    }

    /// Builds the program that runs any model as [`Firmware::build`] does, with what tells its functions' stack: the compiler's sizes, relocations, and names
    /// that hold all of a function's types. Its code is the same.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub fn build_for_stacks(board: &'static Board) -> Result<Self, BoardError> {
        let features = format!("{},every-kernel", board.feature);
        let recipe = Recipe {
            features,
            name: "infer-stacks".to_owned(),
            ..Recipe::plain(board, "infer")
        };
        // The sizes are an unstable option, which this variable permits.
        let flags = [
            "-Zemit-stack-sizes",
            "-Csymbol-mangling-version=v0",
            "-Clink-arg=--emit-relocs",
        ];
        build(board, &recipe, (&flags, &[("RUSTC_BOOTSTRAP", "1")]), &mut |_| ())
    }

    /// Builds `program` with a model embedded.
    ///
    /// # Errors
    /// As [`Firmware::build`]; [`BoardError::File`] where the model cannot be read.
    pub fn build_with_model(board: &'static Board, program: &'static str, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},embedded-model", board.feature);
        let recipe = Recipe::with_model("arenite-firmware", program, features, model)?;
        Self::once(board, &recipe, &mut |_| ())
    }

    /// Builds the program that tests itself and watches its memory with `model`, and whose sessions log each step.
    ///
    /// # Errors
    /// As [`Firmware::build_with_model`].
    pub fn build_logging(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},embedded-model,events", board.feature);
        let recipe = Recipe::with_model("arenite-firmware", "monitored", features, model)?;
        let name = format!("{}-events", recipe.name);
        // Events of steps have the lowest level, which is not compiled in otherwise.
        let variables = [("DEFMT_LOG", "info,arenite=trace")];
        build(board, &Recipe { name, ..recipe }, (&[], &variables), &mut |_| ())
    }

    /// Builds the program that takes models over the board's serial port.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub fn build_serial(board: &'static Board) -> Result<Self, BoardError> {
        let features = format!("{},serial", board.feature);
        let plain = Recipe::plain(board, "serial");
        Self::once(board, &Recipe { features, ..plain }, &mut |_| ())
    }

    /// Builds the program whose model takes images row by row over the board's serial port.
    ///
    /// # Errors
    /// As [`Firmware::build_with_model`].
    pub fn build_camera(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},camera", board.feature);
        let recipe = Recipe::with_model("arenite-firmware", "camera", features, model)?;
        Self::once(board, &recipe, &mut |_| ())
    }

    /// Builds the program of the test kit, with a check of what each function in assembly leaves in registers: a runtime that no other program has.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub(super) fn build_registers(board: &'static Board) -> Result<Self, BoardError> {
        let (features, name) = (format!("{},registers", board.feature), "kernels-registers".to_owned());
        let plain = Recipe::plain(board, "kernels");
        Self::once(
            board,
            &Recipe {
                features,
                name,
                ..plain
            },
            &mut |_| (),
        )
    }

    /// Builds the program whose model learns from samples that come over the board's serial port.
    ///
    /// # Errors
    /// As [`Firmware::build_with_model`].
    pub fn build_learner(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},learner", board.feature);
        let recipe = Recipe::with_model("arenite-firmware", "learner", features, model)?;
        Self::once(board, &recipe, &mut |_| ())
    }

    /// Builds the program that runs any model, with what models that roll want.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub(super) fn build_rolling(board: &'static Board, progress: &mut dyn FnMut(Progress)) -> Result<Self, BoardError> {
        let features = format!("{},rolling", board.feature);
        let plain = Recipe::plain(board, "infer");
        let name = "infer-rolling".to_owned();
        Self::once(
            board,
            &Recipe {
                features,
                name,
                ..plain
            },
            progress,
        )
    }

    /// Builds the program that lets language models write.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub(super) fn build_generate(
        board: &'static Board,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BoardError> {
        let features = format!("{},text", board.feature);
        let plain = Recipe::plain(board, "generate");
        Self::once(board, &Recipe { features, ..plain }, progress)
    }

    /// Builds the program that runs models from the flash at the board's serial bus.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub(super) fn build_streamed(
        board: &'static Board,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BoardError> {
        let features = format!("{},stream", board.feature);
        let plain = Recipe::plain(board, "streamed");
        Self::once(board, &Recipe { features, ..plain }, progress)
    }

    /// Builds the program that keeps a model in two slots of the flash at the board's serial bus.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub(super) fn build_slots(board: &'static Board) -> Result<Self, BoardError> {
        let features = format!("{},slots", board.feature);
        let plain = Recipe::plain(board, "slots");
        Self::once(board, &Recipe { features, ..plain }, &mut |_| ())
    }

    /// Builds the program that loads a signed model, `verifying` its signature or not.
    ///
    /// # Errors
    /// As [`Firmware::build_with_model`].
    pub fn build_signed(board: &'static Board, model: &Path, verifying: bool) -> Result<Self, BoardError> {
        let (features, how) = if verifying {
            (",verify", "verified")
        } else {
            ("", "loaded")
        };
        let features = format!("{},embedded-model{features}", board.feature);
        let recipe = Recipe::with_model("arenite-firmware", "signed", features, model)?;
        let name = format!("{}-{how}", recipe.name);
        Self::once(board, &Recipe { name, ..recipe }, &mut |_| ())
    }

    pub(super) fn once(
        board: &'static Board,
        recipe: &Recipe,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BoardError> {
        // A panic elsewhere while holding a lock leaves what it holds valid.
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (board.name, recipe.name.clone());
        let place = Arc::clone(built.get_or_insert_default().entry(key).or_default());
        drop(built);
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(firmware) = &*place {
            return Ok(firmware.clone());
        }
        Ok(place.insert(build(board, recipe, (&[], &[]), progress)?).clone())
    }

    /// A program that was built elsewhere.
    ///
    /// # Errors
    /// [`BoardError::File`] where it cannot be read, [`BoardError::Elf`] where it is no ELF file.
    pub fn open(board: &'static Board, path: &Path) -> Result<Self, BoardError> {
        let elf = fs::read(path).map_err(|source| BoardError::File {
            path: path.to_owned(),
            source,
        })?;
        let firmware = Self {
            board,
            path: path.to_owned(),
            elf: Arc::new(elf),
        };
        firmware.object()?;
        Ok(firmware)
    }

    /// The board that it runs on.
    pub fn board(&self) -> &'static Board {
        self.board
    }

    /// The ELF file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes.
    pub fn elf(&self) -> &[u8] {
        &self.elf
    }

    /// The first address behind everything that the program occupies in `memory` when loaded.
    ///
    /// # Errors
    /// [`BoardError::Elf`].
    pub fn loaded_end(&self, memory: AddressRange) -> Result<u64, BoardError> {
        let header = object::read::elf::ElfFile32::<object::Endianness>::parse(&*self.elf);
        let physical: Vec<(u64, u64)> = match &header {
            Ok(elf) => {
                use object::read::elf::ProgramHeader;
                let endian = elf.endian();
                let loaded = |header: &&object::elf::ProgramHeader32<object::Endianness>| {
                    header.p_type(endian) == object::elf::PT_LOAD && header.p_filesz(endian) > 0
                };
                let range = |header: &object::elf::ProgramHeader32<object::Endianness>| {
                    (u64::from(header.p_paddr(endian)), u64::from(header.p_filesz(endian)))
                };
                elf.elf_program_headers().iter().filter(loaded).map(range).collect()
            }
            // The 64-bit boards load everything where it runs.
            Err(_) => self
                .object()?
                .segments()
                .map(|segment| (segment.address(), segment.file_range().1))
                .collect(),
        };
        let inside = |&(start, _): &(u64, u64)| start >= memory.start && start < memory.end();
        Ok(physical
            .into_iter()
            .filter(inside)
            .map(|(start, size)| start + size)
            .max()
            .unwrap_or(memory.start))
    }

    /// Bytes of a section; 0 where there is none.
    pub fn section_bytes(&self, name: &str) -> u64 {
        let section = |object: object::File<'_>| Some(object.section_by_name(name)?.size());
        self.object().ok().and_then(section).unwrap_or(0)
    }

    /// The demangled name of the function that holds `address`.
    pub fn function_at(&self, address: u64) -> Option<String> {
        let object = self.object().ok()?;
        // Bit 0 of a Thumb function's symbol says that it is Thumb.
        let start = |symbol: &object::Symbol<'_, '_>| symbol.address() & !1;
        let symbol = object.symbols().find(|symbol| {
            symbol.kind() == SymbolKind::Text && (start(symbol)..start(symbol) + symbol.size()).contains(&address)
        })?;
        Some(format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?)))
    }

    /// The addresses of every function whose demangled name contains `part`.
    ///
    /// # Errors
    /// [`BoardError::Elf`].
    pub fn functions(&self, part: &str) -> Result<Vec<Range<u64>>, BoardError> {
        let object = self.object()?;
        let named = object.symbols().filter(|symbol| {
            let name = symbol
                .name()
                .map(|name| format!("{:#}", rustc_demangle::demangle(name)));
            symbol.kind() == SymbolKind::Text && name.is_ok_and(|name| name.contains(part))
        });
        // Bit 0 of a Thumb function's symbol says that it is Thumb.
        let range = |symbol: object::Symbol<'_, '_>| (symbol.address() & !1)..(symbol.address() & !1) + symbol.size();
        Ok(named.map(range).collect())
    }

    /// The address of a symbol, with the Thumb bit cleared.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let object = self.object().ok()?;
        let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name))?;
        let thumb = symbol.kind() == SymbolKind::Text && self.board.triple.starts_with("thumb");
        Some(if thumb { symbol.address() & !1 } else { symbol.address() })
    }

    pub(super) fn object(&self) -> Result<object::File<'_>, BoardError> {
        object::File::parse(&**self.elf).map_err(|error| BoardError::Elf {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }
}

/// A program and what it is built from.
pub(super) struct Recipe {
    pub(super) package: &'static str,
    pub(super) program: &'static str,
    pub(super) features: String,
    pub(super) model: Option<PathBuf>,
    pub(super) profile: Profile,
    /// Name of the kept file: program and model.
    pub(super) name: String,
}

impl Recipe {
    /// A program of the firmware that serves any model.
    pub(super) fn plain(board: &Board, program: &'static str) -> Self {
        Self {
            package: "arenite-firmware",
            program,
            features: board.feature.to_owned(),
            model: None,
            profile: Profile::Release,
            name: program.to_owned(),
        }
    }

    pub(super) fn with_model(
        package: &'static str,
        program: &'static str,
        features: String,
        model: &Path,
    ) -> Result<Self, BoardError> {
        let failed = |source| BoardError::File {
            path: model.to_owned(),
            source,
        };
        let model = model.canonicalize().map_err(failed)?;
        let name = format!("{program}-{:08x}", crc32fast::hash(&fs::read(&model).map_err(failed)?));
        Ok(Self {
            package,
            program,
            features,
            model: Some(model),
            profile: Profile::Release,
            name,
        })
    }
}

/// `flags` for the compiler and `variables` for cargo beside the usual ones; such builds have a folder of their own.
pub(super) fn build(
    board: &'static Board,
    recipe: &Recipe,
    (flags, variables): (&[&str], &[(&str, &str)]),
    progress: &mut dyn FnMut(Progress),
) -> Result<Firmware, BoardError> {
    // A firmware that serves any model came along with an installed program, or was built there before.
    let is_plain = recipe.model.is_none() && recipe.name == recipe.program && flags.is_empty();
    if is_plain && let Some(path) = at_hand(&board.slug(), recipe.program) {
        return Firmware::open(board, &path);
    }
    if has_target(board.triple) == Some(false) {
        return Err(BoardError::TargetMissing {
            triple: board.triple.to_owned(),
        });
    }
    let workshop = Workshop::here()?;
    let target = workshop.folder();
    let place = target.join("elf").join(board.slug()).join(&recipe.name);
    // Of its own for each triple: their builds, of which each links with one thread, do not wait for each other.
    let made = target
        .join(if flags.is_empty() { "made" } else { "special" })
        .join(board.triple);
    let rustflags: Vec<&str> = board.rustflags.iter().chain(flags).copied().collect();
    let (profile, folder) = match recipe.profile {
        Profile::Release => ("release", "release"),
        Profile::Development => ("dev", "debug"),
    };
    exclusively(&made, || {
        // Another process may have built it while this one waited.
        if is_plain && workshop.is_kept() && kept(&place).is_some() {
            return Ok(());
        }
        let mut cargo = cargo(&workshop.sources()?.join("firmware"));
        cargo
            .args([
                "build",
                "--profile",
                profile,
                "--package",
                recipe.package,
                "--bin",
                recipe.program,
            ])
            .args(["--target", board.triple, "--features", &recipe.features])
            .arg("--target-dir")
            .arg(&made)
            .env("ARENITE_BOARD", board.feature)
            .env("CARGO_ENCODED_RUSTFLAGS", rustflags.join("\x1f"))
            .envs(variables.iter().copied());
        if let Some(model) = &recipe.model {
            cargo.env("ARENITE_MODEL", model);
        }
        if workshop.is_kept() {
            cargo.arg("--locked");
        }
        let (status, output) = watched(&mut cargo, &mut |done, of| {
            progress(Progress::Building {
                program: recipe.program,
                kept: recipe.model.is_none(),
                done,
                of,
            })
        })
        .map_err(|error| cargo_missing(&error))?;
        if !status.success() {
            return Err(not_built(board.name, recipe.program, output));
        }
        let linked = made.join(board.triple).join(folder).join(recipe.program);
        keep(&linked, &place).map_err(cannot_keep(target))
    })?;
    Firmware::open(board, &place)
}
