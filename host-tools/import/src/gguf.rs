//! GGUF files, versions 2 and 3: networks of the form of llama, with their tokenizer.
//!
//! `file`: the container, every length and offset checked   `blocks`: quantised blocks as f32   `vocabulary`: the tokenizer
//!
//! Parameters are dequantised to f32: what the blocks stand for is what the network computes with. Whatever of a network or a file is not read is refused
//! by its name.

mod blocks;
mod file;
mod vocabulary;

use std::path::Path;

use self::file::{File, Type};
use crate::build::stem;
use crate::error::{Error, Result};
use crate::graph::Data;
use crate::imported::{ImportOptions, Imported};
use crate::llama::{self, Shape};

pub(super) fn recognises(content: &[u8]) -> bool {
    content.starts_with(b"GGUF")
}

pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    llama::refuse_others(options)?;
    let file = File::read(content)?;
    match file.text("general.architecture")? {
        Some("llama") => {}
        Some(other) => {
            return Err(Error::unsupported(format!("a network of the architecture `{other}`")).expected("llama"));
        }
        None => return Err(Error::input("the file states no architecture").expected("general.architecture")),
    }
    let whole = shape(&file)?;
    let base = file.float("llama.rope.freq_base")?.unwrap_or(10_000.0);
    if !(base.is_finite() && base > 1.0) {
        return Err(Error::input(format!("llama.rope.freq_base is {base}")).expected("a number above 1"));
    }
    let network = whole.with_context(options)?;
    refuse_keys(&file, &network)?;
    network.check_cache(options)?;
    let tables = network.tables(base);
    let mut read = Vec::new();
    let mut value = |name: &str, extents: &[usize]| {
        let tensor = file.tensor(name).ok_or_else(|| {
            Error::input(format!("the file has no tensor `{name}`")).expected(format!("one of shape {extents:?}"))
        })?;
        read.push(name.to_string());
        if tensor.shape != extents {
            return Err(
                Error::input(format!("tensor `{name}` has shape {:?}", tensor.shape)).expected(format!("{extents:?}"))
            );
        }
        let bytes = blocks::floats(tensor.kind, tensor.data).map_err(|e| e.at(format!("tensor `{name}`")))?;
        Ok(Data::Bytes(bytes.into()))
    };
    let mut imported = llama::network(&stem(path), "gguf", &network, tables, &mut value)?;
    if let Some(other) = file
        .tensors
        .iter()
        .find(|tensor| !read.iter().any(|name| name == tensor.name))
    {
        return Err(Error::unsupported(format!("tensor `{}`", other.name))
            .expected("the parameters of a llama: embeddings, norms, projections without biases"));
    }
    if options.tokenizer.is_none() {
        let read = vocabulary::read(&file, network.vocabulary)?;
        imported.graph.tokenizer = read.section.into();
        imported.warnings.extend(read.warning);
    }
    Ok(imported)
}

/// The extents that the file states, checked.
fn shape(file: &File<'_>) -> Result<Shape> {
    let stated = |key: &str| file.count(&format!("llama.{key}"));
    let needed = |key: &str| {
        stated(key)?.ok_or_else(|| Error::input("the file does not state all extents").expected(format!("llama.{key}")))
    };
    let (width, heads) = (needed("embedding_length")?, needed("attention.head_count")?);
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(
            Error::input(format!("a width of {width} in {heads} heads")).expected("heads that divide the width")
        );
    }
    let head = width / heads;
    for key in ["rope.dimension_count", "attention.key_length", "attention.value_length"] {
        if let Some(other) = stated(key)?.filter(|&other| other != head) {
            return Err(
                Error::unsupported(format!("llama.{key} is {other}")).expected(format!("{head}, all of a head"))
            );
        }
    }
    let table = file
        .tensor("token_embd.weight")
        .and_then(|tensor| tensor.shape.first().copied());
    let shape = Shape {
        width,
        hidden: needed("feed_forward_length")?,
        layers: needed("block_count")?,
        heads,
        kv_heads: stated("attention.head_count_kv")?.unwrap_or(heads),
        head,
        vocabulary: table.ok_or_else(|| Error::input("the file has no tensor `token_embd.weight`"))?,
        context: needed("context_length")?,
        epsilon: file.float("llama.attention.layer_norm_rms_epsilon")?.unwrap_or(1e-5),
        shared: file.tensor("output.weight").is_none(),
    };
    shape.check()?;
    Ok(shape)
}

/// Keys that are read, and keys that do not change what is computed.
const KNOWN: [&str; 15] = [
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
];

/// Refuses keys of the network that ask for what is not computed, and those that nobody knows.
fn refuse_keys(file: &File<'_>, network: &Shape) -> Result<()> {
    let scaling = file.text("llama.rope.scaling.type")?;
    if let Some(kind) = scaling.filter(|kind| *kind != "none") {
        return Err(Error::unsupported(format!("rotations scaled by `{kind}`")).expected("none"));
    }
    for key in file.keys_of("llama.") {
        let name = format!("llama.{key}");
        let refused = |value: &dyn std::fmt::Display, expected: String| {
            Err(Error::unsupported(format!("{name} is {value}")).expected(expected))
        };
        match key {
            // Without scaling the factor has no meaning; without a type it is that of a linear one.
            "rope.scaling.factor" if scaling.is_some() => {}
            "rope.scaling.factor" | "rope.scale_linear" | "rope.scaling.attn_factor" => {
                let factor = file.float(&name)?.unwrap_or(1.0);
                if factor != 1.0 {
                    return refused(&factor, "1: rotations that are not scaled".into());
                }
            }
            "expert_count" | "expert_used_count" => {
                let experts = file.count(&name)?.unwrap_or(0);
                if experts != 0 {
                    return refused(&experts, "0: one feed-forward network a layer".into());
                }
            }
            "attention.sliding_window" => {
                let window = file.count(&name)?.unwrap_or(0);
                if window != 0 && window < network.context {
                    let whole = network.context;
                    return refused(
                        &window,
                        format!("0, or at least the context of {whole}: attention over all of it"),
                    );
                }
            }
            "vocab_size" => {
                let tokens = file.count(&name)?.unwrap_or(network.vocabulary);
                if tokens != network.vocabulary {
                    return Err(Error::input(format!("{name} is {tokens}"))
                        .expected(format!("{}, the rows of `token_embd.weight`", network.vocabulary)));
                }
            }
            _ if KNOWN.contains(&key) => {}
            _ => {
                return Err(
                    Error::unsupported(format!("the key `{name}`")).expected("keys of a llama whose meaning is known")
                );
            }
        }
    }
    Ok(())
}

/// A type by its number in the file.
impl Type {
    const NAMES: [&'static str; 31] = [
        "F32", "F16", "Q4_0", "Q4_1", "Q4_2", "Q4_3", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
        "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8", "I16",
        "I32", "I64", "F64", "IQ1_M", "BF16",
    ];

    fn of(number: u32, name: &str) -> Result<Self> {
        match number {
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            2 => Ok(Self::Q4_0),
            3 => Ok(Self::Q4_1),
            8 => Ok(Self::Q8_0),
            12 => Ok(Self::Q4K),
            other => {
                let known = Self::NAMES.get(other as usize).copied();
                let told = known.map_or_else(|| format!("type number {other}"), |known| format!("type {known}"));
                Err(Error::unsupported(format!("tensor `{name}` of {told}"))
                    .expected("F32, F16, Q8_0, Q4_0, Q4_1 or Q4_K"))
            }
        }
    }
}
