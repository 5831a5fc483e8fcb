//! Programs of `firmware/footprint`: the runtime and a model alone, which are measured and never run.

use std::path::Path;

use super::error::BoardError;
use super::firmware::{Firmware, Recipe, build};
use super::progress::Progress;
use super::table::Board;

impl Firmware {
    /// Builds the runtime alone, with only what `model` needs. For Cortex-M and RISC-V boards.
    pub(super) fn build_footprint(
        board: &'static Board,
        model: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BoardError> {
        let features = board.runtime.join(",");
        let recipe = Recipe::with_model("arenite-footprint", "footprint", features, model)?;
        Self::once(board, &recipe, progress)
    }

    /// Builds the smallest program with `model` compiled, for its size.
    pub(super) fn build_compiled(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = board.runtime.join(",");
        let recipe = Recipe::with_model("arenite-footprint", "compiled", features, model)?;
        Self::once(board, &recipe, &mut |_| ())
    }

    /// Builds the program of every kernel of the board's build, with its relocations: `functions` is the text of them. It is never run.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_kernels(board: &'static Board, functions: &Path) -> Result<Self, BoardError> {
        let features: Vec<&str> = board.runtime.iter().copied().chain(["every-kernel"]).collect();
        let recipe = Recipe::with_model("arenite-footprint", "every_kernel", features.join(","), functions)?;
        let flags = ["-Csymbol-mangling-version=v0", "-Clink-arg=--emit-relocs"];
        // The functions are compiled as the runtime's are, by an attribute that this variable permits.
        build(board, &recipe, (&flags, &[("RUSTC_BOOTSTRAP", "1")]), &mut |_| ())
    }

    /// Builds the smallest program with two models compiled, for its size: `model` and the one beside it, with `.second` behind its name.
    pub(super) fn build_two(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let mut second = model.as_os_str().to_owned();
        second.push(".second");
        let second = Recipe::with_model("arenite-footprint", "two", String::new(), Path::new(&second))?;
        let features = board.runtime.join(",");
        let recipe = Recipe::with_model("arenite-footprint", "two", features, model)?;
        let name = format!("{}-{}", recipe.name, second.name);
        Self::once(board, &Recipe { name, ..recipe }, &mut |_| ())
    }

    /// Builds the program with `model` whose panic handler prints: its results unwrapped or not, errors with their text or without.
    pub(super) fn build_printing(
        board: &'static Board,
        model: &Path,
        unwrap: bool,
        text: bool,
    ) -> Result<Self, BoardError> {
        let chosen = [(unwrap, ",unwrap"), (text, ",error-text")];
        let chosen: String = chosen
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, feature)| *feature)
            .collect();
        let features = format!("{}{chosen}", board.runtime.join(","));
        let recipe = Recipe::with_model("arenite-footprint", "printing", features, model)?;
        let name = format!("{}{}", recipe.name, chosen.replace(',', "-"));
        Self::once(board, &Recipe { name, ..recipe }, &mut |_| ())
    }

    /// Builds that program without a model: start-up alone.
    pub(super) fn build_start(board: &'static Board) -> Result<Self, BoardError> {
        let recipe = Recipe {
            package: "arenite-footprint",
            features: board.runtime.join(","),
            ..Recipe::plain(board, "start")
        };
        Self::once(board, &recipe, &mut |_| ())
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
                features,
                ..Recipe::plain(board, "gate")
            },
        };
        Self::once(board, &recipe, &mut |_| ())
    }

    /// [`Firmware::build_gate`] with the kernels of `model`, which verifies signed files as well.
    ///
    /// # Errors
    /// Those of [`Firmware::build`].
    pub fn build_verifying_gate(board: &'static Board, model: &Path) -> Result<Self, BoardError> {
        let features = format!("{},embedded-model,verify", board.runtime.join(","));
        let recipe = Recipe::with_model("arenite-footprint", "gate", features, model)?;
        let name = format!("{}-verify", recipe.name);
        Self::once(board, &Recipe { name, ..recipe }, &mut |_| ())
    }
}
