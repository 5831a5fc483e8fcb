//! The module of a model, as Rust.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arenite_checks::embed::wanted;
use arenite_checks::kernels::api::candidate::Candidate;
use arenite_checks::kernels::api::kernel::Kernel;
use arenite_checks::kernels::table::KernelVisitor;
use arenite_checks::{DType, KernelId, MAX_REGIONS, Model, Port, Slot, StateInit};

use crate::rust::expression;

/// The most inputs or outputs that are a tuple.
const TUPLE: usize = 4;

/// Items of the module of a checked model of the file `name`: constants, types, steps, and the network made of them. `shared`: where the weights of equal bytes
/// stand, of a bundle.
///
/// # Errors
/// Models of which no program can be generated.
pub(crate) fn items(name: &str, model: &Model<'_>, file: &[u8], shared: Option<&str>) -> Result<String, String> {
    let header = model.header();
    let mut text = String::new();
    let [inputs, outputs] = [header.inputs, header.outputs].map(usize::from);
    let find = |port: Option<Port<'_>>| port.map(owned).ok_or_else(|| "a port does not decode".to_owned());
    let inputs: Vec<Described> = (0..inputs).map(|at| find(model.input(at))).collect::<Result<_, _>>()?;
    let outputs: Vec<Described> = (0..outputs)
        .map(|at| find(model.output(at)))
        .collect::<Result<_, _>>()?;
    let regions: [usize; MAX_REGIONS] = std::array::from_fn(|region| model.arena_bytes(region));
    let state = model.state_bytes();
    let costs: Vec<u64> = model.costs().map(|cost| cost.total()).collect();
    let labels = labels(model, file)?;
    constants(&mut text, regions, state, [&inputs, &outputs], &labels, &costs);
    types(&mut text, [&inputs, &outputs]);
    match shared {
        Some(path) => put(&mut text, format_args!("use {path} as WEIGHTS;")),
        None => put(&mut text, format_args!("{}", weights("WEIGHTS", model.weights()))),
    }
    let steps = steps(&mut text, name, model)?;
    network(&mut text, model, steps, regions, [&inputs, &outputs]);
    put(
        &mut text,
        format_args!("const WEIGHTS_CRC: u32 = {};", crc32(model.weights())),
    );
    let test = section(file, header.self_test.offset, header.self_test.len);
    put(&mut text, format_args!("const SELF_TEST: &[u8] = {};", bytes(test)));
    Ok(text)
}

/// The static of a model's weights.
pub(crate) fn weights(name: &str, weights: &[u8]) -> String {
    format!(
        "static {name}: rt::Weights<{}> = rt::Weights(*{});",
        weights.len(),
        bytes(weights)
    )
}

/// How the macro `__compiled!` is told of a model: whether its arena is one, and whether a run can be refused.
pub(crate) fn forms(model: &Model<'_>) -> [&'static str; 2] {
    let one_region = (1..MAX_REGIONS).all(|region| model.arena_bytes(region) == 0);
    let header = model.header();
    [
        if one_region { "one" } else { "several" },
        if usize::from(header.inputs) > TUPLE {
            "unset"
        } else if takes_an_index(model) {
            "indexed"
        } else {
            "set"
        },
    ]
}

/// A port's description, apart from the file.
struct Described {
    name: String,
    slot: Slot,
    dtype: DType,
    shape: Vec<u32>,
    scale: f32,
    zero_point: i32,
}

fn owned(port: Port<'_>) -> Described {
    Described {
        name: port.name.to_owned(),
        slot: port.slot,
        dtype: port.dtype,
        shape: port.shape.to_vec(),
        scale: port.scale,
        zero_point: port.zero_point,
    }
}

impl Described {
    /// Number of elements; load has multiplied them.
    fn elements(&self) -> usize {
        self.shape.iter().map(|&extent| extent as usize).product()
    }

    fn variant(&self) -> String {
        format!("rt::op::DType::{:?}", self.dtype)
    }

    fn constant(&self) -> String {
        format!(
            "rt::Described::new({:?}, {}, &{:?}, f32::from_bits({}), {})",
            self.name,
            self.variant(),
            self.shape,
            self.scale.to_bits(),
            self.zero_point
        )
    }

    fn place(&self) -> String {
        let Slot { region, offset } = self.slot;
        let bytes = self.elements() * self.dtype.bytes();
        format!(
            "rt::PortPlace::new(rt::op::Slot {{ region: {region}, offset: {offset} }}, {bytes}, {})",
            self.variant()
        )
    }
}

fn constants(
    text: &mut String,
    regions: [usize; MAX_REGIONS],
    state: usize,
    ports: [&[Described]; 2],
    labels: &[String],
    costs: &[u64],
) {
    put(
        text,
        format_args!(
            "/// Bytes of arena that the model needs.\npub const ARENA_BYTES: usize = {};",
            regions[0]
        ),
    );
    put(
        text,
        format_args!("/// Bytes of state that the model needs.\npub const STATE_BYTES: usize = {state};"),
    );
    for (name, about, ports) in [("INPUTS", "inputs", ports[0]), ("OUTPUTS", "outputs", ports[1])] {
        let all: Vec<String> = ports.iter().map(Described::constant).collect();
        let (count, all) = (all.len(), all.join(", "));
        put(
            text,
            format_args!("/// The {about}.\npub const {name}: [rt::Described; {count}] = [{all}];"),
        );
    }
    let (count, each, all) = (
        costs.len(),
        costs,
        costs.iter().fold(0, |all: u64, cost| all.saturating_add(*cost)),
    );
    put(
        text,
        format_args!(
            "/// Units of cost of each step, at most: docs/safety.md says what one takes on a core.\npub const COSTS: [u64; {count}] = {each:?};\n\
             /// Those of a run.\npub const COST: u64 = {all};"
        ),
    );
    let count = labels.len();
    put(
        text,
        format_args!(
            "/// The class labels; none where the file has none.\npub const LABELS: [&str; {count}] = {labels:?};"
        ),
    );
}

/// Elements and arrays of inputs and outputs, and the tuples of them.
fn types(text: &mut String, ports: [&[Described]; 2]) {
    for (name, lifetime, ports) in [("Input", "i", ports[0]), ("Output", "o", ports[1])] {
        for at in 0..TUPLE {
            let number = if at == 0 { String::new() } else { at.to_string() };
            let (element, count) = match ports.get(at) {
                Some(port) => (element(port.dtype), port.elements()),
                None => ("f32", 0),
            };
            put(
                text,
                format_args!(
                    "/// Its elements.\npub type {name}Element{number} = {element};\n\
                     /// All of its elements, row-major.\npub type {name}{number} = [{name}Element{number}; {count}];"
                ),
            );
        }
        let numbered = |at: usize| {
            format!(
                "&'{lifetime} {name}{}",
                if at == 0 { String::new() } else { at.to_string() }
            )
        };
        let form = match ports.len() {
            1 => numbered(0),
            count @ 2..=TUPLE => format!("({})", (0..count).map(numbered).collect::<Vec<_>>().join(", ")),
            // The session has them.
            _ => "()".to_owned(),
        };
        put(
            text,
            format_args!(
                "/// What a run takes or gives: `&{name}`, or a tuple of several.\npub type {name}s<'{lifetime}> = {form};"
            ),
        );
    }
}

fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::I8 => "i8",
        DType::U8 | DType::Bool => "u8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
    }
}

/// Whether a step takes indices that a run is given, and refuses those out of their range.
fn takes_an_index(model: &Model<'_>) -> bool {
    let mut kernels = model.steps().flatten();
    kernels.any(|(kernel, _)| KernelId::from_u8(kernel).is_some_and(|kernel| kernel.visit(IsIndexed)))
}

/// Whether a kernel does.
struct IsIndexed;

impl KernelVisitor for IsIndexed {
    type Output = bool;

    fn visit<K: Candidate>(self) -> bool {
        <K as Kernel>::INDEXED
    }
}

/// The steps: parameters and a function for each. Gives their number.
fn steps(text: &mut String, file: &str, model: &Model<'_>) -> Result<usize, String> {
    let indexed = takes_an_index(model);
    let mut steps = Vec::new();
    let mut pieces = BTreeMap::new();
    for record in model.steps() {
        let (number, parameters) = record.ok_or("a step does not decode")?;
        let kernel = KernelId::from_u8(number).ok_or("a step has an unknown kernel")?;
        let (op, taken) = kernel.visit(Written(parameters, model.weights()))?;
        *pieces.entry(number).or_insert(0) |= taken;
        steps.push((kernel, op));
    }
    for number in pieces.keys() {
        let Some(kernel) = KernelId::from_u8(*number) else {
            continue;
        };
        let (name, lacks) = (kernel.name(), format!("{file}: {}", wanted(kernel.backend())));
        put(
            text,
            format_args!("const _: () = rt::linked(rt::KernelId::{name}, {lacks:?});"),
        );
    }
    for (at, (kernel, op)) in steps.iter().enumerate() {
        let name = kernel.name();
        let pieces = pieces.get(&(*kernel as u8)).unwrap_or(&u32::MAX);
        let run = format!("rt::run::{name}(&STEP_{at}, mem, {pieces})");
        let (end, body) = match (indexed, kernel.visit(IsIndexed)) {
            (false, _) => ("()", format!("let _ = {run};")),
            (true, false) => ("rt::Indexed", format!("let _ = {run}; Ok(())")),
            (true, true) => (
                "rt::Indexed",
                format!("{run}.ok_or_else(|| rt::refused::<rt::kernel::{name}>({at}, &STEP_{at}, mem))"),
            ),
        };
        put(
            text,
            format_args!(
                "static STEP_{at}: <rt::kernel::{name} as rt::Kernel>::Op = {op};\n\
                 fn step_{at}(mem: &rt::Mem<'_>) -> {end} {{ {body} }}"
            ),
        );
    }
    Ok(steps.len())
}

/// A step's parameters and the weights: the expression of the former, and the pieces of its kernel's code that it takes.
struct Written<'a>(&'a [u8], &'a [u8]);

impl KernelVisitor for Written<'_> {
    type Output = Result<(String, u32), String>;

    fn visit<K: Candidate>(self) -> Self::Output {
        let Self(parameters, weights) = self;
        let op: <K as Kernel>::Op =
            postcard::from_bytes(parameters).map_err(|error| format!("a step does not decode: {error}"))?;
        let pieces = K::pieces_taken(&op, weights);
        Ok((expression(&op).map_err(|error| error.to_string())?, pieces))
    }
}

fn network(
    text: &mut String,
    model: &Model<'_>,
    steps: usize,
    regions: [usize; MAX_REGIONS],
    ports: [&[Described]; 2],
) {
    let list = |each: &dyn Fn(usize) -> String| (0..steps).map(each).collect::<Vec<_>>().join(" ");
    let places = |ports: &[Described]| ports.iter().map(Described::place).collect::<Vec<_>>().join(", ");
    let [a, b, c, d] = regions;
    let (end, and, done) = if takes_an_index(model) {
        ("rt::Indexed", "?", "Ok(())")
    } else {
        ("()", "", "")
    };
    let init = match model.state_init() {
        StateInit::Bytes(state) => format!("rt::StateInit::Bytes({})", bytes(state)),
        StateInit::Runs(runs) => format!("rt::StateInit::Runs(&{runs:?})"),
    };
    put(
        text,
        format_args!(
            "/// The network.\n#[derive(Debug, Clone, Copy)]\npub struct Network;\n\
             impl rt::Network for Network {{\n\
             type Memory<'s> = rt::Memory<'s, {a}, {b}, {c}, {d}, {}>;\n\
             type End = {end};\n\
             const STEPS: &'static [fn(&rt::Mem<'_>) -> {end}] = &[{}];\n\
             const INPUTS: &'static [rt::PortPlace] = &[{}];\n\
             const OUTPUTS: &'static [rt::PortPlace] = &[{}];\n\
             const STATE: rt::StateInit<'static> = {init};\n\
             fn weights() -> &'static [u8] {{ &WEIGHTS.0 }}\n\
             fn run(mem: &rt::Mem<'_>) -> {end} {{ let _ = mem; {} {done} }}\n\
             }}",
            model.state_bytes(),
            list(&|at| format!("step_{at},")),
            places(ports[0]),
            places(ports[1]),
            list(&|at| format!("step_{at}(mem){and};")),
        ),
    );
}

/// The class labels.
fn labels(model: &Model<'_>, file: &[u8]) -> Result<Vec<String>, String> {
    let header = model.header();
    let section = section(file, header.labels.offset, header.labels.len);
    if section.is_empty() {
        return Ok(Vec::new());
    }
    postcard::from_bytes(section).map_err(|error| format!("the class labels do not decode: {error}"))
}

fn section(file: &[u8], offset: u32, len: u32) -> &[u8] {
    file.get(offset as usize..)
        .and_then(|file| file.get(..len as usize))
        .unwrap_or_default()
}

/// CRC-32 (ISO-HDLC), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let bits = |crc: u32| (0..8).fold(crc, |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 });
    !bytes.iter().fold(u32::MAX, |crc, &byte| bits(crc ^ u32::from(byte)))
}

/// A literal of bytes.
fn bytes(bytes: &[u8]) -> String {
    proc_macro::Literal::byte_string(bytes).to_string()
}

fn put(text: &mut String, item: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{item}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_indices_are_those_of_language_models() {
        let all = KernelId::ALL.iter().filter(|kernel| kernel.visit(IsIndexed));
        let names: Vec<&str> = all.map(|kernel| kernel.name()).collect();
        let known = [
            "AttentionF32",
            "WriteLine",
            "Embedding",
            "RotaryF32",
            "Position",
            "EmbeddingW8",
        ];
        assert_eq!(names, known);
    }
}
