//! Files of the shared data that were more steps than they are: as many as stated, with ONNX Runtime's results.

use arenite::{DType, Target};
use arenite_host::model::run;
use arenite_tests::golden::{Archive, difference, packed};
use arenite_tests::{oracle, shared, skip};

/// The file, its steps, and whether the results are there.
const FILES: [(&str, usize, bool); 4] = [
    ("conv1d_batchnorm_relu_twice", 4, true),
    ("conv1d_relu", 5, false),
    ("gemm_batchnorm_relu", 1, true),
    ("calibrate_div_channel", 1, true),
];

#[test]
fn chains_of_the_shared_files_are_a_step_each() {
    let Some(folder) = shared()
        .map(|shared| shared.join("data/defects"))
        .filter(|folder| folder.is_dir())
    else {
        return skip("chains_of_the_shared_files_are_a_step_each", "no shared data");
    };
    for (name, steps, results) in FILES {
        let out = tempfile::tempdir().expect("a folder");
        let input = folder.join(name).with_extension("onnx");
        let file = packed(&input, out.path(), Target::Portable).unwrap_or_else(|e| panic!("{name}: {e}"));
        let model = file.load().expect("it loads");
        assert_eq!(model.header().step_count as usize, steps, "{name}");
        if !results {
            continue;
        }
        let mut archive = Archive::open(&input.with_extension("npz"));
        let key = archive
            .names()
            .into_iter()
            .find(|name| name.starts_with("in_"))
            .expect("an input");
        let (inputs, expected) = (archive.runs(&key).0, archive.runs("out_0").0);
        // The last ones, where results are of some alone.
        let inputs = &inputs[inputs.len() - expected.len()..];
        let runs: Vec<Vec<Vec<u8>>> = inputs.iter().map(|input| vec![input.clone()]).collect();
        let found = run(&model, &runs, true, &mut |_, _, _| {}).expect("it runs");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(difference(DType::F32, &found[0], expected), None, "{name}");
        }
        oracle::compared("ONNX Runtime", found.len(), 1);
    }
}
