//! Models in a flash that is no memory: read piece by piece over a mock of an SPI NOR flash, with everything that such a flash does wrong.

mod cuts;
mod emulated;
mod writes;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use arenite::{LoadError, Progress, RunError, SessionError, Target};
use arenite_host::memory::Region;
use arenite_host::model::{Aligned, ModelFile, run};
use arenite_host::pack::{Options, Streamed, pack};
use arenite_host::report::{Pieces, Summary};
use arenite_stream::{Chip, NorError, NorFlash, Stream, StreamError};
use arenite_tests::{digits_options, oracle, shared, skip};
use embedded_hal::spi::{ErrorKind as BusError, ErrorType, Operation, SpiDevice};

/// ISSI's IS25WP256, of which the tests have the first megabyte.
const CHIP: Chip = Chip {
    id: [0x9d, 0x70, 0x19],
    bytes: 32 << 20,
    polls: 5,
};

/// Where the model lies in the flash.
const START: u32 = 0x2_0000;

/// A flash.
#[derive(Debug)]
struct Nor {
    id: [u8; 3],
    memory: Vec<u8>,
    /// Whether the chip takes addresses of four bytes.
    far: bool,
    /// How often it is still busy when it is asked.
    busy: u32,
    /// Transactions so far, and which one fails.
    transactions: usize,
    fails: Option<usize>,
    /// Bytes of memory that were read.
    read: usize,
}

/// The bus to it, which the test holds as well.
#[derive(Debug, Clone)]
struct Bus(Rc<RefCell<Nor>>);

impl ErrorType for Bus {
    type Error = BusError;
}

impl SpiDevice for Bus {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), BusError> {
        let mut nor = self.0.borrow_mut();
        nor.transactions += 1;
        if nor.fails == Some(nor.transactions - 1) {
            return Err(BusError::Overrun);
        }
        let [Operation::Write(command), Operation::Read(answer)] = operations else {
            panic!("{operations:?}");
        };
        match command {
            [0x9f] => answer.copy_from_slice(&nor.id),
            [0x05] => {
                answer[0] = u8::from(nor.busy > 0);
                nor.busy = nor.busy.saturating_sub(1);
            }
            [0x03, address @ ..] | [0x13, address @ ..] => {
                assert_eq!(address.len(), if nor.far { 4 } else { 3 });
                assert_eq!(command[0], if nor.far { 0x13 } else { 0x03 });
                assert_eq!(nor.busy, 0, "it reads nothing while it is busy");
                let at = address.iter().fold(0, |at, byte| at << 8 | usize::from(*byte));
                answer.copy_from_slice(&nor.memory[at..at + answer.len()]);
                nor.read += answer.len();
            }
            _ => panic!("no command of such a flash: {command:x?}"),
        }
        Ok(())
    }
}

/// A flash that holds a file.
fn nor(file: &[u8]) -> Bus {
    let mut memory = vec![0xff; 1 << 20];
    memory[START as usize..][..file.len()].copy_from_slice(file);
    Bus(Rc::new(RefCell::new(Nor {
        id: CHIP.id,
        memory,
        far: true,
        busy: 0,
        transactions: 0,
        fails: None,
        read: 0,
    })))
}

type Failure = StreamError<NorError<BusError>>;

/// A network in pieces and whole.
struct Network {
    whole: ModelFile,
    file: Vec<u8>,
    summary: Summary,
}

fn flash(bytes: u64) -> Option<Streamed> {
    let flash = Region {
        name: "spi".into(),
        size: Some(bytes),
    };
    Some(flash.into())
}

fn packed(options: &Options, folder: &Path) -> Network {
    packed_for(options, flash(1 << 20), folder)
}

fn packed_for(options: &Options, stream: Option<Streamed>, folder: &Path) -> Network {
    let pieces = Options {
        stream,
        output: folder.join("pieces.bin"),
        ..options.clone()
    };
    let whole = Options {
        output: folder.join("whole.bin"),
        ..options.clone()
    };
    let quiet = &mut |_: &str, _, _| {};
    let summary = pack(&pieces, quiet).unwrap_or_else(|error| panic!("{error}")).summary;
    pack(&whole, quiet).unwrap_or_else(|error| panic!("{error}"));
    Network {
        whole: ModelFile::open(&whole.output).expect("just written"),
        file: std::fs::read(&pieces.output).expect("just written"),
        summary,
    }
}

fn digits(target: Target, folder: &Path) -> Network {
    let options = Options {
        target,
        ..digits_options("digits", &folder.join("digits.bin"))
    };
    packed(&options, folder)
}

/// Buffer and arena.
struct Memory(Aligned, Aligned);

impl Network {
    fn pieces(&self) -> Pieces {
        self.summary.stream.expect("it is in pieces")
    }

    fn memory(&self) -> Memory {
        let buffer = self.pieces().buffer_bytes as usize;
        Memory(Aligned::new(buffer), Aligned::new(self.summary.arena_bytes as usize))
    }
}

fn open<'m>(bus: &Bus, memory: &'m mut Memory) -> Result<Stream<'m, NorFlash<Bus>>, Failure> {
    let flash = NorFlash::open(bus.clone(), CHIP).map_err(StreamError::Source)?;
    Stream::open(flash, START, memory.0.bytes(), memory.1.bytes())
}

fn traced(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits").join(name)
}

fn floats(name: &str, count: usize) -> Vec<f32> {
    let array: ndarray::ArrayD<f32> = ndarray_npy::read_npy(traced(name)).expect("a tracked file");
    array.into_iter().take(count).collect()
}

#[test]
fn pieces_compute_what_the_whole_does_and_read_each_weight_once() {
    const IMAGES: usize = 20;
    let images = floats("test_images.npy", IMAGES * 64);
    let expected = floats("digits.test_logits.npy", IMAGES * 10);
    for target in [Target::Portable, Target::CortexM4] {
        let folder = tempfile::tempdir().expect("a folder");
        let network = digits(target, folder.path());
        let (bus, mut memory) = (nor(&network.file), network.memory());
        let mut stream = open(&bus, &mut memory).unwrap_or_else(|error| panic!("{error}"));
        let Pieces {
            pieces, buffer_bytes, ..
        } = network.pieces();
        assert_eq!(stream.pieces() as usize, pieces);
        // Five layers with weights, and what is behind the last of them.
        assert!((5..8).contains(&pieces), "{pieces}");
        assert!(buffer_bytes < network.summary.weights_bytes, "{buffer_bytes}");
        let whole = network.whole.load().expect("it loads");
        for (image, expected) in images.chunks(64).zip(expected.chunks(10)) {
            let before = bus.0.borrow().read;
            stream.set_values(0, image).expect("an input");
            stream.run().expect("it runs");
            let mut logits = [0f32; 10];
            stream.values(0, &mut logits).expect("an output");
            let read = bus.0.borrow().read - before;
            assert!(
                read as f64 <= 1.2 * network.summary.weights_bytes as f64,
                "{read} bytes, {} of weights",
                network.summary.weights_bytes
            );
            let bytes = image.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
            let ours = run(&whole, &[vec![bytes]], false, &mut |_, _, _| {}).expect("it runs");
            let found: Vec<u8> = logits.iter().flat_map(|logit| logit.to_le_bytes()).collect();
            assert_eq!(found, ours[0][0], "{}", target.name());
            let scale = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
            assert!(
                logits.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * scale),
                "{logits:?}, PyTorch {expected:?}"
            );
        }
        let read = bus.0.borrow().read;
        println!(
            "{}: {pieces} pieces, a buffer of {buffer_bytes}, {read} bytes read",
            target.name()
        );
    }
    oracle::compared("PyTorch", 2 * IMAGES, 40);
}

#[test]
fn int8_models_are_read_in_pieces() {
    const TEST: &str = "int8_models_are_read_in_pieces";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    for (name, target) in [
        ("kws_ref_model", Target::CortexM4),
        ("pretrainedResnet_quant", Target::CortexM0),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let input = shared.join(format!("data/models/{name}.tflite"));
        let options = Options {
            target,
            ..Options::new(input, folder.path().join("x.bin"))
        };
        let network = packed(&options, folder.path());
        let (bus, mut memory) = (nor(&network.file), network.memory());
        let mut stream = open(&bus, &mut memory).unwrap_or_else(|error| panic!("{error}"));
        let whole = network.whole.load().expect("it loads");
        let bytes = whole.input(0).and_then(|port| port.bytes()).expect("an input") as usize;
        let input: Vec<u8> = (0..bytes).map(|at| (at * 37 + at / 7) as u8).collect();
        let expected = run(&whole, &[vec![input.clone()]], false, &mut |_, _, _| {}).expect("it runs");
        let before = bus.0.borrow().read;
        stream.set_input(0, &input).expect("an input");
        stream.run().expect("it runs");
        let mut found = vec![0; expected[0][0].len()];
        stream.output(0, &mut found).expect("an output");
        assert_eq!(found, expected[0][0], "{name}");
        let read = bus.0.borrow().read - before;
        let weights = network.summary.weights_bytes;
        println!(
            "{name}: {:?}, {read} bytes a run for {weights} of weights",
            network.pieces()
        );
        assert!(read as f64 <= 1.2 * weights as f64, "{name}: {read} of {weights}");
    }
}

#[test]
fn every_transfer_may_fail_and_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = digits(Target::Portable, folder.path());
    let (bus, mut memory) = (nor(&network.file), network.memory());
    let image = floats("test_images.npy", 64);
    let failed = StreamError::Source(NorError::Bus(BusError::Overrun));
    let mut logits = [0f32; 10];
    let all = {
        open(&bus, &mut memory).expect("it opens");
        bus.0.borrow().transactions
    };
    for fails in 0..all {
        (bus.0.borrow_mut().transactions, bus.0.borrow_mut().fails) = (0, Some(fails));
        assert_eq!(
            open(&bus, &mut memory).expect_err("it fails"),
            failed,
            "{fails} of {all}"
        );
    }
    bus.0.borrow_mut().fails = None;
    let mut stream = open(&bus, &mut memory).expect("it opens");
    stream.set_values(0, &image).expect("an input");
    stream.run().expect("it runs");
    stream.values(0, &mut logits).expect("an output");
    let (expected, mut failures) = (logits, 0);
    for fails in 0.. {
        (bus.0.borrow_mut().transactions, bus.0.borrow_mut().fails) = (0, Some(fails));
        // An input, each piece, an output: what fails is called again.
        let mut input = stream.set_values(0, &image);
        if input.is_err() {
            assert_eq!(input, Err(failed));
            input = stream.set_values(0, &image);
            failures += 1;
        }
        input.expect("an input");
        loop {
            match stream.step() {
                Ok(Progress::Done) => break,
                Ok(Progress::Step { .. }) => {}
                Err(error) => {
                    assert_eq!(error, failed);
                    failures += 1;
                }
            }
        }
        logits = [0.0; 10];
        stream.values(0, &mut logits).expect("an output");
        assert_eq!(logits, expected, "{fails}");
        if bus.0.borrow().transactions <= fails {
            break;
        }
    }
    // Of each piece its entry and its bytes, and a look at the state before each.
    assert_eq!(failures, 4 * network.pieces().pieces);
}

#[test]
fn other_chips_and_busy_ones_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = digits(Target::Portable, folder.path());
    let (bus, mut memory) = (nor(&network.file), network.memory());
    bus.0.borrow_mut().id = [0xef, 0x40, 0x18];
    let found = [0xef, 0x40, 0x18];
    let error = open(&bus, &mut memory).expect_err("another chip");
    assert_eq!(error, StreamError::Source(NorError::WrongChip { found }));
    assert_eq!(error.to_string(), "a flash that calls itself [ef, 40, 18]");
    bus.0.borrow_mut().id = CHIP.id;
    // Four looks in vain are borne, five are not.
    bus.0.borrow_mut().busy = CHIP.polls - 1;
    assert!(open(&bus, &mut memory).is_ok());
    bus.0.borrow_mut().busy = CHIP.polls;
    let error = open(&bus, &mut memory).expect_err("it stays busy");
    assert_eq!(error, StreamError::Source(NorError::Busy));
    // Busy for ever, in the midst of a run.
    let mut stream = open(&bus, &mut memory).expect("it opens");
    stream.set_values(0, &[0f32; 64]).expect("an input");
    stream.step().expect("a piece");
    bus.0.borrow_mut().busy = u32::MAX;
    assert_eq!(stream.step(), Err(StreamError::Source(NorError::Busy)));
    bus.0.borrow_mut().busy = 0;
    stream.run().expect("it goes on");
    // A small chip takes short addresses, and has an end.
    bus.0.borrow_mut().far = false;
    let small = Chip {
        bytes: START + 1000,
        ..CHIP
    };
    let flash = NorFlash::open(bus.clone(), small).expect("a chip");
    let mut memory = network.memory();
    let error = Stream::<_>::open(flash, START, memory.0.bytes(), memory.1.bytes()).expect_err("it ends");
    assert!(matches!(error, StreamError::Source(NorError::Beyond { bytes, .. }) if bytes == START + 1000));
}

#[test]
fn damage_is_found_when_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = digits(Target::Portable, folder.path());
    let (bus, mut memory) = (nor(&network.file), network.memory());
    let image = floats("test_images.npy", 64);
    let (mut found, mut harmless) = (0, 0);
    for at in (0..network.file.len()).step_by(97).chain(0..300) {
        let flip = || bus.0.borrow_mut().memory[START as usize + at] ^= 1 << (at % 8);
        flip();
        match open(&bus, &mut memory) {
            Err(StreamError::Source(error)) => panic!("byte {at}: {error}"),
            Err(_) => found += 1,
            // Between the pieces there are a few bytes that nobody reads.
            Ok(_) => harmless += 1,
        }
        flip();
    }
    println!("{found} found, {harmless} harmless");
    assert!(harmless <= found / 50, "{harmless}");

    // A flash that changes behind an open: the piece is not run.
    let mut stream = open(&bus, &mut memory).expect("it opens");
    stream.set_values(0, &image).expect("an input");
    stream.step().expect("the first piece");
    let middle = START as usize + network.file.len() / 2;
    bus.0.borrow_mut().memory[middle] ^= 4;
    let error = stream.run().expect_err("a damaged piece");
    assert!(
        matches!(error, StreamError::Piece { piece, error: LoadError::Checksum { .. } } if piece > 0),
        "{error}"
    );
    bus.0.borrow_mut().memory[middle] ^= 4;
    stream.run().expect("it goes on");
}

#[test]
fn memory_and_calls_that_are_wrong_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = digits(Target::Portable, folder.path());
    let bus = nor(&network.file);
    let Pieces { buffer_bytes, .. } = network.pieces();
    let needed = buffer_bytes as u32;
    let mut memory = network.memory();
    memory.0 = Aligned::new(buffer_bytes as usize - 16);
    let given = needed - 16;
    assert_eq!(
        open(&bus, &mut memory).expect_err("too small"),
        StreamError::BufferTooSmall { needed, given }
    );
    let mut memory = network.memory();
    memory.1 = Aligned::new(64);
    let error = open(&bus, &mut memory).expect_err("too small");
    assert!(matches!(
        error,
        StreamError::Session(SessionError::ArenaTooSmall { given: 64, .. })
    ));

    let mut memory = network.memory();
    let mut stream = open(&bus, &mut memory).expect("it opens");
    let missing = Err(StreamError::Run(RunError::InputMissing { input: 0 }));
    assert_eq!(stream.run(), missing);
    let mut logits = [0f32; 10];
    assert_eq!(stream.values(0, &mut logits), missing);
    assert_eq!(
        stream.set_values(0, &[0i8; 64]),
        Err(StreamError::Run(RunError::PortType { port: 0 }))
    );
    stream.set_values(0, &[0f32; 64]).expect("an input");
    stream.step().expect("a piece");
    // Half-way through a run its inputs are gone; another one begins.
    assert_eq!(
        stream.set_input(0, &[0; 7]),
        Err(StreamError::Run(RunError::InputSize {
            input: 0,
            needed: 256,
            given: 7
        }))
    );
    assert_eq!(stream.step().map(|_| ()), missing);
    stream.set_values(0, &[0f32; 64]).expect("an input");
    stream.run().expect("it runs");
    assert_eq!(
        stream.values(0, &mut [0f32; 9]),
        Err(StreamError::Run(RunError::PortType { port: 0 }))
    );
    stream.values(0, &mut logits).expect("an output");
    assert_eq!(stream.run(), missing, "behind a run its input is gone");

    // Files that are no model in pieces: nothing, a model, a bundle.
    let whole = std::fs::read(network.whole.path()).expect("readable");
    let bundle = arenite_host::bundle::assemble(&["a".into()], std::slice::from_ref(&whole)).expect("a bundle");
    for file in [vec![0xff; 100], whole, bundle] {
        let mut memory = network.memory();
        memory.0 = Aligned::new(1 << 16);
        assert_eq!(
            open(&nor(&file), &mut memory).expect_err("no pieces"),
            StreamError::NotAStream
        );
    }
}
