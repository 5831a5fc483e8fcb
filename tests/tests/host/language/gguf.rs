//! GGUF files, written here by the published layout: the given model once more, quantised blocks, and files that are cut or forged.

use arenite::Target;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};

use super::given::Given;

/// A tensor: name, extents (innermost first), type number, bytes.
type Tensor = (String, Vec<u64>, u32, Vec<u8>);

pub(super) fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}

pub(super) fn key(out: &mut Vec<u8>, name: &str, kind: u32, value: &[u8]) {
    text(out, name.as_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(value);
}

/// A file of these keys, so many, and tensors.
fn file(count: u64, keys: &[u8], tensors: &[Tensor]) -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(3_u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(keys);
    let mut offset = 0_u64;
    for (name, extents, kind, bytes) in tensors {
        text(&mut out, name.as_bytes());
        out.extend((extents.len() as u32).to_le_bytes());
        extents.iter().for_each(|extent| out.extend(extent.to_le_bytes()));
        out.extend(kind.to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += (bytes.len() as u64).next_multiple_of(32);
    }
    for (_, _, _, bytes) in tensors {
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(bytes);
    }
    out
}

pub(super) const WORD: u32 = 4;
pub(super) const FLOAT: u32 = 6;
pub(super) const TEXT: u32 = 8;
pub(super) const ARRAY: u32 = 9;

/// The keys of a network and their number.
fn keys(width: u32, hidden: u32, layers: u32, heads: [u32; 2], context: u32) -> (u64, Vec<u8>) {
    let mut out = Vec::new();
    let mut architecture = Vec::new();
    text(&mut architecture, b"llama");
    key(&mut out, "general.architecture", TEXT, &architecture);
    let numbers = [
        ("embedding_length", width),
        ("feed_forward_length", hidden),
        ("block_count", layers),
        ("attention.head_count", heads[0]),
        ("attention.head_count_kv", heads[1]),
        ("context_length", context),
    ];
    for (name, value) in numbers {
        key(&mut out, &format!("llama.{name}"), WORD, &value.to_le_bytes());
    }
    key(
        &mut out,
        "llama.attention.layer_norm_rms_epsilon",
        FLOAT,
        &1e-5_f32.to_le_bytes(),
    );
    (8, out)
}

/// The keys of the given tokenizer.
fn tokenizer(given: &Given) -> (u64, Vec<u8>) {
    let (vocabulary, mut out) = (given.vocabulary(), Vec::new());
    let array = |kind: u32, count: usize| [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes()].concat();
    let (mut tokens, mut scores, mut types) = (
        array(TEXT, vocabulary.len()),
        array(FLOAT, vocabulary.len()),
        array(5, vocabulary.len()),
    );
    for (token, (piece, score)) in vocabulary.iter().enumerate() {
        let spaced = String::from_utf8(piece.clone()).map(|piece| piece.replace(' ', "\u{2581}"));
        text(&mut tokens, &spaced.map_or(piece.clone(), String::into_bytes));
        scores.extend(score.to_le_bytes());
        let kind: i32 = match token {
            0 => 2,
            1 | 2 => 3,
            3..259 => 6,
            _ => 1,
        };
        types.extend(kind.to_le_bytes());
    }
    let mut model = Vec::new();
    text(&mut model, b"llama");
    key(&mut out, "tokenizer.ggml.model", TEXT, &model);
    key(&mut out, "tokenizer.ggml.tokens", ARRAY, &tokens);
    key(&mut out, "tokenizer.ggml.scores", ARRAY, &scores);
    key(&mut out, "tokenizer.ggml.token_type", ARRAY, &types);
    key(&mut out, "tokenizer.ggml.bos_token_id", WORD, &1_u32.to_le_bytes());
    key(&mut out, "tokenizer.ggml.eos_token_id", WORD, &2_u32.to_le_bytes());
    (6, out)
}

/// The given model's parameters under GGUF's names.
fn parameters(given: &Given) -> Vec<Tensor> {
    let raw = std::fs::read(given.folder.join("stories260K.bin")).expect("a file");
    let (layers, mut at, mut all) = (5, 28, Vec::new());
    let arrays: [(&str, bool, [u64; 2]); 11] = [
        ("token_embd", false, [64, 512]),
        ("attn_norm", true, [64, 1]),
        ("attn_q", true, [64, 64]),
        ("attn_k", true, [64, 32]),
        ("attn_v", true, [64, 32]),
        ("attn_output", true, [64, 64]),
        ("ffn_norm", true, [64, 1]),
        ("ffn_gate", true, [64, 172]),
        ("ffn_down", true, [172, 64]),
        ("ffn_up", true, [64, 172]),
        ("output_norm", false, [64, 1]),
    ];
    for (name, layered, [inner, outer]) in arrays {
        for layer in 0..if layered { layers } else { 1 } {
            let name = if layered {
                format!("blk.{layer}.{name}.weight")
            } else {
                format!("{name}.weight")
            };
            let len = (4 * inner * outer) as usize;
            let extents = if outer == 1 { vec![inner] } else { vec![inner, outer] };
            all.push((name, extents, 0, raw[at..at + len].to_vec()));
            at += len;
        }
    }
    all
}

pub(super) fn packed(folder: &std::path::Path, name: &str, bytes: &[u8]) -> Result<ModelFile, String> {
    let (input, output) = (folder.join(name), folder.join("model.bin"));
    std::fs::write(&input, bytes).expect("written");
    let mut options = Options::new(input, output);
    options.target = Target::Portable;
    pack(&options, &mut |_, _, _| {}).map_err(|error| error.to_string())?;
    Ok(ModelFile::open(&options.output).expect("a model"))
}

#[test]
fn the_given_model_as_gguf_gives_the_same_file() {
    let Some(given) = Given::open("the given model as GGUF") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let ((of_network, mut all), (of_tokenizer, others)) = (keys(64, 172, 5, [8, 4], 512), tokenizer(&given));
    all.extend(others);
    let content = file(of_network + of_tokenizer, &all, &parameters(&given));
    let from_gguf = packed(folder.path(), "stories.gguf", &content).expect("a model");
    let own = given.packed(Target::Portable, None);
    let [a, b] = [&own, &from_gguf].map(|file| file.load().expect("it loads"));
    assert!(a.steps().eq(b.steps()), "the steps");
    assert!(a.weights() == b.weights(), "the weights");
    assert!(a.tokenizer() == b.tokenizer(), "the tokenizer");
}

/// A network of one layer whose embeddings are blocks of one type: 256 wide.
fn of_blocks(kind: u32, block: &[u8], blocks_of_a_row: usize) -> Vec<u8> {
    small(kind, &block.repeat(3 * blocks_of_a_row), 4, &(0, Vec::new()))
}

/// Such a network with these embeddings, this context and more keys, so many.
pub(super) fn small(kind: u32, embeddings: &[u8], context: u32, more: &(u64, Vec<u8>)) -> Vec<u8> {
    of_tokens(3, (kind, embeddings), context, more)
}

/// Such a network of so many tokens.
pub(super) fn of_tokens(
    tokens: u64,
    (kind, embeddings): (u32, &[u8]),
    context: u32,
    (more, others): &(u64, Vec<u8>),
) -> Vec<u8> {
    let width = 256_u64;
    let ones = |extents: &[u64]| 1.0_f32.to_le_bytes().repeat(extents.iter().product::<u64>() as usize);
    let tensor = |name: &str, extents: &[u64]| (name.to_string(), extents.to_vec(), 0, ones(extents));
    let mut tensors = vec![(
        "token_embd.weight".to_string(),
        vec![width, tokens],
        kind,
        embeddings.to_vec(),
    )];
    for (name, outputs) in [
        ("attn_q", width),
        ("attn_k", width / 2),
        ("attn_v", width / 2),
        ("attn_output", width),
    ] {
        tensors.push(tensor(&format!("blk.0.{name}.weight"), &[width, outputs]));
    }
    for name in ["attn_norm", "ffn_norm"] {
        tensors.push(tensor(&format!("blk.0.{name}.weight"), &[width]));
    }
    tensors.push(tensor("blk.0.ffn_gate.weight", &[width, 2]));
    tensors.push(tensor("blk.0.ffn_up.weight", &[width, 2]));
    tensors.push(tensor("blk.0.ffn_down.weight", &[2, width]));
    tensors.push(tensor("output_norm.weight", &[width]));
    let (count, mut keys) = keys(width as u32, 2, 1, [2, 1], context);
    keys.extend(others);
    file(count + more, &keys, &tensors)
}

/// The table of embeddings in the weights of such a network.
fn row_of(bytes: &[u8]) -> Vec<f32> {
    let folder = tempfile::tempdir().expect("a folder");
    let wide = bytes.to_vec();
    let file = packed(folder.path(), "blocks.gguf", &wide).unwrap_or_else(|error| panic!("{error}"));
    let model = file.load().expect("it loads");
    let step = file
        .view()
        .expect("a file")
        .steps()
        .expect("steps")
        .into_iter()
        .find_map(|step| match step {
            arenite::Step::Embedding(op) => Some(op.table.offset as usize),
            _ => None,
        });
    let at = step.expect("embeddings");
    super::given::numbers(&model.weights()[at..at + 1024])
}

#[test]
fn blocks_are_read_by_their_published_layout() {
    // f16: 0.5 is 0x3800, 2 is 0x4000, 1 is 0x3C00.
    let (half, two) = ([0x00, 0x38], [0x00, 0x40]);
    let q8: Vec<u8> = half.into_iter().chain((0..32).map(|i| (i * 7) as u8)).collect();
    let expected: Vec<f32> = (0..256).map(|i| 0.5 * f32::from(((i % 32) * 7) as u8 as i8)).collect();
    assert_eq!(row_of(&of_blocks(8, &q8, 8)), expected);
    let nibbles: Vec<u8> = (0..16).map(|i| i as u8 | (15 - i as u8) << 4).collect();
    let halves = |i: usize| if i % 32 < 16 { i % 16 } else { 15 - i % 16 };
    let q4_0 = [&half[..], &nibbles].concat();
    let expected: Vec<f32> = (0..256).map(|i| 0.5 * (halves(i) as f32 - 8.0)).collect();
    assert_eq!(row_of(&of_blocks(2, &q4_0, 8)), expected);
    let q4_1 = [&half[..], &two, &nibbles].concat();
    let expected: Vec<f32> = (0..256).map(|i| 0.5 * halves(i) as f32 + 2.0).collect();
    assert_eq!(row_of(&of_blocks(3, &q4_1, 8)), expected);
    let f16 = [0x00, 0x3C, 0x00, 0xB8, 0x01, 0x00, 0xFF, 0x7B];
    let expected: Vec<f32> = [1.0, -0.5, 2.0_f32.powi(-24), 65504.0]
        .into_iter()
        .cycle()
        .take(256)
        .collect();
    assert_eq!(row_of(&of_blocks(1, &f16, 64)), expected);
}

#[test]
fn super_blocks_have_scales_of_six_bits() {
    // Scale and least value of part p: 5 p + 3 and 63 - 7 p, packed as ggml packs them.
    let (scale, least) = (|p: usize| (5 * p + 3) as u8, |p: usize| (63 - 7 * p) as u8);
    let mut packed = [0_u8; 12];
    for p in 0..4 {
        packed[p] = scale(p) & 63 | (scale(p + 4) >> 4) << 6;
        packed[p + 4] = least(p) & 63 | (least(p + 4) >> 4) << 6;
        packed[p + 8] = scale(p + 4) & 15 | (least(p + 4) & 15) << 4;
    }
    let quant = |element: usize| ((element * 5 + element / 32) % 16) as u8;
    let quants: Vec<u8> = (0..128)
        .map(|byte| {
            let (pair, at) = (byte / 32, byte % 32);
            quant(64 * pair + at) | quant(64 * pair + 32 + at) << 4
        })
        .collect();
    let block = [&[0x00, 0x38, 0x00, 0x40][..], &packed, &quants].concat();
    let expected: Vec<f32> = (0..256)
        .map(|i| 0.5 * f32::from(scale(i / 32)) * f32::from(quant(i)) - 2.0 * f32::from(least(i / 32)))
        .collect();
    assert_eq!(row_of(&of_blocks(12, &block, 1)), expected);
}

#[test]
fn files_that_are_cut_or_forged_are_refused() {
    let q8: Vec<u8> = [0x00, 0x38].into_iter().chain(0..32).collect();
    let whole = of_blocks(8, &q8, 8);
    let folder = tempfile::tempdir().expect("a folder");
    assert!(packed(folder.path(), "whole.gguf", &whole).is_ok());
    for len in [4, 8, 15, 23, 24, 40, 200, 600, whole.len() / 2, whole.len() - 1] {
        let error = packed(folder.path(), "cut.gguf", &whole[..len])
            .err()
            .expect("a cut file");
        assert!(
            error.contains("cut.gguf") && !error.contains("internal"),
            "{len}: {error}"
        );
    }
    // Every byte of the head, to what is largest: lengths, counts, types and offsets among them.
    let head = 900.min(whole.len());
    for at in 4..head {
        let mut forged = whole.clone();
        forged[at] ^= 0xFF;
        if let Err(error) = packed(folder.path(), "forged.gguf", &forged) {
            assert!(!error.contains("internal"), "byte {at}: {error}");
        }
    }
    let named = |from: &[u8], to: &[u8]| {
        let at = whole.windows(from.len()).position(|part| part == from).expect("there");
        let mut forged = whole.clone();
        forged[at..at + from.len()].copy_from_slice(to);
        packed(folder.path(), "other.gguf", &forged).err().expect("refused")
    };
    // A context whose keys and values are larger than any memory.
    let mut long = whole.clone();
    let name = b"llama.context_length";
    let at = whole.windows(name.len()).position(|part| part == name).expect("there") + name.len() + 4;
    long[at..at + 4].copy_from_slice(&(1_u32 << 24).to_le_bytes());
    let error = packed(folder.path(), "long.gguf", &long).err().expect("refused");
    assert!(error.contains("keys and values of 16777216 positions"), "{error}");
    assert!(named(b"llama", b"gemma").contains("architecture `gemma`"));
    assert!(named(b"blk.0.attn_q.weight", b"blk.0.attn_x.weight").contains("no tensor `blk.0.attn_q.weight`"));
    let mut other = whole.clone();
    let name = b"token_embd.weight";
    let at = whole.windows(name.len()).position(|part| part == name).expect("there") + name.len() + 4 + 16;
    other[at..at + 4].copy_from_slice(&14_u32.to_le_bytes());
    let error = packed(folder.path(), "q6.gguf", &other).err().expect("refused");
    assert!(error.contains("tensor `token_embd.weight` of type Q6_K"), "{error}");
    let mut version = whole.clone();
    version[4] = 1;
    assert!(
        packed(folder.path(), "old.gguf", &version)
            .err()
            .expect("refused")
            .contains("version 1 of GGUF")
    );
}
