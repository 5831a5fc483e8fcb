//! Registers of weights, scales and copies: each is wanted where its length is not 0, and only there.

use super::*;

/// Constants of 48 bytes: scales at 0, weights at 16.
const OWN: Own = Own {
    constants: 48,
    scratch: 16,
    fast: 0,
};

/// Registers of a depthwise operation of one channel on an Ethos-U65 of two cores: weights and scales for the first core, nothing for the second one.
fn one_channel() -> Stream {
    let mut stream = Stream::default();
    for (long, short, precision) in [(0x00, 0x100, 0x105), (0x10, 0x110, 0x114)] {
        for register in 0..4 {
            stream.long(long + register, 0);
        }
        for (register, bytes) in [(4, 1), (5, 4), (6, 16)] {
            stream.long(long + register, bytes);
        }
        for register in 10..13 {
            stream.short(short + register, 3);
        }
        stream.short(precision, 1).short(short + 15, 1);
    }
    for code in [0x100, 0x101, 0x102, 0x103, 0x104, 0x107, 0x113, 0x120, 0x121, 0x122] {
        stream.short(code, 0);
    }
    stream.short(0x111, 3).short(0x112, 3).short(0x123, 1);
    stream.short(0x128, 0).long(0x20, 16).long(0x21, 32);
    stream.short(0x129, 0).long(0x22, 0).long(0x23, 16);
    stream.long(0x91, 0).long(0x93, 0);
    stream
}

/// Answer of the walk for an operation behind these registers.
fn walked(mut stream: Stream, operation: u32, own: &Own) -> Result<(), Why> {
    stream.short(operation, 0).short(0, 0xFFFF);
    walk(&stream.payload(U65), own).map(drop).map_err(|refused| refused.why)
}

fn depthwise(registers: &[(u32, u64)]) -> Result<(), Why> {
    let mut stream = one_channel();
    for &(register, value) in registers {
        stream.long(register, value);
    }
    walked(stream, 0x03, &OWN)
}

#[test]
fn a_core_with_nothing_to_do_needs_no_base() {
    // Of the second core no base is set; then one that an earlier operation left, in a region of its own.
    assert_eq!(depthwise(&[]), Ok(()));
    assert_eq!(depthwise(&[(0x90, 1 << 20), (0x92, 1 << 20)]), Ok(()));
    let smaller = Own { constants: 47, ..OWN };
    assert_eq!(walked(one_channel(), 0x03, &smaller), Err(Why::Outside));
    for (base, length) in [(0x90, 0x91), (0x92, 0x93)] {
        assert_eq!(depthwise(&[(length, 1)]), Err(Why::Parameter), "{length:#x}");
        assert_eq!(depthwise(&[(base, 47), (length, 1)]), Ok(()), "{length:#x}");
        assert_eq!(depthwise(&[(base, 48), (length, 1)]), Err(Why::Outside), "{length:#x}");
    }
}

/// The registers without those of one range.
fn without(base: u32) -> Stream {
    let mut stream = Stream::default();
    let mut words = one_channel().0.into_iter();
    while let Some(word) = words.next() {
        let data = (word & 0x4000 != 0).then(|| words.next().expect("data"));
        if data.is_none() || ![base, base + 1].contains(&(word & 0x3FF)) {
            stream.0.extend([word].into_iter().chain(data));
        }
    }
    stream
}

#[test]
fn either_core_and_either_kind_of_constants_may_be_empty() {
    for base in [0x20, 0x22, 0x90, 0x92] {
        for (length, said) in [
            (Some(0), Ok(())),
            (Some(1), Err(Why::Parameter)),
            // A length that no command has set may be any.
            (None, Err(Why::Parameter)),
        ] {
            let mut stream = without(base);
            if let Some(length) = length {
                stream.long(base + 1, length);
            }
            assert_eq!(walked(stream, 0x03, &OWN), said, "{base:#x}: {length:?}");
        }
    }
}

#[test]
fn a_copy_of_nothing_needs_no_places() {
    for (length, fine) in [(Some(0), true), (Some(16), false), (None, false)] {
        let mut stream = Stream::default();
        if let Some(length) = length {
            stream.long(0x32, length);
        }
        assert_eq!(walked(stream, 0x10, &OWN).is_ok(), fine, "{length:?}");
    }
}
