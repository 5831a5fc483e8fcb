//! How every command reads its inputs: files, pipes and `-` alike, once, and no further than they may reach.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ndarray::{ArrayD, IxDyn};

use crate::common::{ARENITE, Bench, PACK, digits, done, refused, run};
use crate::readers::{parameters, readers, write_npz};

/// Runs a command with bytes on its standard input.
fn fed(mut command: Command, bytes: Vec<u8>) -> Output {
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A program may end before it has read everything.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().expect("ended");
    feeder.join().expect("fed");
    output
}

#[test]
fn a_pipe_and_a_dash_give_what_the_file_gives() {
    let bench = Bench::new();
    for reader in readers(&bench) {
        let bytes = fs::read(&reader.file).expect("readable");
        let expected = (reader.from)(&reader.file).output().expect("it starts");
        assert_eq!(
            expected.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&expected.stderr)
        );
        let dash = fed((reader.from)(Path::new("-")), bytes.clone());
        assert_eq!(dash.status.code(), Some(0), "{}", String::from_utf8_lossy(&dash.stderr));
        assert!(dash.stdout == expected.stdout, "{:?} from `-`", reader.file);
        if cfg!(unix) {
            let pipe = bench.path("pipe");
            done(run("mkfifo", &[&pipe]));
            let command = (reader.from)(&pipe);
            let feeder = std::thread::spawn(move || fs::write(pipe, bytes).expect("fed"));
            let mut command = command;
            let output = command.output().expect("it starts");
            assert_eq!(
                output.status.code(),
                Some(0),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.stdout == expected.stdout, "{:?} from a pipe", reader.file);
            feeder.join().expect("fed");
            fs::remove_file(bench.path("pipe")).expect("removed");
        }
    }
}

#[test]
fn a_folder_and_an_absent_file_are_named() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).expect("made");
    for reader in readers(&bench) {
        for name in ["folder", "absent"] {
            let message = refused((reader.from)(&bench.path(name)).output().expect("it starts"), 1);
            // Samples may be the files of a folder; this one has none.
            let said = ["cannot read", "it is a directory", "the folder holds no sample"];
            let reason = said.iter().any(|said| message.contains(said));
            assert!(message.contains(&format!("/{name}")) && reason, "{message}");
        }
        // Any text is a list of labels.
        if reader.file.ends_with("labels.txt") {
            continue;
        }
        let message = refused(fed((reader.from)(Path::new("-")), b"garbage".to_vec()), 1);
        assert!(message.contains("stdin"), "{message}");
    }
}

#[test]
#[cfg(unix)]
fn an_input_without_end_is_an_error() {
    let bench = Bench::new();
    let readers = readers(&bench);
    // One that is read into memory, one that is read at many places.
    for reader in [&readers[0], &readers[6]] {
        let message = refused((reader.from)(Path::new("/dev/zero")).output().expect("it starts"), 1);
        assert!(
            message.contains("/dev/zero: it does not end within 1073741824 bytes"),
            "{message}"
        );
    }
}

#[test]
fn standard_input_is_one_input() {
    let bench = Bench::new();
    let model = bench.packed("mlp");
    for (program, arguments) in [
        (PACK, &["-", "-", "-o", "m"][..]),
        (ARENITE, &["run", "-", "--input", "-"]),
    ] {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(bench.path(""));
        let bytes = match program {
            ARENITE => fs::read(&model).expect("written"),
            _ => fs::read(digits("mlp.trace.json")).expect("committed"),
        };
        for file in ["mlp.safetensors", "mlp.samples.safetensors"] {
            fs::copy(digits(file), bench.path(file)).expect("copied");
        }
        let message = refused(fed(command, bytes), 2);
        assert!(message.contains("`-`"), "{message}");
    }
}

#[test]
#[cfg(unix)]
fn an_output_is_not_the_file_on_standard_input() {
    let bench = Bench::new();
    for reader in readers(&bench)
        .iter()
        .filter(|reader| reader.file.ends_with("mlp.trace.json"))
    {
        let mut command = (reader.from)(Path::new("-"));
        let before = fs::read(&reader.file).expect("readable");
        // The last argument is the output.
        let words: Vec<_> = command.get_args().map(std::ffi::OsStr::to_os_string).collect();
        command = Command::new(command.get_program());
        command
            .args(&words[..words.len() - 1])
            .arg(&reader.file)
            .current_dir(bench.path(""));
        let stdin = File::open(&reader.file).expect("readable");
        refused(command.stdin(stdin).output().expect("it starts"), 2);
        assert_eq!(fs::read(&reader.file).expect("there"), before);
    }
}

/// The parts of a `.npy` file: a header that claims `shape`, and `count` elements.
fn claimed(shape: &str, count: usize) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    header.push_str(&" ".repeat(127 - 10 - header.len()));
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [
        &b"\x93NUMPY\x01\x00"[..],
        &length,
        header.as_bytes(),
        &vec![0; 4 * count],
    ]
    .concat()
}

#[test]
fn an_array_that_claims_more_than_it_holds_is_an_error() {
    let bench = Bench::new();
    readers(&bench);
    let (trace, model) = (bench.path("mlp.trace.json"), bench.path("mlp.bin"));
    let (npy, npz) = (bench.path("large.npy"), bench.path("large.npz"));
    for shape in [
        "(1099511627776,)",
        "(4294967296, 4294967296)",
        "(9223372036854775807, 0)",
        "(18446744073709551615,)",
    ] {
        let content = claimed(shape, 2);
        fs::write(&npy, &content).expect("written");
        // An archive of one stored file: its header, the file, the directory and its end.
        let mut names = Vec::new();
        for (name, _) in parameters()
            .into_iter()
            .chain([("image".to_string(), ArrayD::zeros(IxDyn(&[])))])
        {
            names.push((format!("{name}.npy"), content.clone()));
        }
        fs::write(&npz, stored_zip(&names)).expect("written");
        let commands = [
            (
                &npy,
                vec![
                    ARENITE.into(),
                    "run".into(),
                    model.clone(),
                    "--input".into(),
                    npy.clone(),
                ],
            ),
            (
                &npz,
                vec![
                    PACK.into(),
                    trace.clone(),
                    "--weights".into(),
                    npz.clone(),
                    "-o".into(),
                    bench.path("m"),
                ],
            ),
            (&npz, vec![ARENITE.into(), "diff".into(), model.clone(), npz.clone()]),
        ];
        for (file, words) in commands {
            let message = refused(run(&words[0].to_string_lossy(), &words[1..]), 1);
            let digits = shape
                .trim_matches(['(', ')', ','])
                .split(',')
                .next()
                .unwrap_or_default();
            assert!(
                message.contains(&*file.to_string_lossy()) && message.contains(digits),
                "{shape}: {message}"
            );
        }
    }
}

/// A zip archive of stored entries.
pub(crate) fn stored_zip(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let at = bytes.len() as u32;
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc32fast::hash(content).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        bytes.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), content].concat());
        directory.extend(
            [
                &b"PK\x01\x02\x14\x00"[..],
                &common,
                &[0; 10],
                &at.to_le_bytes(),
                name.as_bytes(),
            ]
            .concat(),
        );
    }
    let count = (files.len() as u16).to_le_bytes();
    let (start, length) = (
        (bytes.len() as u32).to_le_bytes(),
        (directory.len() as u32).to_le_bytes(),
    );
    let end = [&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &length, &start, &[0, 0]].concat();
    [bytes, directory, end].concat()
}

/// A safetensors file of a header and data bytes.
fn safetensors_file(header: &str, data: usize) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &vec![0; data],
    ]
    .concat()
}

#[test]
fn weights_files_that_contradict_themselves_are_refused() {
    let bench = Bench::new();
    readers(&bench);
    let trace = bench.path("mlp.trace.json");
    let weights = bench.path("bad.weights");
    let entry = |name: &str, from: usize, to: usize| {
        format!(
            r#""{name}":{{"dtype":"F32","shape":[{}],"data_offsets":[{from},{to}]}}"#,
            (to - from) / 4
        )
    };
    let table = |entries: &[String]| format!("{{{}}}", entries.join(","));
    let array = |name: &str| (name.to_string(), claimed("(2,)", 2));
    let mut overlapping = stored_zip(&[array("a.npy"), array("b.npy")]);
    let second = overlapping
        .windows(5)
        .rposition(|part| part == b"b.npy")
        .expect("listed");
    // Its place in the archive stands before its name.
    overlapping[second - 4..second].copy_from_slice(&[0; 4]);
    let mut outside = stored_zip(&[array("a.npy")]);
    let size = outside
        .windows(4)
        .rposition(|part| part == b"PK\x01\x02")
        .expect("listed")
        + 20;
    outside[size..size + 8].copy_from_slice(&[0xf0; 8]);
    let mut bomb = stored_zip(&[array("a.npy")]);
    let method = bomb.windows(4).rposition(|part| part == b"PK\x01\x02").expect("listed") + 10;
    bomb[method] = 8;
    bomb[method + 14..method + 18].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    let twice = |name: &str| vec![format!("`{name}`"), "twice".to_string()];
    let both = |what: &str| vec!["`a".to_string(), "`b".to_string(), what.to_string()];
    for (content, said) in [
        (
            safetensors_file(&table(&[entry("a", 0, 8), entry("a", 8, 16)]), 16),
            twice("a"),
        ),
        (
            safetensors_file(&table(&[entry("a", 0, 8), entry("b", 4, 12)]), 12),
            both("overlap"),
        ),
        (
            safetensors_file(&table(&[entry("a", 0, 8), entry("b", 0, 8)]), 8),
            both("overlap"),
        ),
        (
            safetensors_file(&table(&[entry("a", 0, 8), entry("b", 12, 20)]), 20),
            vec!["4 bytes".into(), "`b`".into()],
        ),
        (
            safetensors_file(&table(&[entry("a", 0, 8)]), 12),
            vec!["4 bytes at the end".into()],
        ),
        (stored_zip(&[array("a.npy"), array("a.npy")]), twice("a.npy")),
        (stored_zip(&[array("a.npy"), array("a")]), twice("a")),
        (overlapping, both("overlap")),
        (outside, vec!["`a.npy`".into(), "does not lie within".into()]),
        (bomb, vec!["`a.npy` claims 2147483647 bytes in 136".into()]),
    ] {
        fs::write(&weights, content).expect("written");
        let words = [
            &trace,
            Path::new("--weights"),
            &weights,
            Path::new("-o"),
            &bench.path("m"),
        ];
        let message = refused(run(PACK, &words), 1);
        assert!(message.contains("bad.weights"), "{message}");
        said.iter()
            .for_each(|said| assert!(message.contains(said), "{said}: {message}"));
    }
}

#[test]
fn weights_that_are_no_numbers_are_named_with_their_file() {
    let bench = Bench::new();
    readers(&bench);
    let trace = bench.path("mlp.trace.json");
    let mut arrays = parameters();
    let (_, bias) = arrays
        .iter_mut()
        .find(|(name, _)| name == "fc1.bias")
        .expect("a parameter");
    bias[[5]] = f32::NAN;
    let npz = bench.path("bad.npz");
    write_npz(&npz, &arrays);
    let safetensors = bench.path("bad.safetensors");
    let mut bytes = fs::read(digits("mlp.safetensors")).expect("committed");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("committed");
    let data = file.tensor("fc1.bias").expect("a parameter").data();
    let at = data.as_ptr().addr() - bytes.as_ptr().addr() + 20;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&safetensors, bytes).expect("written");
    for weights in [npz, safetensors] {
        let words = [
            &trace,
            Path::new("--weights"),
            &weights,
            Path::new("-o"),
            &bench.path("out.bin"),
        ];
        let message = refused(run(PACK, &words), 1);
        let name = weights.to_string_lossy().into_owned();
        for said in [&name[..], "element 5", "`fc1.bias`", "NaN"] {
            assert!(message.contains(said), "{said}: {message}");
        }
        assert!(!message.contains("out.bin"), "{message}");
    }
}
