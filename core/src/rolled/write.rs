//! The writer of the section of rolled tensors, for packers.

extern crate std;

use std::vec::Vec;

use super::{AGAIN, Rolled, Rolling};

/// The longest list of turns that is said again: as many as the seven bits of a byte count.
const LONGEST: usize = 128;

impl Rolling<'_> {
    /// The section's bytes: the region and the unit of places, as a power of two; the tensors, first those that no step makes, then the others in the order of
    /// the steps; of each row its place in units; of each turn the tensor whose next row it makes. `None` for more than the section has room for.
    pub fn write((region, unit): (u8, u8), tensors: &[Rolled], places: &[u16], turns: &[u8]) -> Option<Vec<u8>> {
        let inputs = tensors.iter().filter(|tensor| tensor.step == super::NO_STEP).count();
        let mut distinct = places.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        // Numbers of places, where they take less.
        if distinct.len() > 256 || distinct.len() * 2 >= places.len() {
            distinct.clear();
        }
        let codes = codes(turns);
        let mut out = Vec::new();
        out.extend([region, unit, u8::try_from(tensors.len()).ok()?, inputs as u8]);
        out.extend(u32::try_from(places.len()).ok()?.to_le_bytes());
        out.extend(u16::try_from(distinct.len()).ok()?.to_le_bytes());
        out.extend([0; 2]);
        out.extend(u32::try_from(codes.len()).ok()?.to_le_bytes());
        for tensor in tensors {
            let Rolled {
                source,
                bytes,
                first,
                rows,
                ..
            } = *tensor;
            out.extend([source, bytes, first, rows].into_iter().flat_map(u16::to_le_bytes));
        }
        out.extend(distinct.iter().flat_map(|place| place.to_le_bytes()));
        for place in places {
            match distinct.binary_search(place) {
                Ok(number) => out.push(number as u8),
                Err(_) => out.extend(place.to_le_bytes()),
            }
        }
        out.extend(codes);
        Some(out)
    }
}

/// Turns as bytes: a tensor, or a number of bytes before it that are passed again and how often.
fn codes(turns: &[u8]) -> Vec<u8> {
    let mut codes: Vec<u8> = Vec::new();
    // Tensors at the end of the codes.
    let (mut at, mut plain) = (0, 0);
    while at < turns.len() {
        let best = (1..=plain.min(LONGEST))
            .map(|length| {
                let (before, rest) = (&turns[at - length..at], &turns[at..]);
                let times = rest.chunks_exact(length).take_while(|&chunk| chunk == before).count();
                (times.min(255) * length, length)
            })
            .max_by_key(|&(saved, length)| (saved, core::cmp::Reverse(length)));
        match best {
            Some((saved, length)) if saved > 3 => {
                codes.extend([AGAIN | (length - 1) as u8, (saved / length) as u8]);
                at += saved;
                plain = 0;
            }
            _ => {
                codes.push(turns[at]);
                at += 1;
                plain += 1;
            }
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rolled::TurnAt;

    /// All turns of a list that is written and read again.
    fn read_again(turns: &[u8]) -> (usize, Vec<u8>) {
        let section = Rolling::write((0, 0), &[], &[], turns).expect("a section");
        let rolling = Rolling::of(&section).expect("a section");
        let (mut at, mut read) = (TurnAt::default(), Vec::new());
        while let Some((tensor, next)) = rolling.turn(at) {
            read.push(tensor);
            at = next;
        }
        (section.len() - 16, read)
    }

    #[test]
    fn turns_are_read_as_they_were_written() {
        let mut state = 1u32;
        let mut number = move |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for _ in 0..300 {
            let mut turns: Vec<u8> = Vec::new();
            for _ in 0..number(6) {
                let list: Vec<u8> = (0..=number(7)).map(|_| number(3) as u8).collect();
                (0..=number(400)).for_each(|_| turns.extend(&list));
            }
            assert_eq!(read_again(&turns).1, turns);
        }
    }

    #[test]
    fn lists_that_repeat_take_little() {
        let turns: Vec<u8> = (0..90).flat_map(|_| [1, 2, 2, 3]).collect();
        assert!(read_again(&turns).0 <= 10);
    }

    /// Bytes that say again among those that are passed again end the list.
    #[test]
    fn a_list_within_a_list_ends_it() {
        let mut section = Rolling::write((0, 0), &[], &[], &[5; 8]).expect("a section");
        let at = section.len() - 3;
        assert_eq!(section[at..], [5, 0x80, 7]);
        section.extend([0x82, 9]);
        section[12] += 2;
        let rolling = Rolling::of(&section).expect("a section");
        let (mut at, mut count) = (TurnAt::default(), 0);
        while let Some((_, next)) = rolling.turn(at) {
            (at, count) = (next, count + 1);
            assert!(count < 20);
        }
        assert_eq!(count, 8);
    }
}
