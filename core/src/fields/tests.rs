//! Decoding beside postcard's.

extern crate std;
use super::*;
use proptest::prelude::*;
use serde::Serialize;
use std::vec::Vec;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    Newtype(i16),
    Tuple(u16, [i8; 2]),
    Struct { flag: bool, real: f32 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything<'a> {
    byte: u8,
    half: u16,
    word: u32,
    signed: i32,
    kind: Kind,
    maybe: Option<u32>,
    name: &'a str,
    list: heapless::Vec<u32, 4>,
}

fn read(bytes: &[u8]) -> Option<Everything<'_>> {
    Fields::only(bytes).ok()
}

/// Decoding by postcard, where all bytes are used.
fn reference(bytes: &[u8]) -> Option<Everything<'_>> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Unit),
        any::<i16>().prop_map(Kind::Newtype),
        any::<(u16, [i8; 2])>().prop_map(|(n, pair)| Kind::Tuple(n, pair)),
        (any::<bool>(), -1e9f32..1e9).prop_map(|(flag, real)| Kind::Struct { flag, real }),
    ]
}

prop_compose! {
    fn encoded()(
        (byte, half, word, signed, maybe) in any::<(u8, u16, u32, i32, Option<u32>)>(), kind in kinds(), name in "\\PC{0,6}",
        list in prop::collection::vec(any::<u32>(), 0..=4),
    ) -> Vec<u8> {
        let list = heapless::Vec::from_slice(&list).unwrap();
        let value = Everything { byte, half, word, signed, kind, maybe, name: &name, list };
        postcard::to_slice(&value, &mut [0; 128]).unwrap().to_vec()
    }
}

#[test]
fn varints_that_hold_too_much_are_refused() {
    let half = |bytes: &[u8]| Fields::only::<u16>(bytes).ok();
    assert_eq!(half(&[0xFF, 0xFF, 0x03]), Some(u16::MAX));
    assert_eq!(half(&[0xFF, 0xFF, 0x04]), None);
    assert_eq!(half(&[0xFF, 0xFF, 0x80, 0x00]), None);
    assert_eq!(half(&[0x80]), None);
    let word = |bytes: &[u8]| Fields::only::<u32>(bytes).ok();
    assert_eq!(word(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]), Some(u32::MAX));
    assert_eq!(word(&[0xFF, 0xFF, 0xFF, 0xFF, 0x10]), None);
}

#[test]
fn a_sequence_that_claims_to_be_long_ends_with_its_bytes() {
    let bytes = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1];
    assert!(Fields::only::<heapless::Vec<u32, 8>>(&bytes).is_err());
    let mut fields = Fields::new(&bytes);
    fields.product(8, 1);
    assert!(!fields.intact());
}

#[test]
fn utf8_is_what_the_core_library_says() {
    for lead in 0..=255u8 {
        for second in 0..=255u8 {
            let rests: [&[u8]; 7] = [
                &[],
                &[0x41],
                &[0x80],
                &[0x80, 0x80],
                &[0xBF, 0x80],
                &[0xBF, 0xBF],
                &[0x80, 0xC0],
            ];
            for rest in rests {
                let mut bytes = std::vec![lead, second];
                bytes.extend(rest);
                assert_eq!(is_utf8(&bytes), core::str::from_utf8(&bytes).is_ok(), "{bytes:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn what_postcard_writes_is_read(bytes in encoded()) {
        let value = reference(&bytes);
        prop_assert!(value.is_some());
        prop_assert_eq!(read(&bytes), value);
    }

    /// Changed and cut bytes are refused where postcard refuses them, and are the same value otherwise.
    #[test]
    fn damaged_bytes_read_as_in_postcard(bytes in encoded(), at: prop::sample::Index, byte: u8, cut: prop::sample::Index, whole: bool) {
        let mut bytes = bytes;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let end = if whole { bytes.len() } else { cut.index(bytes.len() + 1) };
        let (ours, theirs) = (read(&bytes[..end]), reference(&bytes[..end]));
        // NaN is not itself.
        prop_assert_eq!(std::format!("{ours:?}"), std::format!("{theirs:?}"));
    }
}
