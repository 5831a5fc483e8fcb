//! Small files, written here, that are no networks as they stand: what they state is refused by its name.

use std::path::Path;

use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};

use super::gguf::{FLOAT, TEXT, WORD, key, small, text};

/// Packs a file, with changes to the options.
fn tried(name: &str, bytes: &[u8], change: &dyn Fn(&mut Options)) -> Result<ModelFile, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(folder.path().join(name), folder.path().join("model.bin"));
    std::fs::write(&options.input, bytes).expect("written");
    change(&mut options);
    match pack(&options, &mut |_, _, _| {}) {
        Ok(_) => Ok(ModelFile::open(&options.output).expect("a model")),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains(name) && !options.output.exists(), "{error}");
            Err(error)
        }
    }
}

fn refused(name: &str, bytes: &[u8]) -> String {
    tried(name, bytes, &|_| {}).err().expect("refused")
}

/// A GGUF network with this context and these keys, of f32.
fn of_keys(context: u32, keys: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut others = Vec::new();
    for (name, kind, value) in keys {
        key(&mut others, name, *kind, value);
    }
    small(
        0,
        &0.5_f32.to_le_bytes().repeat(3 * 256),
        context,
        &(keys.len() as u64, others),
    )
}

/// Where the offset of a tensor of two axes stands.
fn offset_of(file: &[u8], name: &str) -> usize {
    let at = file.windows(name.len()).position(|part| part == name.as_bytes());
    at.expect("a tensor") + name.len() + 4 + 16 + 4
}

#[test]
fn tensors_that_overlap_are_refused_by_name() {
    let whole = of_keys(4, &[]);
    assert!(tried("whole.gguf", &whole, &|_| {}).is_ok());
    let [from, to] = ["blk.0.attn_q.weight", "blk.0.attn_k.weight"].map(|name| offset_of(&whole, name));
    let offset = u64::from_le_bytes(whole[from..from + 8].try_into().expect("8 bytes"));
    // The same place, and the last element.
    for other in [offset, offset + 4 * (256 * 256 - 1)] {
        let mut forged = whole.clone();
        forged[to..to + 8].copy_from_slice(&other.to_le_bytes());
        let error = refused("overlap.gguf", &forged);
        let told = format!("tensors `blk.0.attn_q.weight` and `blk.0.attn_k.weight` overlap, at byte {other}");
        assert!(
            error.contains(&told) || error.contains("tensors `blk.0.attn_k.weight` and `blk.0.attn_q.weight` overlap"),
            "{error}"
        );
    }
}

#[test]
fn keys_that_ask_for_another_network_are_refused_by_name() {
    let word = |number: u32| number.to_le_bytes();
    let float = |number: f32| number.to_le_bytes();
    let mut linear = Vec::new();
    text(&mut linear, b"linear");
    let mut none = Vec::new();
    text(&mut none, b"none");
    let other = [
        (
            "llama.rope.scaling.type",
            TEXT,
            &linear[..],
            "rotations scaled by `linear`",
        ),
        (
            "llama.rope.scaling.factor",
            FLOAT,
            &float(4.0),
            "llama.rope.scaling.factor is 4",
        ),
        (
            "llama.rope.scaling.attn_factor",
            FLOAT,
            &float(0.5),
            "llama.rope.scaling.attn_factor is 0.5",
        ),
        (
            "llama.rope.scale_linear",
            FLOAT,
            &float(2.0),
            "llama.rope.scale_linear is 2",
        ),
        ("llama.expert_count", WORD, &word(8), "llama.expert_count is 8"),
        (
            "llama.attention.sliding_window",
            WORD,
            &word(3),
            "llama.attention.sliding_window is 3",
        ),
        (
            "llama.vocab_size",
            WORD,
            &word(1000),
            "llama.vocab_size is 1000; expected 3, the rows of `token_embd.weight`",
        ),
        ("llama.logit_scale", FLOAT, &float(1.0), "the key `llama.logit_scale`"),
    ];
    for (name, kind, value, told) in other {
        let error = refused("keys.gguf", &of_keys(4, &[(name, kind, value)]));
        assert!(error.contains(told), "{error}");
    }
    let same: [&[(&str, u32, &[u8])]; 6] = [
        &[("llama.rope.scaling.factor", FLOAT, &float(1.0))],
        &[
            ("llama.rope.scaling.type", TEXT, &none),
            ("llama.rope.scaling.factor", FLOAT, &float(4.0)),
        ],
        &[("llama.rope.scale_linear", FLOAT, &float(1.0))],
        &[("llama.expert_count", WORD, &word(0))],
        &[("llama.attention.sliding_window", WORD, &word(4))],
        &[
            ("llama.vocab_size", WORD, &word(3)),
            ("llama.rope.dimension_count", WORD, &word(128)),
        ],
    ];
    for keys in same {
        let packed = tried("keys.gguf", &of_keys(4, keys), &|_| {});
        assert!(packed.is_ok(), "{keys:?}: {:?}", packed.err());
    }
}

#[test]
fn a_context_that_nobody_asked_for_is_bounded() {
    // 1,024 bytes of keys and values and 512 of angles a position: the former alone are within the bound.
    let file = of_keys(1 << 17, &[]);
    let error = refused("long.gguf", &file);
    assert!(
        error.contains("keys and values of 131072 positions, with the angles of each, take 201326592 bytes")
            && error.contains("at most 134217728, which are 87381 positions")
            && error.contains("pass --context N"),
        "{error}"
    );
    let packed = tried("long.gguf", &file, &|options| options.import.context = Some(64)).expect("a model");
    assert!(packed.bytes().len() < 2_000_000);
    // Who asks for it gets more, and not any amount.
    let longer = of_keys(1 << 22, &[]);
    let asked = tried("long.gguf", &longer, &|options| options.import.context = Some(1 << 20));
    assert!(asked.err().expect("refused").contains("at most 1073741824"));
}

/// A file of llama2.c, and its arrays: names, first bytes and bytes.
fn llama2c() -> (Vec<u8>, Vec<(&'static str, usize, usize)>) {
    let arrays = [
        ("token_embd.weight", 3 * 8),
        ("blk.0.attn_norm.weight", 8),
        ("blk.0.attn_q.weight", 8 * 8),
        ("blk.0.attn_k.weight", 4 * 8),
        ("blk.0.attn_v.weight", 4 * 8),
        ("blk.0.attn_output.weight", 8 * 8),
        ("blk.0.ffn_norm.weight", 8),
        ("blk.0.ffn_gate.weight", 6 * 8),
        ("blk.0.ffn_down.weight", 8 * 6),
        ("blk.0.ffn_up.weight", 6 * 8),
        ("output_norm.weight", 8),
        ("rope_cosines", 5 * 2),
        ("rope_sines", 5 * 2),
    ];
    let header: [i32; 7] = [8, 6, 1, 2, 1, 3, 5];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut places = Vec::new();
    for (name, elements) in arrays {
        places.push((name, bytes.len(), 4 * elements));
        bytes.extend((0..elements).flat_map(|at| (at as f32 * 0.01 + 0.25).to_le_bytes()));
    }
    (bytes, places)
}

#[test]
fn weights_of_llama2c_that_are_no_numbers_are_refused_by_name() {
    let (whole, places) = llama2c();
    let as_llama2c = |options: &mut Options| options.dialect = Some("llama2c".into());
    let whole_packed = tried("small.bin", &whole, &as_llama2c);
    assert!(whole_packed.is_ok(), "{:?}", whole_packed.err());
    for (name, start, len) in places {
        for (at, number) in [(0, f32::NAN), (len / 4 - 1, f32::INFINITY)] {
            let mut forged = whole.clone();
            let place = start + 4 * at;
            forged[place..place + 4].copy_from_slice(&number.to_le_bytes());
            let error = tried("small.bin", &forged, &as_llama2c).err().expect("refused");
            let told = format!("element {at} of tensor `{name}` is {number}; expected finite numbers");
            assert!(error.contains(&told), "{error}");
        }
    }
    let error = tried("cut.bin", &whole[..whole.len() - 4], &as_llama2c)
        .err()
        .expect("refused");
    let told = "as its header says: width 8, hidden width 6, 1 layers, 2 heads, 1 heads of keys and values, vocabulary 3, context 5";
    assert!(error.contains(told) && !error.contains('{'), "{error}");
}

#[test]
fn weights_beside_a_file_that_has_its_own_are_refused() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read(tests.join(path)).expect("a file");
    let files = [
        ("llama2c", llama2c().0),
        ("gguf", of_keys(4, &[])),
        ("tflite", read("models/tflite_ops/conv_1x1.tflite")),
        ("onnx", read("corpus/onnx/conv_grouped")),
        ("pt2", read("corpus/pt2/cnn")),
    ];
    for (dialect, bytes) in files {
        let packed = tried("network", &bytes, &|_| {});
        assert!(packed.is_ok(), "{dialect}: {:?}", packed.err());
        for weights in ["seeded:1", "weights.npz"] {
            let error = tried("network", &bytes, &|options| options.weights = Some(weights.into()));
            let told =
                format!("--weights {weights}: a network in the format {dialect} has its weights in its own file");
            let error = error.err().expect("refused");
            assert!(error.contains(&told), "{error}");
        }
    }
}
