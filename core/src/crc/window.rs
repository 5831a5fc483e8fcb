//! A CRC-32 without a table: the message is divided by a multiple of the polynomial that has five terms.
//!
//! The polynomial P divides Q(x) = x^300 + x^155 + x^117 + x^89 + 1 and with it, squaring being linear here, Q(x)^8 = Q(x^8), whose terms lie on whole
//! bytes. So a byte of the message is divided away by adding it to the bytes 145, 183, 211 and 300 behind it, and as no distance is below four, a word at a
//! time. Turned around, a word of the quotient is the message's word and four earlier words of the quotient: a window of [`WINDOW`] bytes remembers them.
//! No multiple of degree up to 300 has fewer terms, and none of a smaller degree has five: CRC-32 keeps a Hamming distance of 6 up to 268 bits of message.
//!
//! Words at any address: for cores that load them.

use core::hint::black_box;

/// Bytes of the quotient that the division looks back on: the degree.
pub(super) const WINDOW: usize = 300;

/// Further distances of the recurrence, in bits: the degree less the exponents in between.
const DISTANCES: [usize; 3] = [145, 183, 211];

/// Up to here in a window all distances reach into the one before; from here on, with what is kept of that, into none.
const TURN: usize = 144;

/// The end of the window before, and the window, each byte of which stands for that of the window before until it is known.
type Quotient = [u8; KEPT + WINDOW];

const KEPT: usize = WINDOW - TURN;
const WORD: usize = 4;

/// Takes in `bytes` but for less than a window at their end, if they are two windows or more. Gives `take` the remainder of the division by Q, a window of
/// words that stands for the last one taken in, and returns what is left.
#[inline(always)]
pub(super) fn divide(crc: u32, mut bytes: &[u8], mut take: impl FnMut([u8; WORD])) -> Option<&[u8]> {
    // Zeros that the compiler does not know as such are not filled by a `memset`, which nothing else of a small program needs.
    let mut quotient = [black_box([0; WORD]); (KEPT + WINDOW) / WORD];
    let quotient: &mut Quotient = quotient.as_flattened_mut().first_chunk_mut()?;
    put(quotient, KEPT, crc);
    if bytes.len() < 2 * WINDOW {
        return None;
    }
    while bytes.len() >= 2 * WINDOW
        && let Some((window, rest)) = bytes.split_first_chunk::<WINDOW>()
    {
        for at in (0..TURN / WORD).map(|word| WORD * word) {
            put(quotient, KEPT + at, sum(quotient, window, at, WINDOW));
            // Nothing, but no loop that holds it is unrolled: 40 bytes instead of 140.
            black_box(());
        }
        for at in (TURN / WORD..WINDOW / WORD).map(|word| WORD * word) {
            let sum = sum(quotient, window, at, 0);
            put(quotient, KEPT + at, sum);
            put(quotient, at - TURN, sum);
            black_box(());
        }
        // Opaque: what is left of them would be computed anew, by a division.
        bytes = black_box(rest);
    }
    // The bytes that follow are divided, but give no quotient any more.
    let (window, rest) = bytes.split_first_chunk::<WINDOW>()?;
    for at in (0..TURN / WORD).map(|word| WORD * word) {
        take(sum(quotient, window, at, WINDOW).to_le_bytes());
        put(quotient, KEPT + at, 0);
    }
    for at in (TURN / WORD..WINDOW / WORD).map(|word| WORD * word) {
        take(sum(quotient, window, at, 0).to_le_bytes());
        put(quotient, KEPT + at, 0);
    }
    Some(rest)
}

/// The word at `at` of a window, divided: the message's, that of a window ago, which stands in its place, and those in between, `ahead` of where they belong.
#[inline(always)]
fn sum(quotient: &Quotient, window: &[u8; WINDOW], at: usize, ahead: usize) -> u32 {
    let back = |distance: usize| word(quotient, KEPT + at + ahead - distance);
    let [near, middle, far] = DISTANCES;
    word(window, at) ^ word(quotient, KEPT + at) ^ back(near) ^ back(middle) ^ back(far)
}

/// The word at `at`; 0 out of bounds, which does not happen.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

#[inline(always)]
fn put(quotient: &mut Quotient, at: usize, word: u32) {
    if let Some(place) = quotient.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
        *place = word.to_le_bytes();
    }
}
