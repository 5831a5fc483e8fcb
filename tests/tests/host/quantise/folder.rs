//! `--calibrate FOLDER`: pictures and recordings against the same samples as arrays, to the byte, and files that are refused by name.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::DType;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::{Activations, Request};
use arenite_host::{Error, ErrorKind};
use arenite_tests::png_file::Picture;
use ndarray::{Array, ArrayD, IxDyn};
use ndarray_npy::write_npy;
use serde_json::json;

use crate::quantise::network::Network;

const ROWS: usize = 6;
const COLUMNS: usize = 9;

/// A network on pictures of three channels or one, in the trace's order: channels first.
fn network(channels: usize) -> Network {
    let mut network = Network::new(31, &[1, channels, ROWS, COLUMNS]);
    let y = network.conv2d("x", [4, channels, 3, 2], json!({}));
    let y = network.push("relu", &[&y], json!({}));
    network.conv2d(&y, [3, 4, 2, 2], json!({}));
    network
}

fn options(trace: &Path, samples: &Path, output: &str) -> Options {
    let preprocess = "u8 mean=120 scale=0.0078125".parse().expect("a specification");
    Options {
        preprocess: Some(preprocess),
        ..plain(trace, samples, output)
    }
}

fn plain(trace: &Path, samples: &Path, output: &str) -> Options {
    Options {
        dtype: Some(DType::I8),
        quantize: Some(Request {
            samples: samples.to_path_buf(),
            activations: Activations::Int8,
            ..Request::default()
        }),
        ..Options::new(trace, trace.with_file_name(output))
    }
}

fn bytes(options: &Options) -> (Vec<u8>, usize, Vec<String>) {
    let packed = pack(options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    let samples = packed.summary.quantization.expect("what was done").samples;
    (
        fs::read(&options.output).expect("just written"),
        samples,
        packed.warnings,
    )
}

fn pixel(picture: usize, at: usize) -> u8 {
    (picture * 83 + at * 41 + at * at * 7 % 199) as u8
}

/// Pictures as files, in two folders, and as an array in the order of their paths.
fn pictures(folder: &Path, channels: usize) -> [PathBuf; 2] {
    let files = folder.join("pictures");
    fs::create_dir_all(files.join("a")).expect("made");
    let each = ROWS * COLUMNS * channels;
    let mut all = Vec::new();
    for (picture, name) in ["a/2.PNG", "a/7.png", "b.png", "c.png", "d.png"]
        .into_iter()
        .enumerate()
    {
        let pixels: Vec<u8> = (0..each).map(|at| pixel(picture, at)).collect();
        all.extend_from_slice(&pixels);
        Picture::new([COLUMNS as u32, ROWS as u32], channels, pixels).write(&files.join(name));
    }
    fs::write(files.join("notes.txt"), "no picture").expect("written");
    fs::write(files.join(".hidden.png"), "no picture").expect("written");
    let array = folder.join("pictures.npy");
    let shape = (5, ROWS, COLUMNS, channels);
    write_npy(&array, &Array::from_shape_vec(shape, all).expect("as many")).expect("written");
    [files, array]
}

#[test]
fn pictures_of_a_folder_are_an_arrays() {
    for channels in [1, 3] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = network(channels).write(folder.path());
        let [files, array] = pictures(folder.path(), channels);
        let (from_files, samples, warnings) = bytes(&options(&trace, &files, "files"));
        let (from_array, as_many, _) = bytes(&options(&trace, &array, "array"));
        assert!(from_files == from_array && (samples, as_many) == (5, 5));
        assert!(
            warnings.iter().any(|warning| warning.contains("1 files are no PNG")),
            "{warnings:?}"
        );
        // Another order of the same pictures is another calibration, so the comparison sees the order.
        fs::rename(files.join("d.png"), files.join("a/0.png")).expect("moved");
        fs::rename(files.join("b.png"), files.join("z.png")).expect("moved");
        let [first, second] = [1, 3].map(|threads| {
            let mut options = options(&trace, &files, "threads");
            if let Some(request) = &mut options.quantize {
                request.threads = Some(threads);
            }
            bytes(&options).0
        });
        assert!(first == second);
    }
}

#[test]
fn a_jpeg_is_a_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = network(3).write(folder.path());
    let files = folder.path().join("pictures");
    fs::create_dir(&files).expect("made");
    // Six rows of nine pixels, 200 and 40 in each channel.
    fs::write(
        files.join("1.jpg"),
        include_bytes!("../../../models/pictures/flat-200.jpg"),
    )
    .expect("written");
    fs::write(
        files.join("2.jpeg"),
        include_bytes!("../../../models/pictures/flat-40.jpg"),
    )
    .expect("written");
    let array = folder.path().join("flat.npy");
    let values = |at: [usize; 4]| if at[0] == 0 { 200_u8 } else { 40 };
    let shape = (2, ROWS, COLUMNS, 3);
    write_npy(
        &array,
        &Array::from_shape_fn(shape, |(n, y, x, c)| values([n, y, x, c])),
    )
    .expect("written");
    // One grey all over is what it was, for it has one coefficient.
    assert!(bytes(&options(&trace, &files, "files")).0 == bytes(&options(&trace, &array, "array")).0);
}

/// A WAV file by its definition.
fn wav(channels: u16, rate: u32, values: &[i16]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate * 2 * u32::from(channels)).to_le_bytes());
    file.extend((2 * channels).to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn sound(clip: usize, len: usize) -> Vec<i16> {
    (0..len)
        .map(|at| (((clip * 7 + at * 13) as f64 * 0.37).sin() * 20_000.0) as i16)
        .collect()
}

/// Twenty values a run.
fn listener() -> Network {
    let mut network = Network::new(37, &[1, 20]);
    let weights = network.parameter(&[6, 20], |v| 0.3 * v);
    let bias = network.parameter(&[6], |v| 0.1 * v);
    network.push("linear", &["x", &weights, &bias], json!({}));
    network
}

#[test]
fn recordings_are_cut_into_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = listener().write(folder.path());
    let files = folder.path().join("clips");
    fs::create_dir(&files).expect("made");
    let mut all: Vec<f32> = Vec::new();
    for (clip, len) in [20, 65, 47].into_iter().enumerate() {
        let values = sound(clip, len);
        fs::write(files.join(format!("{clip}.wav")), wav(1, 16_000, &values)).expect("written");
        all.extend(values[..len / 20 * 20].iter().map(|&value| f32::from(value) / 32768.0));
    }
    let array = folder.path().join("clips.npy");
    let runs = ArrayD::from_shape_vec(IxDyn(&[6, 1, 20]), all).expect("as many");
    write_npy(&array, &runs).expect("written");
    let (from_files, samples, _) = bytes(&plain(&trace, &files, "files"));
    assert!(from_files == bytes(&plain(&trace, &array, "array")).0 && samples == 6);
}

#[test]
fn files_that_are_not_the_networks_input_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("samples");
    let trace = network(3).write(folder.path());
    let refused = |options: &Options, words: &[&str]| {
        let error: Error = pack(options, &mut |_, _, _| {}).map(|_| ()).expect_err("it is wrong");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
        assert!(!options.output.exists());
    };
    let with = |name: &str, content: &[u8]| {
        let _ = fs::remove_dir_all(&files);
        fs::create_dir(&files).expect("made");
        fs::write(files.join(name), content).expect("written");
    };
    let picture = |name: &str, wide: u32, high: u32| {
        let black = vec![0; wide as usize * high as usize * 3];
        Picture::new([wide, high], 3, black).write(&files.join(name));
    };
    let wanted = options(&trace, &files, "net.arenite");
    with("notes.txt", b"nothing");
    refused(&wanted, &["no sample", ".png"]);
    with("broken.png", b"\x89PNG\r\n\x1a\nbroken");
    refused(&wanted, &["broken.png", "no picture"]);
    with("notes.txt", b"nothing");
    picture("a.png", 9, 6);
    picture("b.png", 12, 5);
    refused(&wanted, &["b.png", "5 rows of 12 pixels", "6 rows of 9", "size=5x12"]);
    fs::write(files.join("c.wav"), wav(1, 8000, &sound(0, 30))).expect("written");
    refused(&wanted, &["c.wav", "pictures and recordings"]);
    with("notes.txt", b"nothing");
    picture("a.png", 9, 6);
    refused(&plain(&trace, &files, "net.arenite"), &["a.png", "--preprocess 'u8"]);
    with("c.wav", &wav(1, 8000, &sound(0, 30)));
    refused(&wanted, &["c.wav", "without u8"]);

    let trace = listener().write(folder.path());
    let wanted = plain(&trace, &files, "net.arenite");
    with("short.wav", &wav(1, 8000, &sound(0, 19)));
    refused(&wanted, &["short.wav", "19 values", "at least 20"]);
    with("stereo.wav", &wav(2, 8000, &sound(0, 60)));
    refused(&wanted, &["stereo.wav", "2 channels", "one"]);
    with("a.wav", &wav(1, 8000, &sound(0, 30)));
    fs::write(files.join("b.wav"), wav(1, 16_000, &sound(0, 30))).expect("written");
    refused(&wanted, &["b.wav", "16000 values a second", "8000", "a.wav"]);
    with("a.wav", b"RIFF but nothing else");
    refused(&wanted, &["a.wav", "no recording"]);
}
