//! A digit classifier as a user would flash it: the model is part of the program, memory is static, nothing is read at run time.
//! It classifies the first images of the held-out set and logs what it sees.
//!
//! `ARENITE_MODEL` names the packed model when this is built; `docs/boards.md` has the commands.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;

use arenite::Session;
use arenite_firmware::protocol::exit;
use arenite_firmware::{Exchange, counter::Counter};

arenite_firmware::entry!(main);

arenite::include_model!(mod digits = env!("ARENITE_MODEL"));

const IMAGES: usize = 8;
/// An image: 8 rows of 8 pixels, f32, little-endian.
const IMAGE_BYTES: usize = 8 * 8 * 4;
const LABEL_BYTES: usize = 8;

/// Images and labels of NumPy files, cut out when the program is compiled.
static IMAGE_DATA: [u8; IMAGES * IMAGE_BYTES] = npy(include_bytes!("../../../tests/models/digits/test_images.npy"));
static LABEL_DATA: [u8; IMAGES * LABEL_BYTES] = npy(include_bytes!("../../../tests/models/digits/test_labels.npy"));

struct StaticCell(UnsafeCell<digits::Arena>);
// SAFETY: one thread of execution; `main` borrows it once.
unsafe impl Sync for StaticCell {}
static ARENA: StaticCell = StaticCell(UnsafeCell::new(digits::Arena::new()));

fn main(_: &mut Exchange) -> i32 {
    match classify() {
        Ok(IMAGES) => exit::DONE,
        Ok(_) => exit::REFUSED,
        Err(()) => exit::REFUSED,
    }
}

/// Images whose class was found.
fn classify() -> Result<usize, ()> {
    let model = digits::load().map_err(|error| defmt::error!("load: {}", error))?;
    // SAFETY: called once.
    let arena = unsafe { &mut *ARENA.0.get() };
    let opened = Session::new(model, arena.bytes(), &mut []);
    let mut session = opened.map_err(|error| defmt::error!("session: {}", error))?;
    let counter = Counter::start();

    let mut right = 0;
    let labels = LABEL_DATA.as_chunks::<LABEL_BYTES>().0;
    for (image, &label) in IMAGE_DATA.chunks_exact(IMAGE_BYTES).zip(labels) {
        session
            .set_input(0, image)
            .map_err(|error| defmt::error!("input: {}", error))?;
        let mut result = Ok(());
        let instructions = counter.count(&mut || result = session.run());
        result.map_err(|error| defmt::error!("run: {}", error))?;
        let scores = session.output(0).map_err(|error| defmt::error!("output: {}", error))?;
        let (digit, expected) = (largest(scores), u64::from_le_bytes(label));
        defmt::info!(
            "this is a {=u64} (labelled {=u64}), in {=u64} instructions",
            digit,
            expected,
            instructions
        );
        right += usize::from(digit == expected);
    }
    defmt::info!(
        "{=usize} of {=usize} right; arena {=usize} bytes",
        right,
        IMAGES,
        digits::ARENA_BYTES
    );
    Ok(right)
}

/// Index of the largest f32.
fn largest(scores: &[u8]) -> u64 {
    let scores = scores.as_chunks::<4>().0.iter().map(|score| f32::from_le_bytes(*score));
    let best = (0..).zip(scores).fold(
        (0, f32::NEG_INFINITY),
        |best, next| if next.1 > best.1 { next } else { best },
    );
    best.0
}

/// The first bytes of a NumPy file's data.
const fn npy<const N: usize>(file: &[u8]) -> [u8; N] {
    // Format version 1: magic and version take 8 bytes, the header's length 2.
    let start = 10 + file[8] as usize + 256 * file[9] as usize;
    let mut data = [0; N];
    let mut at = 0;
    while at < N {
        data[at] = file[start + at];
        at += 1;
    }
    data
}
