//! Every command that reads a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use ndarray::{ArrayD, Axis, IxDyn};
use ndarray_npy::{NpzWriter, read_npy, write_npy};

use crate::common::{ARENITE, Bench, PACK, digits, done};

/// A command that reads a file from wherever it is told to, with its results on standard output.
pub(crate) struct Reader {
    pub(crate) file: PathBuf,
    pub(crate) from: Box<dyn Fn(&Path) -> Command>,
}

/// Every input of every command.
pub(crate) fn readers(bench: &Bench) -> Vec<Reader> {
    for file in ["mlp.trace.json", "mlp.safetensors", "mlp.samples.safetensors"] {
        fs::copy(digits(file), bench.path(file)).expect("copied");
    }
    let (trace, weights) = (bench.path("mlp.trace.json"), bench.path("mlp.safetensors"));
    let (labels, buffers, npz, reference) = (
        bench.path("labels.txt"),
        bench.path("b.csv"),
        bench.path("w.npz"),
        bench.path("r.npz"),
    );
    fs::write(&labels, "zero\none\n").expect("written");
    let npu = bench.path("npu.toml");
    let declared = "name = 'npu'\nversion = 1\nkernels = 'portable'\noperators = ['linear']\n";
    fs::write(&npu, declared).expect("written");
    fs::write(&buffers, "id,lower,upper,size\na,0,2,100\nb,1,3,50\n").expect("written");
    write_npz(&npz, &parameters());
    let model = bench.packed("mlp");
    let (x, one, right) = (
        digits("test_images.npy"),
        bench.path("one.npy"),
        digits("test_labels.npy"),
    );
    let images: ArrayD<f32> = read_npy(&x).expect("committed");
    let image = images.index_axis(Axis(0), 3).to_owned();
    write_npy(&one, &image).expect("written");
    let logits = bench.path("logits.npy");
    let mut command = Command::new(ARENITE);
    command
        .arg("run")
        .arg(&model)
        .arg("--input")
        .arg(&one)
        .arg("--output")
        .arg(&logits);
    done(command.output().expect("it starts"));
    write_npz(
        &reference,
        &[
            ("image".into(), image),
            ("logits".into(), read_npy(&logits).expect("written")),
        ],
    );

    let folder = bench.path("");
    let reader = |file: &Path, program: &'static str, words: &[&dyn AsRef<std::ffi::OsStr>]| {
        let words: Vec<std::ffi::OsString> = words.iter().map(|word| word.as_ref().into()).collect();
        let folder = folder.clone();
        Reader {
            file: file.to_path_buf(),
            from: Box::new(move |place| {
                let mut command = Command::new(program);
                let word = |word: &std::ffi::OsString| if word == "HERE" { place.into() } else { word.clone() };
                command.args(words.iter().map(word)).current_dir(&folder);
                command
            }),
        }
    };
    vec![
        reader(&trace, PACK, &[&"HERE", &"-o", &"-"]),
        reader(&labels, PACK, &[&trace, &"--labels", &"HERE", &"-o", &"-"]),
        reader(&npu, PACK, &[&trace, &"--accelerator", &"HERE", &"-o", &"-"]),
        reader(&weights, PACK, &[&trace, &"--weights", &"HERE", &"-o", &"-"]),
        reader(&npz, PACK, &[&trace, &"--weights", &"HERE", &"-o", &"-"]),
        reader(&one, PACK, &[&trace, &"--self-test", &"HERE", &"-o", &"-"]),
        reader(&reference, PACK, &[&trace, &"--self-test", &"HERE", &"-o", &"-"]),
        reader(
            &one,
            PACK,
            &[&trace, &"--dtype", &"int8", &"--calibrate", &"HERE", &"-o", &"-"],
        ),
        reader(&trace, ARENITE, &[&"weights", &"HERE", &"--seed", &"7", &"-o", &"-"]),
        reader(&buffers, ARENITE, &[&"plan", &"HERE", &"-o", &"-"]),
        reader(&model, ARENITE, &[&"inspect", &"HERE", &"--json"]),
        reader(&model, ARENITE, &[&"verify", &"HERE", &"--json"]),
        reader(&model, ARENITE, &[&"run", &"HERE", &"--input", &x, &"--json"]),
        reader(&x, ARENITE, &[&"run", &model, &"--input", &"HERE", &"--json"]),
        reader(
            &x,
            ARENITE,
            &[&"eval", &model, &"--inputs", &"HERE", &"--labels", &right],
        ),
        reader(
            &right,
            ARENITE,
            &[&"eval", &model, &"--inputs", &x, &"--labels", &"HERE"],
        ),
        reader(
            &right,
            ARENITE,
            &[
                &"eval",
                &model,
                &"--inputs",
                &x,
                &"--labels",
                &right,
                &"--reference",
                &"HERE",
            ],
        ),
        reader(&model, ARENITE, &[&"compare", &"HERE", &model, &"--json"]),
        reader(&model, ARENITE, &[&"compare", &model, &"HERE", &"--json"]),
        reader(
            &x,
            ARENITE,
            &[&"compare", &model, &model, &"--input", &"HERE", &"--json"],
        ),
        reader(&reference, ARENITE, &[&"diff", &model, &"HERE", &"--json"]),
        reader(
            &x,
            ARENITE,
            &[&"diff", &model, &"--float", &model, &"--inputs", &"HERE", &"--json"],
        ),
        reader(
            &model,
            ARENITE,
            &[&"diff", &model, &"--float", &"HERE", &"--inputs", &x, &"--json"],
        ),
        reader(
            &one,
            ARENITE,
            &[&"diff", &model, &reference, &"--input", &"HERE", &"--json"],
        ),
    ]
}

/// The parameters of the digit network `mlp`.
pub(crate) fn parameters() -> Vec<(String, ArrayD<f32>)> {
    let bytes = fs::read(digits("mlp.safetensors")).expect("committed");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("committed");
    let arrays = file.tensors().into_iter().map(|(name, tensor)| {
        let values = tensor
            .data()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&raw| f32::from_le_bytes(raw));
        let array = ArrayD::from_shape_vec(IxDyn(tensor.shape()), values.collect());
        (name, array.expect("its own shape"))
    });
    arrays.collect()
}

pub(crate) fn write_npz(path: &Path, arrays: &[(String, ArrayD<f32>)]) {
    let mut npz = NpzWriter::new_compressed(File::create(path).expect("made"));
    for (name, array) in arrays {
        npz.add_array(name.as_str(), array).expect("written");
    }
    npz.finish().expect("written");
}
