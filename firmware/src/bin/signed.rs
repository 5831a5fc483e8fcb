//! Cost of a signature on a device: instructions and stack of loading a signed model with its signature verified, and without looking at it.
//!
//! `ARENITE_MODEL` names a file that was signed with the secret key of RFC 8032, 7.1, test 1, which everybody knows.
#![no_std]
#![no_main]

use core::hint::black_box;

#[cfg(feature = "verify")]
use arenite_firmware::key::KNOWN;
use arenite_firmware::protocol::exit;
use arenite_firmware::{Exchange, counter::Counter, stack};

arenite_firmware::entry!(main);

arenite::include_model!(mod signed = env!("ARENITE_MODEL"), loaded);

/// Lengths of the two messages that tell what a byte costs. A wrong signature takes as long as a right one.
#[cfg(feature = "verify")]
const LENGTHS: [usize; 2] = [1024, 3072];

/// Loads the model as this build does.
#[cfg(feature = "verify")]
fn load() -> bool {
    let trust = arenite::Trust {
        keys: &[KNOWN],
        at_least: 1,
    };
    signed::load_verified(black_box(&trust)).is_ok()
}

#[cfg(not(feature = "verify"))]
fn load() -> bool {
    signed::load().is_ok()
}

/// Instructions for a byte of the file, times 1000.
#[cfg(feature = "verify")]
fn per_byte(counter: &Counter) -> u64 {
    let Some(signature) = signed::BYTES[8..].first_chunk() else {
        return 0;
    };
    let of = |len: usize| {
        let message = black_box(&signed::BYTES[72..72 + len]);
        counter.count(&mut || _ = black_box(arenite::verify::signed_by(black_box(&KNOWN.1), message, signature)))
    };
    let [short, long] = LENGTHS;
    1000 * (of(long) - of(short)) / (long - short) as u64
}

#[cfg(not(feature = "verify"))]
fn per_byte(_: &Counter) -> u64 {
    0
}

fn main(_: &mut Exchange) -> i32 {
    let (mut counted, mut painted) = (false, false);
    let counter = Counter::start();
    let instructions = counter.count(&mut || counted = load());
    let per_byte = per_byte(&counter);
    let stack = stack::high_water(&mut || painted = load());
    defmt::info!("{=u64} {=u64} {=u32}", instructions, per_byte, stack);
    match counted && painted {
        true => exit::DONE,
        false => exit::REFUSED,
    }
}
