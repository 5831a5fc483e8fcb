//! Packing from a `build.rs`: the network lies beside the program and is packed when it changes.
//!
//! ```no_run
//! // In `main` of build.rs:
//! arenite_host::build::Pack::new("net.tflite").target("cortex-m4").write("kws");
//! ```
//!
//! and in the program
//!
//! ```ignore
//! arenite::include_model!(mod kws = concat!(env!("OUT_DIR"), "/kws.bin"));
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arenite::Target;

use crate::error::{Error, ErrorKind, Result};
use crate::files::{print, read_text};
use crate::pack::{self, Options, target_named};

/// A network to pack, and how. Paths count from the package's root, where build scripts run.
#[derive(Debug, Clone)]
#[must_use = "`write` packs it"]
pub struct Pack {
    options: Options,
    target: String,
    labels: Option<PathBuf>,
}

impl Pack {
    /// A `.tflite` file, an ONNX file or a trace, at the options' defaults.
    pub fn new(input: impl Into<PathBuf>) -> Self {
        Self {
            options: Options::new(input, ""),
            target: Target::Portable.name().to_string(),
            labels: None,
        }
    }

    /// `pack --target`: chooses kernels and weight layouts.
    pub fn target(mut self, name: &str) -> Self {
        self.target = name.to_string();
        self
    }

    /// `pack --weights`: a file, or `seeded:N`.
    pub fn weights(mut self, weights: &str) -> Self {
        self.options.weights = Some(weights.to_string());
        self
    }

    /// `pack --labels`: a file of class labels, one a line.
    pub fn labels(mut self, file: impl Into<PathBuf>) -> Self {
        self.labels = Some(file.into());
        self
    }

    /// `pack --size`: small code and weights.
    pub fn size(mut self) -> Self {
        self.options.size = true;
        self
    }

    /// `pack --self-test`: sample inputs.
    pub fn self_test(mut self, samples: impl Into<PathBuf>) -> Self {
        self.options.self_test = Some(samples.into());
        self
    }

    /// Everything else that `pack` is told.
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Packs to `NAME.bin` in `OUT_DIR`, and tells cargo which files it was made of. A fault is an error of the build.
    pub fn write(self, name: &str) {
        if let Err(error) = self.try_write(name) {
            // A message of cargo's is one line.
            let message = error.to_string();
            let lines: Vec<&str> = message.lines().map(str::trim).collect();
            tell("error", &lines.join("; "));
            std::process::exit(1);
        }
    }

    fn try_write(mut self, name: &str) -> Result<()> {
        let out = std::env::var_os("OUT_DIR").ok_or_else(|| {
            Error::new(ErrorKind::Usage, "OUT_DIR is not set").help("call this from a build script that cargo runs")
        })?;
        let asked = [
            Some(&self.options.input),
            self.labels.as_ref(),
            self.options.self_test.as_ref(),
        ];
        let mut files: BTreeSet<PathBuf> = asked.into_iter().flatten().cloned().collect();
        if let Some(weights) = self
            .options
            .weights
            .as_ref()
            .filter(|spec| !spec.starts_with("seeded:"))
        {
            files.insert(PathBuf::from(weights));
        }
        // Told before the work: where it fails, a change of these is another try.
        files.iter().for_each(|file| changed(file));
        self.options.target = target_named(&self.target)?;
        if let Some(path) = &self.labels {
            self.options.labels = read_text(path, "read the labels")?
                .lines()
                .map(str::to_string)
                .collect();
        }
        self.options.output = Path::new(&out).join(format!("{name}.bin"));
        let packed = pack::pack(&self.options, &mut |_, _, _| {})?;
        packed
            .files
            .iter()
            .filter(|file| !files.contains(*file))
            .for_each(|file| changed(file));
        packed.warnings.iter().for_each(|warning| tell("warning", warning));
        Ok(())
    }
}

fn changed(file: &Path) {
    tell("rerun-if-changed", &file.display().to_string());
}

/// An instruction to cargo.
fn tell(key: &str, value: &str) {
    // Where cargo does not listen any more nobody is left to tell.
    let _ = print::out(&format!("cargo::{key}={value}\n"));
}
