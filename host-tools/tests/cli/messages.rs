//! Errors and warnings as users provoke them, to be read from top to bottom: `messages.txt`.
//!
//! A line there that begins with `~` makes a file from another: `FROM > TO: OLD => NEW` puts one text in the place of another, `FROM > TO: cut N` keeps N
//! bytes, `FROM > TO: grow N` makes them N with zeros, `FROM > TO: flip N` changes byte N, `FROM > TO: byte N = V` makes it V. `TO: TEXT` is all of it
//! (`\n` and `\xFF` as in Rust), `TO: N times TEXT` that N times with its number for `#`, `TO: onnx TEXT` what `onnx.rs` makes of it, `TO: zip NAMES` an
//! archive of empty files, `TO: pack INPUT` a model, `TO: train MODEL` a state. Folders in TO are made. A line with `$` is a command; what it prints stands
//! below it, with its status, and `ARENITE_BLESS=1` writes that anew. Lines with `#` are headings.

use std::fs;
use std::path::{Path, PathBuf};

use arenite_host::metadata::{Channels, CutStep, Metadata};
use arenite_host::model::ModelFile;
use ndarray::{Array2, ArrayD, Axis, IxDyn, Slice};
use ndarray_npy::{NpzWriter, read_npy, write_npy};

use crate::common::{Bench, PACK, digits, done, models, run};
use crate::inputs::stored_zip;
use crate::onnx;
use crate::readers::write_npz;
use crate::search::bases;
use crate::transcript::{held, told};

/// Words that tell of a developer's mind, not of a user's file.
const DEVELOPERS: [&str; 15] = [
    "Some(",
    "None",
    "Ok(",
    "Err(",
    "usize",
    "u32",
    "invalid digit",
    "EOF",
    "unwrap",
    "panicked",
    "TensorId",
    "NaN)",
    "::",
    "os error",
    "internal error",
];

/// Change of the parameter of this name.
type Change = dyn Fn(&str, ArrayD<f32>) -> Option<ArrayD<f32>>;

/// The files that the commands of the record start from.
fn files(bench: &Bench) {
    for name in [
        "mlp.trace.json",
        "mlp.safetensors",
        "mlp.samples.safetensors",
        "test_images.npy",
    ] {
        fs::copy(digits(name), bench.path(name)).expect("copied");
    }
    for name in ["digits.trace.json", "digits.safetensors", "digits.samples.safetensors"] {
        fs::copy(digits(name), bench.path(name)).expect("copied");
    }
    let corpus = models().join("../corpus");
    for dialect in ["chainer", "keras_order", "megengine", "rects", "tf_shapes", "native"] {
        fs::copy(
            corpus.join(dialect).join("small"),
            bench.path(&format!("{dialect}.txt")),
        )
        .expect("copied");
    }
    for name in ["conv_1x1", "conv_f32", "svdf_i8_state"] {
        let name = format!("{name}.tflite");
        fs::copy(models().join("tflite_ops").join(&name), bench.path(&name)).expect("copied");
    }
    for name in ["conv_grouped", "splits"] {
        let file = corpus.join("onnx").join(name);
        fs::copy(file, bench.path(&format!("{name}.onnx"))).expect("copied");
    }
    let images: ArrayD<f32> = read_npy(digits("test_images.npy")).expect("a committed file");
    let few = images.slice_axis(Axis(0), Slice::from(..5)).to_owned();
    let labels: ArrayD<i64> = read_npy(digits("test_labels.npy")).expect("a committed file");
    write_npy(bench.path("few.npy"), &few).expect("written");
    write_npy(bench.path("none.npy"), &ArrayD::<f32>::zeros(IxDyn(&[0, 1, 1, 8, 8]))).expect("written");
    write_npy(
        bench.path("few_labels.npy"),
        &labels.slice_axis(Axis(0), Slice::from(..5)),
    )
    .expect("written");
    write_npy(
        bench.path("far_labels.npy"),
        &(labels.slice_axis(Axis(0), Slice::from(..5)).to_owned() + 20),
    )
    .expect("written");
    write_npy(bench.path("odd.npy"), &Array2::<f32>::zeros((3, 5))).expect("written");
    write_npy(bench.path("bytes.npy"), &few.mapv(|_| 1_u8)).expect("written");
    write_npy(bench.path("nan.npy"), &few.mapv(|_| f32::NAN)).expect("written");
    // One pixel of each image: the rest of a sum stays finite.
    let mut infinite = few.clone();
    infinite
        .axis_chunks_iter_mut(Axis(0), 1)
        .filter_map(|image| image.into_iter().next())
        .for_each(|pixel| *pixel = f32::INFINITY);
    write_npy(bench.path("inf.npy"), &infinite).expect("written");
    let parameters = |change: &Change| -> Vec<(String, ArrayD<f32>)> {
        let shapes = [
            ("fc1.weight", vec![32, 64]),
            ("fc1.bias", vec![32]),
            ("fc2.weight", vec![10, 32]),
            ("fc2.bias", vec![10]),
        ];
        let made = shapes.into_iter().filter_map(|(name, shape)| {
            let array = ArrayD::from_elem(IxDyn(&shape), 0.125);
            Some((name.to_string(), change(name, array)?))
        });
        made.collect()
    };
    write_npz(
        &bench.path("lacking.npz"),
        &parameters(&|name, array| (name != "fc1.bias").then_some(array)),
    );
    let turned = |name: &str, array: ArrayD<f32>| {
        Some(if name == "fc2.weight" {
            array.reversed_axes()
        } else {
            array
        })
    };
    write_npz(&bench.path("turned.npz"), &parameters(&turned));
    let infinite = |name: &str, array: ArrayD<f32>| Some(if name == "fc2.bias" { array / 0.0 } else { array });
    write_npz(&bench.path("infinite.npz"), &parameters(&infinite));
    write_npz(
        &bench.path("reference.npz"),
        &[
            ("image".into(), few.index_axis(Axis(0), 2).to_owned()),
            ("logits".into(), ArrayD::zeros(IxDyn(&[1, 10]))),
            ("conv1".into(), ArrayD::zeros(IxDyn(&[1, 8, 8, 8]))),
            ("relu1".into(), ArrayD::zeros(IxDyn(&[1, 8, 8, 8]))),
        ],
    );
    fs::write(
        bench.path("junk.npz"),
        stored_zip(&[("fc1.bias.npy".to_string(), b"junk".to_vec())]),
    )
    .expect("written");
    let doubled: Vec<(String, ArrayD<f64>)> = parameters(&|_, array| Some(array))
        .into_iter()
        .map(|(name, array)| (name, array.mapv(f64::from)))
        .collect();
    let mut doubles = NpzWriter::new(fs::File::create(bench.path("doubles.npz")).expect("made"));
    for (name, array) in &doubled {
        doubles.add_array(name.as_str(), array).expect("written");
    }
    doubles.finish().expect("written");
    #[cfg(unix)]
    for (link, to) in [("here.bin", "there.bin"), ("there.bin", "here.bin")] {
        std::os::unix::fs::symlink(to, bench.path(link)).expect("linked");
    }
    fs::create_dir(bench.path("folder")).expect("made");
    for name in ["full", "pictures", "recordings", "both"] {
        fs::create_dir(bench.path(name)).expect("made");
    }
    bench.packed("digits");
    let pieces = [
        digits("digits.trace.json"),
        "-o".into(),
        bench.path("pieces.bin"),
        "--region".into(),
        "spi=1M:stream".into(),
    ];
    done(run(PACK, &pieces));
    fs::write(bench.path("names.txt"), "zero\none\n").expect("written");
    let named = [
        digits("digits.trace.json"),
        "-o".into(),
        bench.path("named.bin"),
        "--labels".into(),
        bench.path("names.txt"),
    ];
    done(run(PACK, &named));
    forge(bench);
}

/// Models of the digits whose metadata is not what it was.
fn forge(bench: &Bench) {
    let path = bench.path("digits.bin");
    let model = fs::read(&path).expect("packed");
    let file = ModelFile::open(&path).expect("packed");
    let metadata = file.view().and_then(|view| view.metadata()).expect("packed");
    let old = metadata.encode().expect("encoded");
    let at = model.windows(old.len()).position(|part| part == old);
    let at = at.expect("its metadata");
    let write = |name: &str, new: &[u8]| {
        let mut forged = model.clone();
        // Bytes behind the metadata are not read.
        let place = &mut forged[at..at + old.len()];
        place.fill(0);
        place[..new.len()].copy_from_slice(new);
        arenite::blob::seal(&mut forged);
        fs::write(bench.path(name), forged).expect("written");
    };
    let changed = |change: &dyn Fn(&mut Metadata)| {
        let mut metadata = metadata.clone();
        // Room for the change.
        metadata.input_sha256.clear();
        change(&mut metadata);
        metadata.encode().expect("encoded")
    };
    let mut named = fs::read(bench.path("named.bin")).expect("packed");
    let label = named.windows(5).position(|part| part == b"\x04zero");
    named[label.expect("its labels")] = 0x7f;
    arenite::blob::seal(&mut named);
    fs::write(bench.path("unnamed.bin"), named).expect("written");
    write("unread.bin", &[0xff; 8]);
    write("unsummed.bin", &changed(&|metadata| metadata.summary.clear()));
    write(
        "outside.bin",
        &changed(&|metadata| {
            let tensors = metadata.steps.iter_mut().filter_map(|step| step.completes.as_mut());
            tensors.for_each(|tensor| tensor.slot.offset = 1 << 24);
        }),
    );
    write(
        "channels.bin",
        &changed(&|metadata| {
            metadata.cut.push(CutStep {
                step: 0,
                macs: 0,
                channels: Some(Channels::default()),
            });
        }),
    );
}

/// Brings the files of the tests that a line names, where there are none of these names yet.
fn bring(line: &str, bases: &[(String, PathBuf)], bench: &Bench) {
    for word in line.split_whitespace() {
        if let Some((name, path)) = bases.iter().find(|(name, _)| name == word)
            && !bench.path(name).exists()
        {
            fs::copy(path, bench.path(name)).expect("copied");
            // With the weights and samples that a trace names.
            for beside in ["safetensors", "samples.safetensors"] {
                let name = name.replace("trace.json", beside);
                if name.ends_with(beside) {
                    fs::copy(path.with_file_name(&name), bench.path(&name)).expect("copied");
                }
            }
        }
    }
}

/// Makes the file that a line with `~` asks for.
fn make(line: &str, bench: &Bench) {
    let (names, change) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
    let Some((from, to)) = names.split_once(" > ") else {
        if let Some(words) = change.strip_prefix("pack ") {
            let said = told(&format!("pack {words} -o {names}"), bench);
            assert!(!said.contains("status "), "{said}");
        } else if let Some(words) = change.strip_prefix("train ") {
            let said = told(&format!("arenite train {words} --state-out {names}"), bench);
            assert!(!said.contains("status "), "{said}");
        } else {
            let path = bench.path(names);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, described(change)).expect("written");
        }
        return;
    };
    if let Some(length) = change.strip_prefix("grow ") {
        fs::copy(bench.path(from), bench.path(to)).expect("copied");
        let file = fs::OpenOptions::new().write(true).open(bench.path(to)).expect("there");
        file.set_len(length.parse().expect("a length")).expect("grown");
        return;
    }
    let mut bytes = fs::read(bench.path(from)).unwrap_or_else(|error| panic!("{from}: {error}"));
    if let Some(length) = change.strip_prefix("cut ") {
        bytes.truncate(length.parse().expect("a length"));
    } else if let Some(at) = change.strip_prefix("flip ") {
        bytes[at.parse::<usize>().expect("an index")] ^= 0x40;
    } else if let Some((at, value)) = change.strip_prefix("byte ").and_then(|byte| byte.split_once(" = ")) {
        bytes[at.parse::<usize>().expect("an index")] = value.parse().expect("a byte");
    } else {
        let (old, new) = change.split_once(" => ").expect("OLD => NEW");
        let (old, new) = (unescaped(old), unescaped(new));
        let at = bytes.windows(old.len()).position(|window| window == old);
        let at = at.unwrap_or_else(|| panic!("{from} has no {old:?}"));
        bytes.splice(at..at + old.len(), new);
    }
    fs::write(bench.path(to), bytes).expect("written");
}

/// Returns the bytes of the file that a text describes.
fn described(text: &str) -> Vec<u8> {
    if let Some(model) = text.strip_prefix("onnx ") {
        return onnx::file(model);
    }
    if let Some(names) = text.strip_prefix("zip ") {
        let files: Vec<_> = names.split(' ').map(|name| (name.to_string(), Vec::new())).collect();
        return stored_zip(&files);
    }
    match text.split_once(" times ").map(|(count, text)| (count.parse(), text)) {
        Some((Ok(count), text)) => (0..count)
            .flat_map(|index: usize| unescaped(&text.replace('#', &index.to_string())))
            .collect(),
        _ => unescaped(text),
    }
}

/// A text with `\n` and `\xFF` as in Rust.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        rest = if let Some(behind) = escape.strip_prefix('n') {
            bytes.push(b'\n');
            behind
        } else {
            let hex = escape.strip_prefix('x').and_then(|hex| hex.split_at_checked(2));
            let (hex, behind) = hex.unwrap_or_else(|| panic!("{text}: `\\n` and `\\xFF` alone"));
            bytes.push(u8::from_str_radix(hex, 16).expect("two hexadecimal digits"));
            behind
        };
    }
    bytes.extend(rest.bytes());
    bytes
}

#[test]
fn messages_are_those_on_record() {
    let bench = Bench::new();
    files(&bench);
    let mut unfit = Vec::new();
    let bases = bases();
    held("messages", |line| {
        bring(line, &bases, &bench);
        if let Some(change) = line.strip_prefix("~ ") {
            make(change, &bench);
        }
        match line.strip_prefix("$ ") {
            Some(command) => format!("{line}\n{}", of_a_user(command, &told(command, &bench), &mut unfit)),
            None if line.starts_with(['#', '~']) || line.is_empty() => format!("{line}\n"),
            None => String::new(),
        }
    });
    assert!(unfit.is_empty(), "{}", unfit.join("\n"));
}

/// Returns the text that a command prints, which is a message; `unfit` hears of texts that are none for users.
fn of_a_user(command: &str, text: &str, unfit: &mut Vec<String>) -> String {
    let fails = text.ends_with("status Some(1)\n") || text.ends_with("status Some(2)\n");
    let marks = ["! warning: ", "! assumed: ", "! left out: "];
    let messages = || text.lines().filter(|line| line.starts_with('!'));
    if !fails && !messages().any(|line| marks.iter().any(|mark| line.starts_with(mark))) {
        unfit.push(format!("{command}: it has no message: {text}"));
    }
    for word in DEVELOPERS {
        if messages().any(|line| line.contains(word)) {
            unfit.push(format!("{command}: `{word}` is no word of a user's: {text}"));
        }
    }
    // The figures that a warning comes with stand in the transcript.
    let mut kept = String::new();
    for line in text.lines().filter(|line| line.starts_with(['!', 's'])) {
        kept += line;
        kept.push('\n');
    }
    kept
}

/// A status of success never stands below an error, nor is anything but messages on record.
#[test]
fn the_record_is_of_messages_alone() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/messages.txt");
    let text = fs::read_to_string(file).expect("the record");
    let marks = ["$ ", "! ", "# ", "~ ", "status Some("];
    for line in text.lines() {
        assert!(
            line.is_empty() || marks.iter().any(|mark| line.starts_with(mark)) || line == "!",
            "{line}"
        );
    }
    assert!(
        text.lines().filter(|line| line.starts_with("$ ")).count() >= 100,
        "too few commands"
    );
}
