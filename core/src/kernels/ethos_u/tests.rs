//! The walk against an oracle that touches every byte by itself: whatever commands say, what is accepted stays inside, and maps that end with their region are
//! accepted.

mod ranges;

extern crate std;
use std::collections::BTreeMap;
use std::vec::Vec;
use std::{format, vec};

use super::commands::{Config, Own, Why, payload, walk};

/// Numbers of a linear congruence.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// An U55 of 24 KiB, and an U65 of two cores.
const U55: u32 = 0x1807;
const U65: u32 = 0x1000_6009;

/// Words of a command stream.
#[derive(Clone, Default)]
struct Stream(Vec<u32>);

impl Stream {
    fn short(&mut self, code: u32, value: u64) -> &mut Self {
        self.0.push(code | (value as u32) << 16);
        self
    }

    fn long(&mut self, code: u32, value: u64) -> &mut Self {
        self.0.push(code | 0x4000 | ((value >> 32) as u32) << 16);
        self.0.push(value as u32);
        self
    }

    fn payload(&self, config: u32) -> Vec<u8> {
        let len = self.0.len() as u32;
        let head = [
            0x3150_4F43,
            1,
            config,
            0x1006_6001,
            5,
            5,
            5,
            2 | (len & 0xFFFF) << 16 | (len >> 16) << 8,
        ];
        head.iter().chain(&self.0).flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Contents of the registers; 0 for those that nobody has set, as after a reset.
#[derive(Default)]
struct Oracle {
    short: BTreeMap<u32, u64>,
    long: BTreeMap<u32, u64>,
    /// Region, end, and whether it was written.
    touched: Vec<(u64, u64, bool)>,
    /// Whether an operation had weights.
    weighed: bool,
}

impl Oracle {
    fn s(&self, code: u32) -> u64 {
        self.short.get(&code).copied().unwrap_or(0)
    }

    fn l(&self, code: u32) -> u64 {
        self.long.get(&code).copied().unwrap_or(0)
    }

    fn run(words: &[u32]) -> Self {
        let mut oracle = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let (code, param) = (word & 0xFFFF, u64::from(word >> 16));
            match code {
                0 => break,
                0x4000..=0x43FF => {
                    let data = words.next().expect("data");
                    oracle.long.insert(code & 0x3FF, param << 32 | u64::from(data));
                }
                0x100..=0x3FF => {
                    oracle.short.insert(code, param);
                }
                0x10 => oracle.copy(),
                _ => oracle.operate(code, param),
            }
        }
        oracle
    }

    fn copy(&mut self) {
        let (from, to, len) = (self.l(0x30), self.l(0x31), self.l(0x32));
        if len == 0 {
            return;
        }
        self.touched.push((self.s(0x130), from + len, false));
        if self.s(0x131) & 0x100 == 0 {
            self.touched.push((self.s(0x131), to + len, true));
        }
    }

    fn operate(&mut self, code: u32, param: u64) {
        if !matches!(code, 2 | 3 | 5 | 6) {
            return;
        }
        let [height, width, depth] = [0x112, 0x111, 0x113].map(|code| self.s(code) + 1);
        let all = |height: u64, width: u64| (0..height).flat_map(move |y| (0..width).map(move |x| (y, x)));
        let size = 1 << (self.s(0x114) >> 1 & 3);
        for (y, x) in all(height, width) {
            self.pixel([0x10, 0x110, 0x114], (y, x, depth), size, true);
        }
        let size = 1 << (self.s(0x105) >> 2 & 3);
        let depth_in = self.s(0x104) + 1;
        // It is not known which of the two an NPU takes, but for convolutions.
        let depths = if code == 2 {
            vec![depth_in]
        } else {
            vec![depth_in, depth]
        };
        let stride = self.s(0x122);
        let (stride_y, stride_x) = (
            1 + (stride >> 1 & 1) + 2 * (stride >> 9 & 7),
            1 + (stride & 1) + 2 * (stride >> 6 & 7),
        );
        let up = if self.s(0x107) == 0 { 1 } else { 2 };
        let (rows, columns) = (self.s(0x121) + 1, self.s(0x120) + 1);
        let (top, left, right, bottom) = (self.s(0x100), self.s(0x101), self.s(0x102), self.s(0x103));
        let height_in = ((height - 1) * stride_y + rows).saturating_sub(top + bottom);
        let width_in = ((width - 1) * stride_x + columns).saturating_sub(left + right);
        for depth in depths {
            for (y, x) in all(height, width) {
                if code == 6 {
                    self.pixel([0x00, 0x100, 0x105], (y, x, depth), size, false);
                    continue;
                }
                for (ky, kx) in all(rows, columns) {
                    let (y, x) = (
                        (y * stride_y + ky).wrapping_sub(top),
                        (x * stride_x + kx).wrapping_sub(left),
                    );
                    if y < height_in && x < width_in {
                        self.pixel([0x00, 0x100, 0x105], (y / up, x / up, depth), size, false);
                    }
                }
            }
        }
        if code == 6 && !(5..=7).contains(&param) && self.s(0x180) & 0x80 == 0 {
            let size = 1 << (self.s(0x185) >> 2 & 3);
            let times = |bit: u64| 1 - (self.s(0x180) >> bit & 1);
            let [one_y, one_x, one_c] = [0, 1, 2].map(times);
            for (y, x) in all(height, width) {
                let at = (y * one_y, x * one_x, 1 + (depth - 1) * one_c);
                self.pixel([0x80, 0x180, 0x185], at, size, false);
            }
        }
        if code == 2 || code == 3 {
            self.weighed = true;
            for core in 0..=self.s(0x123) {
                let [weights, scales] = [[0x20, 0x22], [0x90, 0x92]][core as usize];
                for (region, base) in [(0x128, weights), (0x129, scales)] {
                    let (start, length) = (self.l(base), self.l(base + 1));
                    if length > 0 {
                        self.touched.push((self.s(region), start + length, false));
                    }
                }
            }
        }
    }

    /// All channels of a pixel, one after the other.
    fn pixel(&mut self, [long, short, precision]: [u32; 3], (y, x, depth): (u64, u64, u64), size: u64, written: bool) {
        let (width, above) = (self.s(short + 10) + 1, [self.s(short + 11) + 1, self.s(short + 12) + 1]);
        let (right, x) = if x < width { (0, x) } else { (1, x - width) };
        let rows = above[right];
        let (below, y) = if y < rows { (0, y) } else { (1, y - rows) };
        let base = self.l(long + (right + 2 * below) as u32);
        let [columns, rows, bricks] = [4, 5, 6].map(|register| self.l(long + register));
        let is_bricks = self.s(precision) >> 6 & 3 == 1;
        for c in 0..depth {
            let at = if is_bricks {
                base + y * rows + x * 16 * size + c / 16 * bricks + c % 16 * size
            } else {
                base + y * rows + x * columns + c * size
            };
            self.touched.push((self.s(short + 15), at + size, written));
        }
    }

    /// The first address range outside the regions, if any.
    fn fault(&self, own: &Own) -> Option<(u64, u64, bool)> {
        let bytes = |region: u64| match region {
            0 => own.constants,
            1 => own.scratch,
            2 => own.fast,
            _ => 0,
        };
        let outside = |&&(region, end, written): &&(u64, u64, bool)| {
            region > 2 || end > u64::from(bytes(region)) || (written && region == 0)
        };
        self.touched.iter().find(outside).copied()
    }

    /// Regions that end where the last byte is that is touched.
    fn least(&self) -> [u64; 3] {
        [0, 1, 2].map(|region| {
            let ends = self.touched.iter().filter(|touched| touched.0 == region);
            ends.map(|touched| touched.1).max().unwrap_or(0)
        })
    }
}

/// Sets all registers of a map.
fn map(stream: &mut Stream, random: &mut Random, [long, short, precision]: [u32; 3], shift: u64) {
    let size = random.below(3);
    let bricks = random.below(2);
    for register in 0..4 {
        stream.long(long + register, random.below(60) * 8);
    }
    for register in 4..7 {
        // Of bricks the second is what an NPU takes whatever it says.
        stream.long(long + register, random.below(40) << random.below(3));
    }
    for register in 10..13 {
        stream.short(short + register, random.below(5));
    }
    stream.short(precision, size << shift | bricks << 6 | 1);
    let region = if long == 0x10 {
        1 + random.below(2)
    } else {
        random.below(3)
    };
    stream.short(short + 15, region);
}

/// Commands that set registers, and operations between them.
fn stream(random: &mut Random) -> Stream {
    let mut stream = Stream::default();
    map(&mut stream, random, [0x00, 0x100, 0x105], 2);
    map(&mut stream, random, [0x10, 0x110, 0x114], 1);
    map(&mut stream, random, [0x80, 0x180, 0x185], 2);
    for code in [0x111, 0x112, 0x120, 0x121] {
        stream.short(code, random.below(5));
    }
    for code in [0x104, 0x113] {
        stream.short(code, random.below(20));
    }
    for code in 0x100..0x104 {
        stream.short(code, random.below(3));
    }
    let stride = random.below(4) | random.below(2) << 6 | random.below(2) << 9;
    stream.short(0x122, stride).short(0x107, random.below(3));
    stream.short(0x180, random.below(8)).short(0x123, random.below(2));
    for base in [0x20, 0x22, 0x90, 0x92] {
        // A core may have nothing to do: compilers then leave the register of the place as it is.
        let length = if random.one_in(4) { 0 } else { 1 + random.below(300) };
        if length > 0 || random.one_in(2) {
            stream.long(base, random.below(300));
        }
        stream.long(base + 1, length);
    }
    for code in [0x128, 0x129, 0x130] {
        stream.short(code, random.below(3));
    }
    stream.short(0x131, if random.one_in(5) { 0x103 } else { 1 + random.below(2) });
    let length = if random.one_in(4) { 0 } else { random.below(40) * 16 };
    stream.long(0x32, length);
    for code in [0x30, 0x31] {
        if length > 0 || random.one_in(2) {
            stream.long(code, random.below(40) * 16);
        }
    }
    for _ in 0..=random.below(3) {
        match random.below(5) {
            0 => stream.short(0x02, 0),
            1 => stream.short(0x03, 0),
            2 => stream.short(0x05, random.below(3)),
            3 => {
                if !random.one_in(4) {
                    stream.short(0x107, 0);
                }
                stream.short(0x06, random.below(10))
            }
            _ => stream.short(0x10, 0),
        };
        if random.one_in(2) {
            stream.short(0x12, 0).short(0x113, random.below(20));
        }
    }
    stream
}

fn own(random: &mut Random) -> Own {
    let [constants, scratch, fast] = [0, 1, 2].map(|_| 1 << (8 + random.below(6)));
    Own {
        constants,
        scratch,
        fast,
    }
}

#[test]
fn what_is_accepted_stays_inside() {
    let mut random = Random(1);
    let (mut accepted, mut refused) = (0, BTreeMap::new());
    for round in 0..60_000 {
        let mut stream = stream(&mut random);
        // One word is another one, or is missing.
        if random.one_in(3) {
            let at = random.below(stream.0.len() as u64) as usize;
            match random.below(3) {
                0 => stream.0[at] ^= 1 << random.below(32),
                1 => stream.0[at] = random.below(1 << 31) as u32,
                _ => {
                    stream.0.remove(at);
                }
            }
        }
        stream.short(0, 0xFFFF);
        let (own, config) = (own(&mut random), if random.one_in(2) { U55 } else { U65 });
        match walk(&stream.payload(config), &own) {
            Ok(_) => {
                accepted += 1;
                let fault = Oracle::run(&stream.0).fault(&own);
                assert_eq!(fault, None, "round {round}: {own:?}");
            }
            Err(error) => *refused.entry(format!("{:?}", error.why)).or_insert(0) += 1,
        }
    }
    assert!(accepted > 3_000, "{accepted}");
    for why in [Why::Command, Why::Parameter, Why::Outside, Why::Region, Why::Stop] {
        assert!(refused.contains_key(&format!("{why:?}")), "{why:?} of {refused:?}");
    }
}

#[test]
fn what_ends_with_its_region_is_accepted_and_a_byte_less_is_not() {
    let mut random = Random(2);
    let mut exact = 0;
    for round in 0..20_000 {
        let mut stream = stream(&mut random);
        stream.short(0, 0xFFFF);
        let oracle = Oracle::run(&stream.0);
        let all = Own {
            constants: 1 << 30,
            scratch: 1 << 30,
            fast: 1 << 30,
        };
        let bytes = stream.payload(U65);
        // Bricks are taken as a whole, weights of all operations looked at.
        let whole = [0x105, 0x114, 0x185].iter().all(|&code| oracle.s(code) >> 6 & 1 == 0);
        // Of windows further apart than they are large, none may reach the last row.
        let apart = oracle.s(0x122) > 0 && oracle.s(0x120).min(oracle.s(0x121)) < 3;
        if walk(&bytes, &all).is_err() || !whole || !oracle.weighed || apart || oracle.s(0x123) == 0 {
            continue;
        }
        let [constants, scratch, fast] = oracle.least().map(|bytes| bytes as u32);
        let least = Own {
            constants,
            scratch,
            fast,
        };
        assert!(
            walk(&bytes, &least).is_ok(),
            "round {round}: {:?}",
            walk(&bytes, &least)
        );
        let smaller = [
            Own {
                constants: constants.wrapping_sub(1),
                ..least
            },
            Own {
                scratch: scratch.wrapping_sub(1),
                ..least
            },
            Own {
                fast: fast.wrapping_sub(1),
                ..least
            },
        ];
        for (bytes_of, own) in [constants, scratch, fast].into_iter().zip(smaller) {
            if bytes_of > 0 {
                assert_eq!(
                    walk(&bytes, &own).map_err(|e| e.why),
                    Err(Why::Outside),
                    "round {round}"
                );
            }
        }
        exact += 1;
    }
    assert!(exact > 100, "{exact}");
}

/// A copy of 64 bytes of constants into the scratch.
fn copying() -> Stream {
    let mut stream = Stream::default();
    stream.short(0x130, 0).short(0x131, 1);
    stream.long(0x30, 0).long(0x31, 16).long(0x32, 64).short(0x10, 0);
    stream
}

const SMALL: Own = Own {
    constants: 64,
    scratch: 80,
    fast: 0,
};

#[test]
fn payloads_are_read_as_the_driver_reads_them() {
    let mut stream = copying();
    stream.short(0, 0xFFFF);
    let good = stream.payload(U55);
    let found = walk(&good, &SMALL).expect("accepted");
    assert_eq!((found.config, found.id, found.first), (Config(U55), 0x1006_6001, 8));
    assert_eq!(found.commands.len(), 4 * stream.0.len());
    assert_eq!(
        format!("{}, {}", found.config, Config(U65)),
        "ethos-u55-128, ethos-u65-512"
    );
    assert!(found.config.runs(Config(U55 | 1 << 27)) && !found.config.runs(Config(U65)));
    let changed = |word: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
        payload(&bytes).map(|_| ()).map_err(|e| (e.word as usize, e.why))
    };
    let count = stream.0.len() as u32;
    assert_eq!(changed(4, 5), Ok(()));
    for (word, value, why) in [
        (0, 0x3250_4F43, Why::Payload),
        // A second configuration, an action of old drivers, a stream before its place, and lengths.
        (4, 1, Why::Payload),
        (4, 3, Why::Payload),
        (4, 2 | 1 << 16, Why::Payload),
        (7, 2 | (count + 1) << 16, Why::Payload),
        (7, 2 | (count - 1) << 16, Why::Payload),
        (7, 2 | 1 << 8, Why::Payload),
        (2, 0x2000_0118, Why::Product),
        (1, 5, Why::Payload),
    ] {
        let (_, found) = changed(word, value).expect_err("refused");
        assert_eq!(found, why, "word {word}: {value:#x}");
    }
    for len in 0..good.len() {
        assert_eq!(
            payload(&good[..len]).map_err(|e| e.why).err(),
            Some(Why::Payload),
            "{len}"
        );
    }
    // Off its place by a word.
    let mut moved = good.clone();
    moved.drain(16..20);
    assert_eq!(payload(&moved).map_err(|e| e.why).err(), Some(Why::Payload));
}

#[test]
fn what_is_wrong_is_refused_at_its_word() {
    let refused = |stream: &Stream, own: &Own| walk(&stream.payload(U55), own).map_err(|e| (e.word - 8, e.why)).err();
    let ended = |stream: &Stream| {
        let mut ended = stream.clone();
        ended.short(0, 0xFFFF);
        ended
    };
    assert_eq!(refused(&ended(&copying()), &SMALL), None);
    assert_eq!(refused(&copying(), &SMALL), Some((9, Why::Stop)));
    let mut twice = ended(&copying());
    twice.short(0, 0xFFFF);
    assert_eq!(refused(&twice, &SMALL), Some((10, Why::Stop)));
    for (own, why) in [
        (Own { constants: 63, ..SMALL }, Why::Outside),
        (Own { scratch: 79, ..SMALL }, Why::Outside),
    ] {
        assert_eq!(refused(&ended(&copying()), &own), Some((8, why)));
    }
    // A destination among the constants, in a region that is not there, in memory of the NPU, beyond that.
    for (region, why) in [
        (0, Some(Why::Constants)),
        (2, Some(Why::Outside)),
        (3, Some(Why::Region)),
        (0x103, None),
        (0x503, Some(Why::Region)),
    ] {
        let mut stream = copying();
        stream.short(0x131, region).short(0x10, 0);
        assert_eq!(refused(&ended(&stream), &SMALL).map(|(_, why)| why), why, "{region:#x}");
    }
    let mut stream = copying();
    stream.short(0x131, 0x103).long(0x31, 24 * 1024 - 48).short(0x10, 0);
    assert_eq!(refused(&ended(&stream), &SMALL), Some((12, Why::Outside)));
    for (word, why) in [
        (0x01, Why::Command),
        (0x13, Why::Command),
        (0x106, Why::Command),
        (0x8010, Why::Command),
        (0x0410, Why::Command),
        (0x4007, Why::Command),
        (0x10 | 1 << 16, Why::Parameter),
        (0x02 | 1 << 16, Why::Parameter),
        (0x05 | 3 << 16, Why::Parameter),
        (0x06 | 10 << 16, Why::Parameter),
        (0x02, Why::Parameter),
    ] {
        let mut stream = copying();
        stream.0.extend([word, 0x12]);
        let found = refused(&ended(&stream), &SMALL);
        assert_eq!(found, Some((9, why)), "{word:#x}");
    }
}

#[test]
fn any_bytes_end() {
    let mut random = Random(3);
    for _ in 0..20_000 {
        let mut stream = Stream::default();
        for _ in 0..random.below(40) {
            let code = [0x00, 0x10, 0x100, 0x4000, 0x4020, 0x4080][random.below(6) as usize];
            stream
                .0
                .push((code + random.below(40) as u32) | ((random.below(1 << 16) as u32) << 16));
        }
        let mut bytes = stream.payload(U65);
        let len = bytes.len() as u64;
        for _ in 0..random.below(3) {
            bytes[random.below(len) as usize] = random.below(256) as u8;
        }
        bytes.truncate((len - random.below(3)) as usize);
        let _ = walk(&bytes, &own(&mut random));
    }
}
