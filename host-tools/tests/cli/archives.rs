//! Archives of weights (`.npz`) whose directory contradicts them. Messages show which entries are read: two arrays of one name are refused by their name, so
//! that one which is refused for that was read to its end.

use std::fs;
use std::path::Path;

use crate::common::{Bench, PACK, digits, refused, run};
use crate::inputs::stored_zip;

/// A record of `length` bytes that starts with the last `signature`, to be changed.
fn record<'a>(archive: &'a mut [u8], signature: &[u8; 4], length: usize) -> &'a mut [u8] {
    let at = archive.windows(4).rposition(|part| part == signature).expect("there");
    &mut archive[at..at + length]
}

fn end(archive: &mut [u8]) -> &mut [u8] {
    record(archive, b"PK\x05\x06", 22)
}

fn add(bytes: &mut [u8], more: i32) {
    let bytes: &mut [u8; 4] = bytes.try_into().expect("four");
    *bytes = u32::from_le_bytes(*bytes).wrapping_add_signed(more).to_le_bytes();
}

fn two_of_a_name() -> Vec<u8> {
    let array = ("a".to_string(), vec![0; 16]);
    stored_zip(&[array.clone(), array])
}

/// The same with the end of the directory in 64 bits, where `start`, `bytes` and `entries` stand instead.
fn wide(change: impl FnOnce([&mut u64; 3], &mut u64)) -> Vec<u8> {
    let mut archive = two_of_a_name();
    let narrow = end(&mut archive).to_vec();
    archive.truncate(archive.len() - narrow.len());
    let number = |at: usize| u64::from(u32::from_le_bytes(narrow[at..at + 4].try_into().expect("four")));
    let (mut bytes, mut start, mut entries) = (number(12), number(16), 2);
    let mut place = archive.len() as u64;
    change([&mut start, &mut bytes, &mut entries], &mut place);
    archive.extend(b"PK\x06\x06");
    archive.extend(44_u64.to_le_bytes());
    archive.extend([0; 12]);
    for number in [entries, entries, bytes, start] {
        archive.extend(number.to_le_bytes());
    }
    archive.extend(b"PK\x06\x07\0\0\0\0");
    archive.extend(place.to_le_bytes());
    archive.extend([1, 0, 0, 0]);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([0xff; 12]);
    archive.extend([0; 2]);
    archive
}

fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut archive = stored_zip(&[("a".to_string(), vec![0; 16])]);
    change(&mut archive);
    archive
}

#[test]
fn directories_that_contradict_their_archive_are_refused() {
    let bench = Bench::new();
    let weights = bench.path("weights.npz");
    let entry = |change: fn(&mut [u8])| changed(|archive| change(record(archive, b"PK\x01\x02", 47)));
    let outside = "its directory does not lie within it";
    let damaged = "its directory is damaged";
    for (what, archive, said) in [
        (
            "a comment behind",
            {
                let mut archive = two_of_a_name();
                end(&mut archive)[20] = 3;
                archive.extend(b"PK\x05");
                archive
            },
            "`a` is in it twice",
        ),
        (
            "a comment that is cut",
            changed(|archive| end(archive)[20] = 1),
            "it has no directory",
        ),
        ("cut", changed(|archive| _ = archive.pop()), "it has no directory"),
        (
            "a directory of a byte more",
            changed(|archive| add(&mut end(archive)[12..16], 1)),
            outside,
        ),
        (
            "a directory further on",
            changed(|archive| add(&mut end(archive)[16..20], 1)),
            outside,
        ),
        (
            "a directory of a byte less",
            changed(|archive| add(&mut end(archive)[12..16], -1)),
            damaged,
        ),
        (
            "an entry more",
            changed(|archive| end(archive)[10] = 2),
            "it says 2 entries and lists 1",
        ),
        ("64 bits", wide(|_, _| ()), "`a` is in it twice"),
        ("64 bits, a byte more", wide(|[_, bytes, _], _| *bytes += 1), outside),
        ("64 bits, beyond all", wide(|[start, ..], _| *start = u64::MAX), outside),
        (
            "64 bits, elsewhere",
            wide(|_, place| *place += 1),
            "the end of its directory is damaged",
        ),
        ("another signature", entry(|entry| entry[3] = 3), damaged),
        ("a longer name", entry(|entry| entry[28] = 2), damaged),
        ("a remark that is not there", entry(|entry| entry[32] = 1), damaged),
        ("no UTF-8", entry(|entry| entry[46] = 0xff), "a name in it is no UTF-8"),
        ("encrypted", entry(|entry| entry[8] = 1), "`a` is encrypted"),
        (
            "another method",
            entry(|entry| entry[10] = 12),
            "`a` is compressed by method 12",
        ),
        (
            "another size",
            entry(|entry| entry[24] += 1),
            "`a` is stored in another size than its own",
        ),
        (
            "a byte into the directory",
            entry(|entry| [20, 24].iter().for_each(|&at| entry[at] += 1)),
            "`a` does not lie within it",
        ),
        (
            "not where it is said",
            entry(|entry| entry[42] = 1),
            "`a` is not where the directory says",
        ),
        // Only what is read is looked at so closely.
        (
            "another checksum",
            {
                let mut archive = stored_zip(&[("fc1.bias".to_string(), vec![0; 16])]);
                record(&mut archive, b"PK\x01\x02", 47)[16] ^= 1;
                archive
            },
            "`fc1.bias` is damaged",
        ),
    ] {
        fs::write(&weights, archive).expect("written");
        let words = [
            &digits("mlp.trace.json"),
            Path::new("--weights"),
            &weights,
            Path::new("-o"),
            &bench.path("m"),
        ];
        let message = refused(run(PACK, &words), 1);
        assert!(
            message.contains("weights.npz") && message.contains(said),
            "{what}: {message}"
        );
    }
}
