//! Builds the firmware's programs for a board, once, and reads what the runner needs from their ELF files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::error::BoardError;
use super::table::{AddressRange, Board};
use crate::files;

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
    pub fn build(board: &'static Board, program: &str) -> Result<Self, BoardError> {
        Self::build_in(board, program, Profile::Release)
    }

    /// [`Firmware::build`] in a profile.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_in(board: &'static Board, program: &str, profile: Profile) -> Result<Self, BoardError> {
        let name = match profile {
            Profile::Release => program.to_owned(),
            Profile::Development => format!("{program}-development"),
        };
        Self::once(
            board,
            &Recipe {
                package: "arenite-firmware",
                program,
                features: board.feature.to_owned(),
                model: None,
                profile,
                name,
            },
        )
    }

    /// Builds the program that runs any model as [`Firmware::build`] does, with what tells its functions' stack: the compiler's sizes, relocations, and names
    /// that hold all of a function's types. Its code is the same.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub fn build_for_stacks(board: &'static Board) -> Result<Self, BoardError> {
        let features = format!("{},every-kernel", board.feature);
        let name = "infer-stacks".to_owned();
        let recipe = Recipe {
            package: "arenite-firmware",
            program: "infer",
            features,
            model: None,
            profile: Profile::Release,
            name,
        };
        // The sizes are an unstable option, which this variable permits.
        let flags = [
            "-Zemit-stack-sizes",
            "-Csymbol-mangling-version=v0",
            "-Clink-arg=--emit-relocs",
        ];
        build(board, &recipe, &flags, &[("RUSTC_BOOTSTRAP", "1")])
    }

    /// Builds `program` with a model embedded.
    ///
    /// # Errors
    /// As [`Firmware::build`]; [`BoardError::File`] where the model cannot be read.
    pub fn build_with_model(board: &'static Board, program: &str, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},embedded-model", board.feature);
        Self::once(
            board,
            &Recipe::with_model("arenite-firmware", program, features, model)?,
        )
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
        build(
            board,
            &Recipe { name, ..recipe },
            &[],
            &[("DEFMT_LOG", "info,arenite=trace")],
        )
    }

    /// Builds the program that takes models over the board's serial port.
    ///
    /// # Errors
    /// As [`Firmware::build`].
    pub fn build_serial(board: &'static Board) -> Result<Self, BoardError> {
        Self::once(
            board,
            &Recipe {
                package: "arenite-firmware",
                program: "serial",
                features: format!("{},serial", board.feature),
                model: None,
                profile: Profile::Release,
                name: "serial".to_owned(),
            },
        )
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
        Self::once(board, &Recipe { name, ..recipe })
    }

    /// Builds the runtime alone, with only what `model` needs. For Cortex-M boards.
    pub(super) fn build_footprint(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = board.runtime.join(",");
        Self::once(
            board,
            &Recipe::with_model("arenite-footprint", "footprint", features, model)?,
        )
    }

    /// Builds the program that calls all of the runtime and is never run, with every kernel of the board's build or with those of `model`.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_gate(board: &'static Board, model: Option<&Path>) -> Result<Self, BoardError> {
        let features = board.runtime.join(",");
        let recipe = match model {
            Some(model) => {
                Recipe::with_model("arenite-footprint", "gate", format!("{features},embedded-model"), model)?
            }
            None => Recipe {
                package: "arenite-footprint",
                program: "gate",
                features,
                model: None,
                profile: Profile::Release,
                name: "gate".to_owned(),
            },
        };
        Self::once(board, &recipe)
    }

    /// [`Firmware::build_gate`] with the kernels of `model`, which verifies signed files as well.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_verifying_gate(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},embedded-model,verify", board.runtime.join(","));
        let recipe = Recipe::with_model("arenite-footprint", "gate", features, model)?;
        let name = format!("{}-verify", recipe.name);
        Self::once(board, &Recipe { name, ..recipe })
    }

    fn once(board: &'static Board, recipe: &Recipe<'_>) -> Result<Self, BoardError> {
        // A panic elsewhere while holding a lock leaves what it holds valid.
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (board.name, recipe.name.clone());
        let place = Arc::clone(built.get_or_insert_default().entry(key).or_default());
        drop(built);
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(firmware) = &*place {
            return Ok(firmware.clone());
        }
        Ok(place.insert(build(board, recipe, &[], &[])?).clone())
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

/// The checkout that holds the firmware: `ARENITE_ROOT`, or where these tools were built.
///
/// # Errors
/// [`BoardError::NoSources`].
pub(super) fn root() -> Result<PathBuf, BoardError> {
    let path = match std::env::var_os("ARENITE_ROOT") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
    };
    match path.canonicalize() {
        Ok(root) if root.join("firmware/Cargo.toml").is_file() => Ok(root),
        _ => Err(BoardError::NoSources { path }),
    }
}

/// Whether the toolchain that the firmware is built with has `triple`; `None` where that cannot be told.
pub(super) fn has_target(triple: &str) -> Option<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(output.status.success() && folder.is_dir())
}

/// cargo, for the sources of the checkout and with nothing of an outer cargo's settings.
pub(super) fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder);
    for variable in [
        "RUSTFLAGS",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_TARGET_DIR",
    ] {
        cargo.env_remove(variable);
    }
    cargo
}

/// Runs `work` while no other process builds: boards that share a target triple share the place of the linked file.
pub(super) fn exclusively<T>(folder: &Path, work: impl FnOnce() -> Result<T, BoardError>) -> Result<T, BoardError> {
    let path = folder.join("build.lock");
    let failed = |source| BoardError::File {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(&path).map_err(failed)?;
    lock.lock().map_err(failed)?;
    // Dropping the file releases the lock.
    work()
}

/// A program and what it is built from.
struct Recipe<'a> {
    package: &'static str,
    program: &'a str,
    features: String,
    model: Option<PathBuf>,
    profile: Profile,
    /// Name of the kept file: program and model.
    name: String,
}

impl<'a> Recipe<'a> {
    fn with_model(package: &'static str, program: &'a str, features: String, model: &Path) -> Result<Self, BoardError> {
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
fn build(
    board: &'static Board,
    recipe: &Recipe<'_>,
    flags: &[&str],
    variables: &[(&str, &str)],
) -> Result<Firmware, BoardError> {
    if has_target(board.triple) == Some(false) {
        return Err(BoardError::TargetMissing {
            triple: board.triple.to_owned(),
        });
    }
    let root = root()?;
    let target = root.join("target/boards");
    let kept = target.join("elf").join(board.slug()).join(&recipe.name);
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
        let mut cargo = cargo(&root.join("firmware"));
        cargo
            .args([
                "build",
                "--quiet",
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
        let output = cargo.output().map_err(|error| cargo_missing(&error))?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(BoardError::Build {
                board: board.name,
                program: recipe.program.to_owned(),
                output,
            });
        }
        let linked = made.join(board.triple).join(folder).join(recipe.program);
        keep(&linked, &kept).map_err(|source| BoardError::File {
            path: kept.clone(),
            source,
        })
    })?;
    Firmware::open(board, &kept)
}

pub(super) fn cargo_missing(error: &io::Error) -> BoardError {
    BoardError::ToolMissing {
        tool: "cargo".to_owned(),
        how: format!("get it from https://rustup.rs ({error})"),
    }
}

/// Copies by renaming, so that a qemu which reads the file of before goes on reading that.
fn keep(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let fresh = fs::read(from)?;
    if fs::read(to).is_ok_and(|kept| kept == fresh) {
        return Ok(());
    }
    files::write(to, &fresh).map_err(io::Error::other)
}
