//! What a signature costs a device: instructions and stack of loading a signed model with its signature verified, and without looking at it.
//!
//! `ARENITE_MODEL` names a file that was signed with the secret key of RFC 8032, 7.1, test 1, which everybody knows.
#![no_std]
#![no_main]

use core::hint::black_box;

use arenite_firmware::protocol::exit;
use arenite_firmware::{Exchange, counter::Counter, stack};

arenite_firmware::entry!(main);

arenite::include_model!(mod signed = env!("ARENITE_MODEL"));

/// Lengths of the two messages that tell what a byte costs. A wrong signature takes as long as a right one.
#[cfg(feature = "verify")]
const LENGTHS: [usize; 2] = [1024, 3072];

#[cfg(feature = "verify")]
const KEY: arenite::TrustedKey = (
    0x21fe_31df_a154_a261,
    [
        0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1,
        0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
    ],
);

/// Loads the model as this build does.
#[cfg(feature = "verify")]
fn load() -> bool {
    let trust = arenite::Trust {
        keys: &[KEY],
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
        counter.count(&mut || _ = black_box(arenite::verify::signed_by(black_box(&KEY.1), message, signature)))
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
