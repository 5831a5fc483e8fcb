//! From an accelerometer's registers to a gesture: the driver over both buses, and the network that was trained on generated motion.

use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_sensors::adxl345::{self, ADDRESS, ALTERNATIVE_ADDRESS, Adxl345, Adxl345Error, Config, Range, Rate};
use arenite_sensors::{OverI2c, OverSpi, Registers, Samples, SamplesError};
use arenite_tests::golden::packed;
use arenite_tests::oracle;
use embedded_hal::i2c::{ErrorKind, NoAcknowledgeSource};
use embedded_hal::spi;

use crate::sensors::chip::{Select, Shared, Wire};
use crate::sensors::network::Network;

/// Readings of a window and of a block.
const WINDOW: usize = 64;
const READINGS: usize = 16;
const ID: u8 = 0xe5;
const CLASSES: usize = 5;

const CONFIG: Config = Config {
    rate: Rate::Hz50,
    range: Range::G4,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/gestures")
}

fn array<T: ndarray_npy::ReadableElement>(name: &str) -> Vec<T> {
    let array: ndarray::ArrayD<T> = ndarray_npy::read_npy(folder().join(name)).expect("a tracked file");
    array.into_iter().collect()
}

fn largest(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}

/// Returns the windows that the driver makes of the chip's measurements.
fn windows<R: Registers>(chip: &Shared, registers: R, forces: &[[i16; 3]]) -> Vec<Vec<i16>>
where
    R::Error: std::fmt::Debug,
{
    let mut sensor = Adxl345::start(registers, CONFIG).expect("it measures");
    let mut windows = Vec::new();
    for window in forces.chunks(WINDOW) {
        let mut samples = Vec::new();
        for (count, force) in window.iter().enumerate() {
            // The program looks after each reading, and mostly there is no block yet.
            chip.measures(*force);
            let mut block = [0; 3 * READINGS];
            let whole = sensor.poll(&mut block).expect("no error");
            assert_eq!(whole, count % READINGS == READINGS - 1);
            if whole {
                samples.extend(block);
            }
        }
        windows.push(samples);
    }
    sensor.stop().unwrap_or_else(|error| panic!("{error:?}"));
    windows
}

#[test]
fn gestures_are_told_as_by_pytorch() {
    let raw: Vec<i16> = array("test_windows.npy");
    let (labels, expected): (Vec<i64>, Vec<f32>) = (array("test_labels.npy"), array("test_logits.npy"));
    let (forces, _) = raw.as_chunks::<3>();
    let chip = Shared::new(ID);
    let found = windows(&chip, OverI2c::new(Wire(chip.clone()), ADDRESS), forces);
    assert_eq!(found.concat(), raw);
    assert_eq!(chip.rate(), 9, "50 Hz by the datasheet's table");
    let chip = Shared::new(ID);
    assert_eq!(windows(&chip, OverSpi::new(Select(chip.clone(), true)), forces), found);

    let place = tempfile::tempdir().expect("a folder");
    let file = packed(&folder().join("gestures.trace.json"), place.path(), Target::Portable).expect("it packs");
    let mut network = Network::open(&file);
    let (mut right, mut right_in_pytorch) = (0, 0);
    for ((window, label), expected) in found.iter().zip(&labels).zip(expected.chunks(CLASSES)) {
        let input: Vec<f32> = window.iter().map(|&sample| adxl345::g(sample)).collect();
        let logits: Vec<f32> = network.run(&input);
        let scale = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
        for (ours, theirs) in logits.iter().zip(expected) {
            assert!(
                (ours - theirs).abs() <= 1e-5 * scale,
                "{logits:?}, PyTorch {expected:?}"
            );
        }
        right += usize::from(largest(&logits) as i64 == *label);
        right_in_pytorch += usize::from(largest(expected) as i64 == *label);
    }
    println!("{right} of {} right", labels.len());
    assert_eq!(right, right_in_pytorch);
    assert!(right >= 195, "{right}");
    oracle::compared("PyTorch", labels.len(), 200);
}

#[test]
fn every_transfer_may_fail_and_the_sensor_goes_on() {
    let chip = Shared::new(ID);
    let mut failed = 0;
    for fails in 0..40 {
        (chip.0.borrow_mut().transfers, chip.0.borrow_mut().fails) = (0, Some(fails));
        let registers = OverI2c::new(Wire(chip.clone()), ADDRESS);
        let mut sensor = match Adxl345::start(registers, CONFIG) {
            Ok(sensor) => sensor,
            Err(error) => {
                assert_eq!(error, Adxl345Error::Bus(ErrorKind::ArbitrationLoss));
                assert!(fails < 7, "{fails}");
                failed += 1;
                continue;
            }
        };
        (0..READINGS as i16).for_each(|at| chip.measures([at, -at, 256]));
        let mut block = [0; 3 * READINGS];
        let first = sensor.poll(&mut block);
        if fails < 7 + 2 + READINGS {
            let error = SamplesError::Device(Adxl345Error::Bus(ErrorKind::ArbitrationLoss));
            assert_eq!(first, Err(error), "{fails}");
            failed += 1;
            // Samples taken before it failed are gone; the following ones are whole.
            chip.0.borrow_mut().fails = None;
            while sensor.poll(&mut block[..3]).expect("no error") {}
            (0..READINGS as i16).for_each(|at| chip.measures([at, at, at]));
            assert_eq!(sensor.poll(&mut block), Ok(true));
            assert_eq!(block[45..], [15, 15, 15]);
        } else {
            assert_eq!(first, Ok(true), "{fails}");
            assert_eq!(block[..6], [0, 0, 256, 1, -1, 256]);
        }
    }
    assert_eq!(failed, 7 + 2 + READINGS);
    // Over SPI the bus has an error of its own.
    let chip = Shared::new(ID);
    chip.0.borrow_mut().fails = Some(0);
    let error = Adxl345::start(OverSpi::new(Select(chip.clone(), true)), CONFIG).expect_err("it fails");
    assert_eq!(error, Adxl345Error::Bus(spi::ErrorKind::ModeFault));
}

#[test]
fn other_chips_and_none_are_told() {
    let chip = Shared::new(0x33);
    let error = Adxl345::start(OverI2c::new(Wire(chip.clone()), ADDRESS), CONFIG).expect_err("another chip");
    assert_eq!(error, Adxl345Error::WrongChip { found: 0x33 });
    assert_eq!(
        error.to_string(),
        "a chip that calls itself 0x33, expected an ADXL345, 0xe5"
    );
    let error =
        Adxl345::start(OverI2c::new(Wire(chip.clone()), ALTERNATIVE_ADDRESS), CONFIG).expect_err("nobody there");
    let nobody = ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address);
    assert_eq!(error, Adxl345Error::Bus(nobody));
    let error = Adxl345::start(OverSpi::new(Select(Shared::new(ID), false)), CONFIG).expect_err("no chip");
    assert_eq!(error, Adxl345Error::WrongChip { found: 0xff });
}

#[test]
fn late_and_short_blocks_of_the_sensor_are_errors() {
    let chip = Shared::new(ID);
    let mut sensor = Adxl345::start(OverI2c::new(Wire(chip.clone()), ADDRESS), CONFIG).expect("it measures");
    let mut block = [0; 3 * READINGS];
    // 31 readings are still there; with the next one some may be lost.
    (0..31).for_each(|at| chip.measures([at; 3]));
    assert_eq!(sensor.poll(&mut block), Ok(true));
    assert_eq!(block[..6], [0, 0, 0, 1, 1, 1]);
    (0..40).for_each(|at| chip.measures([at; 3]));
    assert_eq!(sensor.poll(&mut block), Err(SamplesError::Late { lost: 96 }));
    assert_eq!(sensor.poll(&mut block), Ok(false));
    (100..116).for_each(|at| chip.measures([at; 3]));
    assert_eq!(sensor.poll(&mut block), Ok(true));
    assert_eq!(block[..3], [100; 3]);
    for (length, got) in [(47, 45), (96, 93), (300, 93)] {
        let mut block = vec![0; length];
        let short = SamplesError::Short { got, expected: length };
        assert_eq!(sensor.poll(&mut block), Err(short));
    }
}
