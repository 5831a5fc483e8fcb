//! Reading and checking of a file by [`include_model!`](crate::include_model), when the program is compiled. Nothing here is linked.
//!
//! The compiler counts loops and calls of constants, and reports constants that take long. So nothing walks the weights but the checksum, which takes
//! eight bytes a turn and leaves files beyond [`CHECKED_BYTES`] to load.

use crate::arena::MAX_REGIONS;
use crate::blob::{self, FORMAT_VERSION, HEADER_BYTES, OLDEST_VERSION, Receipt, half, section, stored, word};
use crate::bundle;
use crate::crc;
use crate::kernels::Backend;
use crate::kernels::table::{KernelId, KernelSet};
use crate::signed::content;
use crate::tensor::DType;
use crate::typed::Described;

/// The largest file whose checksum is taken when the program is compiled.
pub const CHECKED_BYTES: usize = 256 * 1024;

/// A file at an address that suits it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct File<const N: usize>(pub [u8; N]);

/// The model in a file, checked.
///
/// # Panics
/// Where it is no model that this build of the runtime runs: an error of the compiler.
#[track_caller]
pub const fn checked(file: &'static [u8]) -> &'static [u8] {
    let model = content(file);
    if bundle::starts(model) {
        panic!("this is a bundle of several models: name those that you want with arenite::include_bundle!");
    }
    if model.len() < HEADER_BYTES || !blob::starts(model) {
        panic!("this is no model file: `pack` writes them");
    }
    let version = half(model, blob::field::VERSION);
    if version > FORMAT_VERSION {
        panic!(
            "the model has a newer format version than this runtime: update the runtime, or pack it with this version's `pack`"
        );
    }
    if version < OLDEST_VERSION {
        panic!(
            "the model has an older format version than this runtime: `arenite migrate` converts it or says how to pack it again"
        );
    }
    let total = word(model, blob::field::TOTAL) as usize;
    if !blob::is_length_right(model) {
        panic!("the model's header contradicts itself: pack the model again");
    }
    if model.len() < total {
        panic!("the model file is cut: it is shorter than it says");
    }
    let (model, _) = model.split_at(total);
    inside(model);
    linked(blob::kernel_set(model));
    if total <= CHECKED_BYTES && crc::at_compile_time(model, blob::field::CRC) != word(model, blob::field::CRC) {
        panic!("the model file is damaged: its checksum does not match");
    }
    let mut ports = Reader::of(model, blob::field::PORTS);
    let mut port = 0;
    while port < inputs(model) + outputs(model) {
        ports.port();
        port += 1;
    }
    model
}

/// Panics where a section does not lie in the file.
#[track_caller]
const fn inside(model: &[u8]) {
    let sections = blob::field::SECTIONS;
    let mut at = 0;
    while at < sections.len() {
        if !blob::is_inside(model, stored(model, sections[at])) {
            panic!("the model's header contradicts itself: pack the model again");
        }
        at += 1;
    }
    if blob::unknown_kind(model).is_some() {
        panic!(
            "the model has a section that this version does not know: update arenite, or pack with the version that you have"
        );
    }
    if !blob::is_table_right(model) {
        panic!("the model's header contradicts itself: pack the model again");
    }
    let (init, stored) = (
        section(model, blob::field::STATE_INIT),
        stored(model, blob::field::STATE_INIT),
    );
    let (mut run, mut bytes) = (0, 0);
    while run < model[blob::field::STATE_RUNS] as u32 {
        let count = word(model, (stored.offset + 4 * run) as usize) >> 8;
        if count == 0 {
            panic!("the model's header contradicts itself: pack the model again");
        }
        bytes += count;
        run += 1;
    }
    if run > 0 && bytes != init.len {
        panic!("the model's header contradicts itself: pack the model again");
    }
}

/// Panics where this build has not every kernel of the set.
#[track_caller]
const fn linked(set: KernelSet) {
    let mut number = 0;
    loop {
        if set.has(number) {
            match KernelId::from_u8(number) {
                None => panic!(
                    "the model has a kernel that this version does not know: update arenite, or pack with the version that you have"
                ),
                Some(kernel) if kernel.backend().available() => {}
                Some(kernel) => refuse(kernel.backend()),
            }
        }
        if number == u8::MAX {
            return;
        }
        number += 1;
    }
}

/// Whether a file is the one that the macro has read: its length, and the checksum of the model that begins behind `ahead` bytes of it.
pub const fn is_file(file: &[u8], length: usize, ahead: usize, crc: u32) -> bool {
    file.len() == length && word(file, ahead + blob::field::CRC) == crc
}

/// Panics by the name of what has to be turned on for the kernels of a backend.
#[track_caller]
pub const fn refuse(backend: Backend) {
    panic!("{}", wanted(backend))
}

/// Says what has to be turned on for the kernels of a backend.
pub const fn wanted(backend: Backend) -> &'static str {
    match backend {
        Backend::Dsp => {
            "the model needs kernels of the feature `dsp`, which is off: turn it on (arenite = { features = [\"dsp\"] }) where the core has \
             the DSP extension, or pack for another target (--target cortex-m3)"
        }
        Backend::Mve => {
            "the model needs kernels of the feature `mve`, which is off: turn it on (arenite = { features = [\"dsp\", \"mve\"] }) where the \
             core has Helium, or pack for another target (--target cortex-m33)"
        }
        Backend::Dotprod => {
            "the model needs the dot product instructions, which this build is not for: build with -C target-feature=+dotprod where the core has \
             them, or pack for another target (--target aarch64)"
        }
        Backend::I8mm => {
            "the model needs the products of matrices of bytes, which this build is not for: build with -C target-feature=+dotprod,+i8mm where the \
             core has them, or pack for another target (--target aarch64-dotprod)"
        }
        Backend::Sme => {
            "the model needs kernels of the feature `sme`, which is off: turn it on (arenite = { features = [\"sme\"] }) where the core has the \
             scalable matrix extension of AArch64, or pack for another target (--target aarch64-i8mm)"
        }
        Backend::Rvv => {
            "the model needs kernels of the feature `rvv`, which is off: turn it on (arenite = { features = [\"rvv\"] }) where the core has \
             the vector extension of RISC-V, or pack for another target (--target riscv64gc, riscv32imac)"
        }
        _ => "the model needs kernels that this build has not: pack it for another target",
    }
}

/// The receipt of a model whose checksum was right when the program was compiled, or is beyond [`CHECKED_BYTES`].
pub const fn receipt(model: &[u8]) -> Receipt {
    Receipt {
        length: word(model, blob::field::TOTAL),
        crc: word(model, blob::field::CRC),
        version: half(model, blob::field::VERSION),
    }
}

/// Number of inputs.
pub const fn inputs(model: &[u8]) -> usize {
    model[blob::field::INPUTS] as usize
}

/// Number of outputs.
pub const fn outputs(model: &[u8]) -> usize {
    model[blob::field::OUTPUTS] as usize
}

/// The form of as many inputs or outputs: up to four make a tuple.
pub const fn form(count: usize) -> usize {
    if count <= 4 { count } else { 0 }
}

/// Bytes of arena in the first region. A model of more regions wants slices of the user's.
pub const fn arena_bytes(model: &[u8]) -> usize {
    blob::arena_bytes(model, 0)
}

/// Whether all of the arena is in the first region.
pub const fn one_region(model: &[u8]) -> bool {
    let mut region = 1;
    while region < MAX_REGIONS {
        if blob::arena_bytes(model, region) != 0 {
            return false;
        }
        region += 1;
    }
    true
}

/// Elements of input `index`; of one that is not there none.
pub const fn input_elements(model: &'static [u8], index: usize) -> usize {
    if index < inputs(model) {
        port(model, index).elements()
    } else {
        0
    }
}

/// Elements of output `index`; of one that is not there none.
pub const fn output_elements(model: &'static [u8], index: usize) -> usize {
    if index < outputs(model) {
        port(model, inputs(model) + index).elements()
    } else {
        0
    }
}

/// The number of the type of input `index`; of one that is not there any.
pub const fn input_type(model: &'static [u8], index: usize) -> u8 {
    if index < inputs(model) {
        port(model, index).dtype
    } else {
        0
    }
}

/// The number of the type of output `index`; of one that is not there any.
pub const fn output_type(model: &'static [u8], index: usize) -> u8 {
    if index < outputs(model) {
        port(model, inputs(model) + index).dtype
    } else {
        0
    }
}

/// Descriptions of `COUNT` ports from `first` on.
pub const fn described<const COUNT: usize>(model: &'static [u8], first: usize) -> [Described; COUNT] {
    let mut all = [Described::NONE; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = port(model, first + at).described();
        at += 1;
    }
    all
}

/// Number of class labels.
pub const fn label_count(model: &'static [u8]) -> usize {
    let mut labels = Reader::of(model, blob::field::LABELS);
    if labels.at == labels.end {
        0
    } else {
        labels.varint() as usize
    }
}

/// The class labels.
pub const fn labels<const COUNT: usize>(model: &'static [u8]) -> [&'static str; COUNT] {
    let mut all = [""; COUNT];
    let mut labels = Reader::of(model, blob::field::LABELS);
    if COUNT > 0 {
        labels.varint();
    }
    let mut at = 0;
    while at < COUNT {
        all[at] = labels.text();
        at += 1;
    }
    all
}

/// The model of this name in a bundle.
///
/// # Panics
/// Where there is none: an error of the compiler.
#[track_caller]
pub const fn entry(file: &'static [u8], name: &str) -> &'static [u8] {
    let file = content(file);
    if !bundle::starts(file) {
        panic!("this is no bundle of several models: include a single model with arenite::include_model!");
    }
    match bundle::named(file, name) {
        Some(model) => model,
        None => panic!("the bundle has no model of this name, or is cut: `arenite inspect` lists them"),
    }
}

/// The larger number.
pub const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// A port as it is read.
struct Port {
    name: &'static str,
    dtype: u8,
    shape: [u32; blob::MAX_RANK],
    rank: usize,
    scale: f32,
    zero_point: i32,
}

impl Port {
    const fn elements(&self) -> usize {
        let (mut product, mut axis) = (1usize, 0);
        while axis < self.rank {
            product = match product.checked_mul(self.shape[axis] as usize) {
                Some(product) => product,
                None => panic!("an input or output has too many elements"),
            };
            axis += 1;
        }
        product
    }

    const fn described(&self) -> Described {
        Described {
            name: self.name,
            dtype: match self.dtype {
                0 => DType::F32,
                1 => DType::I8,
                2 => DType::U8,
                3 => DType::I16,
                4 => DType::I32,
                5 => DType::I64,
                _ => DType::Bool,
            },
            extents: self.shape,
            rank: self.rank,
            scale: self.scale,
            zero_point: self.zero_point,
        }
    }
}

/// The port of this number, inputs first.
const fn port(model: &'static [u8], number: usize) -> Port {
    let mut ports = Reader::of(model, blob::field::PORTS);
    let mut before = 0;
    while before < number {
        ports.port();
        before += 1;
    }
    ports.port()
}

/// Reads the encoding of `crate::fields` in constants.
struct Reader {
    bytes: &'static [u8],
    at: usize,
    end: usize,
}

impl Reader {
    const fn of(model: &'static [u8], field: usize) -> Self {
        let section = section(model, field);
        Self {
            bytes: model,
            at: section.offset as usize,
            end: section.offset as usize + section.len as usize,
        }
    }

    const fn byte(&mut self) -> u8 {
        if self.at >= self.end {
            panic!("the description of an input, an output or a label is cut: pack the model again");
        }
        self.at += 1;
        self.bytes[self.at - 1]
    }

    const fn varint(&mut self) -> u32 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            if shift > 28 {
                panic!(
                    "a number in the description of an input, an output or a label is too long: pack the model again"
                );
            }
            value |= ((byte & 0x7F) as u32) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    const fn text(&mut self) -> &'static str {
        let len = self.varint() as usize;
        if len > self.end - self.at {
            panic!("the name of an input, an output or a class is cut: pack the model again");
        }
        let (_, from) = self.bytes.split_at(self.at);
        let (text, _) = from.split_at(len);
        self.at += len;
        match core::str::from_utf8(text) {
            Ok(text) => text,
            Err(_) => panic!("the name of an input, an output or a class is no UTF-8: pack the model again"),
        }
    }

    const fn port(&mut self) -> Port {
        let name = self.text();
        // The place: region and offset.
        self.byte();
        self.varint();
        let dtype = self.varint();
        if dtype > DType::Bool as u32 {
            panic!("an input or output has an unknown type: update arenite");
        }
        let rank = self.varint() as usize;
        if rank > blob::MAX_RANK {
            panic!("an input or output has too many axes: pack the model again");
        }
        let mut shape = [0; blob::MAX_RANK];
        let mut axis = 0;
        while axis < rank {
            shape[axis] = self.varint();
            axis += 1;
        }
        let scale = f32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()]);
        let zigzag = self.varint();
        Port {
            name,
            dtype: dtype as u8,
            shape,
            rank,
            scale,
            zero_point: (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32),
        }
    }
}
