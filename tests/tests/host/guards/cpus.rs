//! Features that a core lacks, as its program states it: a file that wants them is refused by name, and no other file is.

use arenite::{Backend, Cpu, Lack};

use super::*;

/// Files of all targets: the first step of the backend that is left out is named, and a file without one loads.
#[test]
fn instructions_that_the_core_lacks_are_refused_by_name() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_wide");
    let folder = tempfile::tempdir().expect("a folder");
    let mut refused = std::collections::BTreeSet::new();
    for name in ["wide_conv_odd", "wide_add_pixels", "wide_linear_odd"] {
        let path = models.join(name).with_extension("tflite");
        for target in Target::ALL {
            let file = packed(&path, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
            let backends: Vec<Backend> = file
                .view()
                .expect("a view")
                .steps()
                .expect("steps")
                .iter()
                .map(|step| step.kernel().backend())
                .collect();
            for &backend in Backend::ALL {
                let cpu = Cpu::COMPILED.without(backend);
                assert!(!cpu.has(backend));
                let found = Model::load_on(file.bytes(), cpu).map(|_| ());
                match backends.iter().position(|&of| of == backend) {
                    None => assert_eq!(found, Ok(()), "{name} for {target:?} without {backend:?}"),
                    Some(at) => {
                        let Err(LoadError::Cpu {
                            lack: Lack::Kernel { step, kernel },
                        }) = found
                        else {
                            panic!("{name} for {target:?} without {backend:?}: {found:?}");
                        };
                        assert_eq!((step as usize, kernel.backend()), (at, backend));
                        let said = found.expect_err("refused").to_string();
                        let named = format!(
                            "step {at} needs the kernel {}, and this core has not the instructions of `{}`",
                            kernel.name(),
                            backend.name()
                        );
                        assert!(said.starts_with(&named), "{said}");
                        refused.insert(backend.name());
                    }
                }
            }
            assert!(Model::load_on(file.bytes(), Cpu::COMPILED).is_ok());
        }
    }
    for backend in ["dsp", "mve", "dotprod", "i8mm", "sme", "neon", "rvv", "int", "scalar"] {
        assert!(refused.contains(backend), "{backend}: {refused:?}");
    }
}

/// Refusals of a table of sections: a kind that nobody knows, and a number of a kind that has none.
pub(crate) fn unknown_sections() -> Vec<LoadError> {
    let mut blob = small();
    blob.cores = vec![2, 0];
    let refused = |at: usize, value, kind| {
        let mut file = blob.file();
        file[HEADER_BYTES + at] = value;
        seal(&mut file);
        let error = load(&file).expect_err("a section that nobody knows");
        assert_eq!(error, LoadError::Section { kind });
        error
    };
    load(&blob.file()).expect("a step of two cores");
    vec![refused(0, 9, 9), refused(2, 1, 0x1_0001)]
}

/// The error of a core without the kernel of [`small`]; and fewer cores than a file is for.
pub(super) fn lacking() -> LoadError {
    let mut blob = small();
    let without = Cpu::COMPILED.without(KernelId::UnaryF32.backend());
    let file = blob.file();
    let lacking = Model::load_on(aligned(&file).bytes(), without).map(|_| ());
    let lacking = lacking.expect_err("no scalar kernel");
    let lack = Lack::Kernel {
        step: 0,
        kernel: KernelId::UnaryF32,
    };
    assert_eq!(lacking, LoadError::Cpu { lack });
    blob.cores = vec![3, 0];
    let file = blob.file();
    let on = |cores| Model::load_on(aligned(&file).bytes(), Cpu::COMPILED.with_cores(cores)).map(|_| ());
    let lack = Lack::Cores { needed: 3, given: 2 };
    assert_eq!(on(2), Err(LoadError::Cpu { lack }));
    assert_eq!(
        lack.to_string(),
        "the model is for 3 cores, and 2 are there: pack it with `--cores 2`, or for one"
    );
    assert_eq!(on(3), Ok(()));
    lacking
}
