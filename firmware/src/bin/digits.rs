//! A digit classifier as a user would flash it: the model and its memory are part of the program, nothing is read at run time.
//! It classifies the first images of the held-out set and logs what it sees.
//!
//! `ARENITE_MODEL` names the packed model when this is built; `docs/boards.md` has the commands.
#![no_std]
#![no_main]

use arenite_firmware::protocol::exit;
use arenite_firmware::{Exchange, counter::Counter};

arenite_firmware::entry!(main);

arenite::include_model!(mod digits = env!("ARENITE_MODEL"), loaded);

const COUNT: usize = 8;

/// Images and labels of NumPy files, cut out when the program is compiled.
static IMAGES: [digits::Input; COUNT] = images(include_bytes!("../../../tests/models/digits/test_images.npy"));
static LABELS: [usize; COUNT] = labels(include_bytes!("../../../tests/models/digits/test_labels.npy"));

fn main(_: &mut Exchange) -> i32 {
    match classify() {
        Ok(COUNT) => exit::DONE,
        Ok(_) => exit::REFUSED,
        Err(error) => {
            defmt::error!("{}", error);
            exit::REFUSED
        }
    }
}

/// Images whose class was found.
fn classify() -> Result<usize, arenite::Error> {
    let mut session = digits::session()?;
    let counter = Counter::start();

    let mut right = 0;
    for (image, &expected) in IMAGES.iter().zip(&LABELS) {
        // In three parts, to count the run alone; else `digits::run(&mut session, image)?`.
        digits::set_inputs(&mut session, image)?;
        let mut result = Ok(());
        let instructions = counter.count(&mut || result = session.run());
        result?;
        let [(digit, _)] = arenite::top(digits::outputs(&session)?);
        defmt::info!(
            "this is a {=usize} (labelled {=usize}), in {=u64} instructions",
            digit,
            expected,
            instructions
        );
        right += usize::from(digit == expected);
    }
    defmt::info!(
        "{=usize} of {=usize} right; arena {=usize} bytes",
        right,
        COUNT,
        digits::ARENA_BYTES
    );
    Ok(right)
}

/// The first images of a file of f32.
const fn images(file: &[u8]) -> [digits::Input; COUNT] {
    let mut images = [[0.0; 64]; COUNT];
    let mut at = 0;
    while at < COUNT * 64 {
        images[at / 64][at % 64] = f32::from_le_bytes(element(file, at));
        at += 1;
    }
    images
}

/// The first labels of a file of int64.
const fn labels(file: &[u8]) -> [usize; COUNT] {
    let mut labels = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        labels[at] = u64::from_le_bytes(element(file, at)) as usize;
        at += 1;
    }
    labels
}

/// Element `index` of a NumPy file.
const fn element<const N: usize>(file: &[u8], index: usize) -> [u8; N] {
    // Format version 1: magic and version take 8 bytes, the header's length 2.
    let start = 10 + file[8] as usize + 256 * file[9] as usize;
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        bytes[at] = file[start + N * index + at];
        at += 1;
    }
    bytes
}
