//! Files of llama2.c (`stories260K.bin`): seven int32, then f32 arrays.
//!
//! The header is width, hidden width, layers, heads, heads of keys and values, vocabulary (below zero: the classifier has weights of its own) and context. The
//! arrays are the embeddings, and for all layers together attention norms, wq, wk, wv, wo, feed-forward norms, w1, w2, w3; then the last norm, the cosines
//! and sines of the rotations, and the classifier where it has its own.

use std::collections::HashMap;
use std::path::Path;

use crate::build::stem;
use crate::error::{Error, Result};
use crate::graph::{Assumption, Data};
use crate::imported::{ImportOptions, Imported};
use crate::llama::{self, LARGEST, Shape, Tables};

const HEADER: usize = 28;

/// The base of frequencies that llama2.c's tables are made with.
const BASE: f32 = 10_000.0;

/// How far numbers of a table may be from those of [`BASE`] to be the same, with what rounding in another order makes.
const ALIKE: f32 = 1e-6;

/// Epsilon of a normalisation: the program has it, the file does not state it.
const EPSILON: f32 = 1e-5;

/// A header whose arrays are as long as the file.
pub(super) fn recognises(content: &[u8]) -> bool {
    header(content).is_ok_and(|shape| spans(&shape).is_ok_and(|(_, bytes)| bytes == content.len()))
}

pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    llama::refuse_others(options)?;
    let whole = header(content)?;
    let (spans, bytes) = spans(&whole)?;
    if bytes != content.len() {
        return Err(Error::input(format!("the file has {} bytes", content.len()))
            .expected(format!("{bytes} bytes, as its header says: {}", told(&whole))));
    }
    let shape = whole.clone().with_context(options)?;
    shape.check_cache(options)?;
    let floats = |span: &Span| content.get(span.start..span.start + span.bytes).unwrap_or_default();
    let table = |name: &str| {
        spans
            .get(name)
            .map_or_else(|| Ok(Vec::new()), |span| finite(name, floats(span)))
    };
    let tables = cut(known(&whole, [table("rope_cosines")?, table("rope_sines")?]), &shape);
    let mut value = |name: &str, extents: &[usize]| {
        // Parameters of a layer are parts of arrays of all layers.
        let span = spans
            .get(name)
            .ok_or_else(|| Error::internal(format!("the file's `{name}` is not known")))?;
        let bytes = floats(span);
        if bytes.len() != 4 * extents.iter().product::<usize>() {
            return Err(Error::internal(format!("`{name}` has {} bytes", bytes.len())));
        }
        finite(name, bytes)?;
        Ok(Data::Bytes(bytes.into()))
    };
    let mut imported = llama::network(&stem(path), "llama2c", &shape, tables, &mut value)?;
    imported.assumptions.push(Assumption {
        key: "epsilon".into(),
        value: EPSILON.to_string(),
        applies_to: "the normalisations".into(),
        reason: "the constant of llama2.c".into(),
    });
    Ok(imported)
}

/// The extents that the header states, checked.
fn header(content: &[u8]) -> Result<Shape> {
    let (words, _) = content.as_chunks::<4>();
    let Some(words) = words.first_chunk::<7>() else {
        return Err(Error::input(format!("the file has {} bytes", content.len())).expected("a header of 28 bytes"));
    };
    let [width, hidden, layers, heads, kv_heads, vocabulary, context] = words.map(i32::from_le_bytes);
    let extent = |n: i32| usize::try_from(n).unwrap_or(0);
    let [width, hidden, layers, heads, kv_heads, context] =
        [width, hidden, layers, heads, kv_heads, context].map(extent);
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(
            Error::input(format!("a width of {width} in {heads} heads")).expected("heads that divide the width")
        );
    }
    let shape = Shape {
        width,
        hidden,
        layers,
        heads,
        kv_heads,
        head: width / heads,
        vocabulary: vocabulary.unsigned_abs() as usize,
        context,
        epsilon: EPSILON,
        shared: vocabulary > 0,
    };
    shape.check()?;
    Ok(shape)
}

/// Bytes of an array in the file.
struct Span {
    start: usize,
    bytes: usize,
}

/// Where each parameter is, by its name in the network, and the file's length.
fn spans(shape: &Shape) -> Result<(HashMap<String, Span>, usize)> {
    let &Shape {
        width,
        hidden,
        layers,
        heads,
        kv_heads,
        head,
        vocabulary,
        context,
        shared,
        ..
    } = shape;
    let (query, keys) = (heads * head, kv_heads * head);
    let all: [(&str, bool, [usize; 2]); 14] = [
        ("token_embd.weight", false, [vocabulary, width]),
        ("attn_norm.weight", true, [1, width]),
        ("attn_q.weight", true, [query, width]),
        ("attn_k.weight", true, [keys, width]),
        ("attn_v.weight", true, [keys, width]),
        ("attn_output.weight", true, [width, query]),
        ("ffn_norm.weight", true, [1, width]),
        ("ffn_gate.weight", true, [hidden, width]),
        ("ffn_down.weight", true, [width, hidden]),
        ("ffn_up.weight", true, [hidden, width]),
        ("output_norm.weight", false, [1, width]),
        ("rope_cosines", false, [context, head / 2]),
        ("rope_sines", false, [context, head / 2]),
        ("output.weight", false, [vocabulary, width]),
    ];
    let too_large = || Error::unsupported("parameters of more than 4 GiB");
    let (mut spans, mut at) = (HashMap::new(), HEADER);
    for (name, layered, [rows, columns]) in all {
        if name == "output.weight" && shared {
            continue;
        }
        debug_assert!(rows <= LARGEST && columns <= LARGEST * LARGEST);
        let bytes = rows
            .checked_mul(columns)
            .and_then(|n| n.checked_mul(4))
            .ok_or_else(too_large)?;
        for layer in 0..if layered { layers } else { 1 } {
            let name = if layered {
                format!("blk.{layer}.{name}")
            } else {
                name.to_string()
            };
            spans.insert(name, Span { start: at, bytes });
            at = at
                .checked_add(bytes)
                .filter(|&at| u32::try_from(at).is_ok())
                .ok_or_else(too_large)?;
        }
    }
    Ok((spans, at))
}

/// The numbers of an array; refuses those that are not finite.
fn finite(name: &str, bytes: &[u8]) -> Result<Vec<f32>> {
    let (words, _) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(numbers),
        Some(at) => {
            Err(Error::input(format!("element {at} of tensor `{name}` is {}", numbers[at])).expected("finite numbers"))
        }
    }
}

/// A header in words.
fn told(shape: &Shape) -> String {
    let Shape {
        width,
        hidden,
        layers,
        heads,
        kv_heads,
        vocabulary,
        context,
        ..
    } = shape;
    format!(
        "width {width}, hidden width {hidden}, {layers} layers, {heads} heads, {kv_heads} heads of keys and values, vocabulary {vocabulary}, context {context}"
    )
}

/// The tables of [`BASE`], computed as for every format, where the file's are these; else the file's own.
fn known(shape: &Shape, stated: Tables) -> Tables {
    let computed = shape.tables(BASE);
    let alike = stated
        .iter()
        .flatten()
        .zip(computed.iter().flatten())
        .all(|(a, b)| (a - b).abs() <= ALIKE);
    if alike { computed } else { stated }
}

/// As many positions as the shape has.
fn cut(tables: Tables, shape: &Shape) -> Tables {
    tables.map(|mut table| {
        table.truncate(shape.context * shape.head / 2);
        table
    })
}
