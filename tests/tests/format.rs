//! The specification of the model file against the code, and an old file against the reader.

use std::path::{Path, PathBuf};

use arenite::{KernelId, LoadError, Target};
use arenite_host::model::{self, ModelFile};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn specification() -> String {
    std::fs::read_to_string(root().join("docs/format.md")).expect("docs/format.md")
}

#[test]
fn the_specification_lists_every_kernel_and_target() {
    let text = specification();
    for kernel in KernelId::ALL {
        let row = format!("| {} | `{}` | {:?} |", *kernel as u8, kernel.name(), kernel.backend());
        assert!(text.contains(&row), "docs/format.md lacks `{row}`");
    }
    for target in Target::ALL {
        assert!(
            text.contains(&format!("{} {}", target as u8, target.name())),
            "{target:?}"
        );
    }
    assert!(text.contains(&format!("format version {}", arenite::FORMAT_VERSION)));
}

/// Fields are encoded in the order of their declaration, so the declarations are the format.
#[test]
fn the_specification_lists_every_field_in_order() {
    let text = specification();
    let mut structures = 0;
    for entry in std::fs::read_dir(root().join("core/src/ops")).expect("the operators") {
        let path = entry.expect("an entry").path();
        let source = std::fs::read_to_string(&path).expect("a source file");
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let mut rest = source.as_str();
        while let Some(at) = rest.find("pub struct ") {
            let (before, after) = rest.split_at(at);
            let attributes = before.rsplit("\n\n").next().unwrap_or_default();
            let (name, body) = after["pub struct ".len()..]
                .split_once([' ', ';', '(', '<'])
                .expect("a structure");
            rest = body;
            if !attributes.contains("Serialize") {
                continue;
            }
            let body = body.split("\n}").next().unwrap_or_default();
            // Operators are declared over places; in the file these are slots.
            let fields: Vec<String> = body
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("pub ")?.strip_suffix([',', ';']))
                .map(|field| field.replace("Option<P>", "Option<Slot>").replace("<P>", ""))
                .map(|field| match field.strip_suffix(": P") {
                    Some(name) => format!("`{name}: Slot`"),
                    None => format!("`{field}`"),
                })
                .collect();
            let line = format!("- `{name}` (`core/src/ops/{file}`): {}", fields.join(", "));
            assert!(text.contains(&line), "docs/format.md lacks this line:\n{line}");
            structures += 1;
        }
    }
    assert!(structures > 20);
}

/// A file of the first release: it loads and gives the same numbers, or is refused with its version.
#[test]
fn an_old_model_loads_or_is_refused_by_version() {
    let path = root().join("tests/models/compat/mlp-v1.bin");
    let file = ModelFile::open(&path).expect("a committed file");
    let mut aligned = model::Aligned::new(file.bytes().len());
    aligned.bytes().copy_from_slice(file.bytes());
    match arenite::Model::load(aligned.bytes()) {
        Err(LoadError::Version { found, supported }) => {
            assert!((found, supported) == (1, arenite::FORMAT_VERSION) && supported > 1)
        }
        Err(other) => panic!("{other:?}"),
        Ok(model) => {
            let read =
                |name: &str| std::fs::read(root().join("tests/models/compat").join(name)).expect("a committed file");
            let results = model::run(&model, &[vec![read("input.f32")]], false, &mut |_, _, _| {}).expect("runs");
            let error = arenite_host::compare::relative(arenite::DType::F32, &results[0][0], &read("output.f32"));
            assert!(error <= 1e-5, "differs by {error:e}");
        }
    }
}
