//! Progress messages of work on boards.

/// How far work on a board has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A program is compiled for it.
    Building {
        /// Its name.
        program: &'static str,
        /// Whether it serves all models, and is built again only when its sources change.
        kept: bool,
        /// Parts that are compiled.
        done: u32,
        /// Parts to compile.
        of: u32,
    },
    /// A network runs.
    Running {
        /// Complete runs.
        runs: u32,
        /// Complete steps of the current run, where steps are counted.
        steps: u32,
        /// Steps of the network; 0 where they are not counted.
        of_steps: u32,
    },
}
