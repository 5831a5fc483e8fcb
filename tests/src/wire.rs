//! The wire of steps and ports as its types state it, read by the tracer of `serde-reflection`: names and formats of all structures and enums, and an example
//! of every variant.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};

use arenite::kernels::table::{OperatorVisitor, visit_operators};
use arenite::ops::activation_grad::Activated;
use arenite::ops::binary::{BinaryOp, SpecialBinaryOp};
use arenite::ops::compare::Comparison;
use arenite::ops::detections::Suppression;
use arenite::ops::elementwise_int::IntOp;
use arenite::ops::packed_conv2d::Form;
use arenite::ops::pointwise::{SpecialOp, UnaryOp};
use arenite::ops::reduce::Reduction;
use arenite::ops::resize::Interpolation;
use arenite::ops::softmax::SoftmaxKind;
use arenite::ops::special_int::SpecialIntOp;
use arenite::{DType, KernelId};
use serde::de::DeserializeOwned;
use serde_reflection::{
    ContainerFormat, Format, FormatHolder, Named, Registry, Samples, Tracer, TracerConfig, VariantFormat,
};

/// The operator of each kernel.
pub fn operators() -> Vec<Operator> {
    let mut all = All(Vec::new());
    visit_operators(&mut all);
    all.0
}

/// The parameters of a kernel on the wire.
pub struct Operator {
    /// The kernel.
    pub kernel: KernelId,
    /// The structure's name.
    pub name: String,
    /// It, and all that it holds.
    pub registry: Registry,
    /// How a value prints that was decoded by postcard.
    decode: fn(&[u8]) -> String,
}

impl Operator {
    /// An example for each variant of each enum that it holds, or a single one: the bytes, and the value that postcard finds in them. Every field has a
    /// number of its own.
    pub fn examples(&self) -> Vec<(Vec<u8>, String)> {
        let mut choices: Vec<(&str, u32)> = Vec::new();
        for (name, container) in &self.registry {
            if let ContainerFormat::Enum(variants) = container {
                choices.extend(variants.keys().map(|&index| (name.as_str(), index)));
            }
        }
        if choices.is_empty() {
            choices.push(("", 0));
        }
        let example = |&choice| {
            let mut writer = Example {
                registry: &self.registry,
                choice,
                next: 1,
                bytes: Vec::new(),
            };
            writer.named(&self.name);
            let value = (self.decode)(&writer.bytes);
            (writer.bytes, value)
        };
        choices.iter().map(example).collect()
    }
}

/// All structures and enums of all operators, and of `also`, a line each.
pub fn lines(operators: &[Operator], also: &Registry) -> String {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let registries = operators.iter().map(|operator| &operator.registry).chain([also]);
    for (name, container) in registries.flatten() {
        let line = describe(name, container);
        let known = lines.entry(name.clone()).or_default();
        if !known.contains(&line) {
            known.push(line);
        }
    }
    lines
        .into_values()
        .flatten()
        .map(|line| format!("- {line}\n"))
        .collect()
}

/// The registry of any type.
///
/// # Panics
/// Where the type cannot be traced.
pub fn registry<T: DeserializeOwned>() -> Registry {
    let mut tracer = Tracer::new(TracerConfig::default());
    tracer
        .trace_type::<T>(&Samples::new())
        .unwrap_or_else(|e| panic!("{}: {e}", std::any::type_name::<T>()));
    tracer
        .registry()
        .unwrap_or_else(|e| panic!("{}: {e}", std::any::type_name::<T>()))
}

/// The tracer goes through the variants of an enum only where it is asked for that enum, and says which were left out.
fn trace<T: DeserializeOwned>() -> (Format, Registry) {
    let named = |e: serde_reflection::Error| -> ! { panic!("{}: {e}", std::any::type_name::<T>()) };
    let (mut tracer, samples) = (Tracer::new(TracerConfig::default()), Samples::new());
    let (format, _) = tracer.trace_type::<T>(&samples).unwrap_or_else(|e| named(e));
    macro_rules! variants {
        ($($enumeration:ty)*) => {
            $(tracer.trace_type::<$enumeration>(&samples).unwrap_or_else(|e| named(e));)*
        };
    }
    variants!(DType BinaryOp SpecialBinaryOp UnaryOp SpecialOp IntOp SpecialIntOp Comparison Form Reduction Interpolation SoftmaxKind Suppression Activated);
    let mut registry = tracer.registry().unwrap_or_else(|e| named(e));
    // Types that were only asked for their variants go.
    let (mut kept, mut held) = (Vec::new(), Vec::new());
    let note = |format: &Format, held: &mut Vec<String>| {
        if let Format::TypeName(name) = format {
            held.push(name.clone());
        }
    };
    note(&format, &mut held);
    while let Some(name) = held.pop() {
        let visited = registry[&name].visit(&mut |inner| {
            note(inner, &mut held);
            Ok(())
        });
        visited.unwrap_or_else(|e| named(e));
        kept.push(name);
    }
    registry.retain(|name, _| kept.contains(name));
    (format, registry)
}

struct All(Vec<Operator>);

impl OperatorVisitor for All {
    fn visit<O: serde::Serialize + DeserializeOwned + Debug>(&mut self, kernel: KernelId) {
        let (format, registry) = trace::<O>();
        let Format::TypeName(name) = format else {
            panic!("{} is no structure", kernel.name());
        };
        self.0.push(Operator {
            kernel,
            name,
            registry,
            decode: |bytes| match postcard::take_from_bytes::<O>(bytes) {
                Ok((value, [])) => {
                    let again = postcard::to_stdvec(&value).expect("it encodes");
                    assert_eq!(again, bytes, "{value:?}");
                    format!("{value:?}")
                }
                Ok((value, rest)) => panic!("{} bytes are left over behind {value:?}", rest.len()),
                Err(e) => panic!("{bytes:?}: {e}"),
            },
        });
    }
}

/// Writes a value of a format: postcard's wire, by hand. All numbers are small, so that each is a byte.
struct Example<'r> {
    registry: &'r Registry,
    /// The variant that is wanted of an enum; others show their first.
    choice: (&'r str, u32),
    next: u8,
    bytes: Vec<u8>,
}

impl Example<'_> {
    fn number(&mut self) -> u8 {
        let number = self.next;
        self.next = self.next % 120 + 1;
        number
    }

    fn named(&mut self, name: &str) {
        match &self.registry[name] {
            ContainerFormat::UnitStruct => {}
            ContainerFormat::NewTypeStruct(format) => self.value(format),
            ContainerFormat::TupleStruct(formats) => formats.iter().for_each(|format| self.value(format)),
            ContainerFormat::Struct(fields) => fields.iter().for_each(|field| self.value(&field.value)),
            ContainerFormat::Enum(variants) => {
                let first = variants.keys().next().copied().unwrap_or(0);
                let index = if self.choice.0 == name { self.choice.1 } else { first };
                self.bytes.push(index as u8);
                match &variants[&index].value {
                    VariantFormat::Unit | VariantFormat::Variable(_) => {}
                    VariantFormat::NewType(format) => self.value(format),
                    VariantFormat::Tuple(formats) => formats.iter().for_each(|format| self.value(format)),
                    VariantFormat::Struct(fields) => fields.iter().for_each(|field| self.value(&field.value)),
                }
            }
        }
    }

    fn value(&mut self, format: &Format) {
        match format {
            Format::TypeName(name) => self.named(name),
            Format::Bool => self.bytes.push(1),
            Format::F32 => {
                let number = f32::from(self.number());
                self.bytes.extend(number.to_le_bytes());
            }
            Format::I8
            | Format::I16
            | Format::I32
            | Format::I64
            | Format::U8
            | Format::U16
            | Format::U32
            | Format::U64 => {
                let number = self.number();
                self.bytes.push(number);
            }
            Format::Option(inner) | Format::Seq(inner) => {
                self.bytes.push(1);
                self.value(inner);
            }
            Format::Tuple(formats) => formats.iter().for_each(|format| self.value(format)),
            Format::TupleArray { content, size } => (0..*size).for_each(|_| self.value(content)),
            other => panic!("{other:?} is not in the files"),
        }
    }
}

fn describe(name: &str, container: &ContainerFormat) -> String {
    match container {
        ContainerFormat::UnitStruct => format!("`{name}`: nothing"),
        ContainerFormat::NewTypeStruct(format) => format!("`{name}`: `{}`", show(format)),
        ContainerFormat::TupleStruct(formats) => format!("`{name}`: `{}`", tuple(formats)),
        ContainerFormat::Struct(all) => format!("`{name}`: {}", fields(all)),
        ContainerFormat::Enum(variants) => {
            let mut line = format!("`{name}`, one of");
            for (index, variant) in variants {
                let _ = write!(
                    line,
                    "{} {index} `{}`",
                    if *index == 0 { "" } else { "," },
                    variant.name
                );
                match &variant.value {
                    VariantFormat::Unit | VariantFormat::Variable(_) => {}
                    VariantFormat::NewType(format) => {
                        let _ = write!(line, " (`{}`)", show(format));
                    }
                    VariantFormat::Tuple(formats) => {
                        let _ = write!(line, " (`{}`)", tuple(formats));
                    }
                    VariantFormat::Struct(all) => {
                        let _ = write!(line, " ({})", fields(all));
                    }
                }
            }
            line
        }
    }
}

fn fields(fields: &[Named<Format>]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|field| format!("`{}: {}`", field.name, show(&field.value)))
        .collect();
    fields.join(", ")
}

fn tuple(formats: &[Format]) -> String {
    match formats {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("[{}; {}]", show(first), formats.len())
        }
        _ => {
            let all: Vec<_> = formats.iter().map(show).collect();
            format!("({})", all.join(", "))
        }
    }
}

fn show(format: &Format) -> String {
    match format {
        Format::TypeName(name) => name.clone(),
        Format::Option(inner) => format!("Option<{}>", show(inner)),
        Format::Seq(inner) => format!("Vec<{}>", show(inner)),
        Format::Tuple(formats) => tuple(formats),
        Format::TupleArray { content, size } => format!("[{}; {size}]", show(content)),
        Format::Str => "&str".to_owned(),
        primitive => format!("{primitive:?}").to_lowercase(),
    }
}
