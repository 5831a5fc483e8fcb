//! Layers that are cut, layers that stay, and pieces that are read while others compute.

use std::path::Path;

use arenite::Target;
use arenite_host::ErrorKind;
use arenite_host::memory::Region;
use arenite_host::model::{Aligned, ModelFile, run};
use arenite_host::pack::{Options, Streamed, pack};
use arenite_host::report::Pieces;
use arenite_stream::{Source, Stream};
use arenite_tests::{digits_options, shared, skip};

use crate::stream::{digits, flash, nor, open, packed, packed_for, traced};

/// Inputs of a model, and what it computes of them.
fn sample(whole: &ModelFile) -> (Vec<u8>, Vec<u8>) {
    let whole = whole.load().expect("it loads");
    let bytes = whole.input(0).and_then(|port| port.bytes()).expect("an input") as usize;
    let input: Vec<u8> = (0..bytes).map(|at| (at * 37 + at / 7) as u8 % 60).collect();
    let outputs = run(&whole, &[vec![input.clone()]], false, &mut |_, _, _| {}).expect("it runs");
    (input, outputs[0][0].clone())
}

/// The memory of a network as a flash whose transfers go on while the core computes.
struct Beside<'f> {
    file: &'f [u8],
    /// Pieces that were read while another one computed, and with the core waiting.
    reads: [usize; 2],
    /// The transfer beside some work that fails.
    fails: Option<usize>,
}

impl Source for Beside<'_> {
    type Error = ();

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), ()> {
        self.reads[1] += usize::from(bytes.len() > 128);
        bytes.copy_from_slice(&self.file[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn read_beside(&mut self, offset: u32, bytes: &mut [u8], work: &mut dyn FnMut()) -> Result<(), ()> {
        let number = self.reads[0];
        self.reads[0] += 1;
        let from = &self.file[offset as usize..][..bytes.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| bytes.copy_from_slice(from));
            work();
        });
        if self.fails == Some(number) { Err(()) } else { Ok(()) }
    }
}

#[test]
fn the_next_piece_is_read_while_one_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = digits(Target::Portable, folder.path());
    let Pieces {
        pieces,
        double_buffer_bytes,
        ..
    } = network.pieces();
    let (input, expected) = sample(&network.whole);
    let [mut buffer, mut arena] = [double_buffer_bytes, network.summary.arena_bytes].map(|n| Aligned::new(n as usize));
    for fails in [None, Some(0), Some(3), Some(pieces)] {
        let flash = Beside {
            file: &network.file,
            reads: [0; 2],
            fails,
        };
        let mut stream: Stream<'_, _> =
            Stream::open(flash, 0, buffer.bytes(), arena.bytes()).unwrap_or_else(|error| panic!("{error:?}"));
        let opening = stream.source().reads[1];
        for _ in 0..3 {
            stream.set_input(0, &input).expect("an input");
            stream.run().expect("it runs");
            let mut found = vec![0; expected.len()];
            stream.output(0, &mut found).expect("an output");
            assert_eq!(found, expected, "{fails:?}");
        }
        let [beside, alone] = stream.source().reads;
        // Behind the first run's first piece, which is there, all of them; one that fails is read once more, alone.
        let missed = usize::from(fails.is_some());
        assert_eq!((beside, alone - opening), (3 * pieces, missed), "{fails:?}");
    }
}

#[test]
fn layers_are_cut_until_they_fit_the_buffer() {
    let mut cases: Vec<(Options, u64, u64)> = Vec::new();
    // A kernel that takes several channels at a time has as many in a piece.
    for (target, buffer) in [
        (Target::Portable, 3000),
        (Target::CortexM4, 6000),
        (Target::CortexM55, 6000),
    ] {
        let options = Options {
            target,
            ..digits_options("digits", Path::new("digits.bin"))
        };
        cases.push((options, buffer, 0));
    }
    match shared() {
        None => skip("layers_are_cut_until_they_fit_the_buffer", "no shared data"),
        Some(shared) => {
            for (name, target, buffer, resident) in [
                ("kws_ref_model", Target::CortexM4, 3 << 10, 0),
                ("pretrainedResnet_quant", Target::Riscv64gc, 12 << 10, 0),
                ("pretrainedResnet_quant", Target::CortexM4, 12 << 10, 40 << 10),
                ("ad01_int8", Target::CortexM0, 16 << 10, 0),
            ] {
                let input = shared.join(format!("data/models/{name}.tflite"));
                let options = Options {
                    target,
                    ..Options::new(input, "x.bin")
                };
                cases.push((options, buffer, resident));
            }
        }
    }
    for (options, most, resident) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let stream = flash(1 << 20).map(|streamed| Streamed {
            buffer: Some(most),
            resident,
            ..streamed
        });
        let whole = packed(&options, folder.path()).pieces();
        let network = packed_for(&options, stream, folder.path());
        let found = network.pieces();
        let what = format!("{}, {}: {found:?}", options.input.display(), options.target.name());
        // Cut, or kept where they stay.
        assert!(
            whole.buffer_bytes > most && (found.pieces > whole.pieces || resident > 0),
            "{what}"
        );
        assert!(found.buffer_bytes <= most + resident, "{what}");
        assert_eq!(found.resident_bytes > 0, resident > 0, "{what}");
        let (input, expected) = sample(&network.whole);
        let (bus, mut memory) = (nor(&network.file), network.memory());
        let mut stream = open(&bus, &mut memory).unwrap_or_else(|error| panic!("{what}: {error}"));
        for _ in 0..2 {
            let before = bus.0.borrow().read;
            stream.set_input(0, &input).expect("an input");
            stream.run().expect("it runs");
            let mut output = vec![0; expected.len()];
            stream.output(0, &mut output).expect("an output");
            assert_eq!(output, expected, "{what}");
            let read = bus.0.borrow().read - before;
            // Each of the file's bytes at most once, but for those that stay, and an entry of the directory for each piece.
            let stay = found.resident_bytes as usize;
            assert!(read <= network.file.len() + 32 * found.pieces - stay, "{what}: {read}");
        }
    }
}

#[test]
fn a_buffer_that_no_cut_fits_is_refused_by_the_layers_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = flash(1 << 20).map(|streamed| Streamed {
        buffer: Some(500),
        ..streamed
    });
    let options = Options {
        stream,
        ..digits_options("digits", &folder.path().join("x.bin"))
    };
    let error = pack(&options, &mut |_, _, _| {}).expect_err("no room");
    assert_eq!(error.kind(), ErrorKind::DoesNotFit);
    let text = error.to_string();
    assert!(
        text.contains("needs a buffer of") && text.contains("at most 500"),
        "{text}"
    );
}

#[test]
fn what_is_not_for_pieces_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("x.bin");
    let digits = digits_options("digits", &output);
    let mfcc = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/mfcc/mfcc.trace.json");
    for (options, kind, words) in [
        (Options::new(mfcc, &output), ErrorKind::Unsupported, "a state"),
        (
            Options {
                self_test: Some(traced("test_images.npy")),
                ..digits.clone()
            },
            ErrorKind::Usage,
            "--self-test",
        ),
        (
            Options {
                stream: flash(30_000),
                ..digits.clone()
            },
            ErrorKind::DoesNotFit,
            "pieces",
        ),
        (
            Options {
                regions: ["a", "b"]
                    .map(|name| Region {
                        name: name.into(),
                        size: Some(1 << 20),
                    })
                    .to_vec(),
                ..digits
            },
            ErrorKind::Unsupported,
            "several memories",
        ),
    ] {
        let options = Options {
            stream: options.stream.clone().or_else(|| flash(1 << 20)),
            ..options
        };
        let error = pack(&options, &mut |_, _, _| {}).expect_err(words);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(!output.exists());
    }
}
