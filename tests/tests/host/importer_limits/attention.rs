//! Attention and RotaryEmbedding by their definition, in f64.

use arenite_tests::onnx::Writer;
use arenite_tests::writers::Random;

use super::onnx_file::{File, computed, float, floats, imported, initializer, int, longs, stored, value};

const HIDDEN: f64 = f64::NEG_INFINITY;

/// Heads, queries, elements of a head.
const X: [usize; 3] = [4, 3, 6];

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

fn random(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.below(2001) as f32 / 500.0 - 2.0).collect()
}

fn close(y: &[f32], right: &[f64], what: &str) {
    assert_eq!(y.len(), right.len(), "{what}");
    for (at, (y, right)) in y.iter().zip(right).enumerate() {
        assert!(
            (f64::from(*y) - right).abs() < 1e-5,
            "{what}: element {at} is {y}, expected {right}"
        );
    }
}

/// An attention of `[heads, queries, size]` with `groups` heads of `keys` keys.
struct Case<'c> {
    q: &'c [f32],
    k: &'c [f32],
    v: &'c [f32],
    groups: usize,
    scale: f64,
    cap: f64,
    /// Of a head, a query and a key.
    bias: &'c dyn Fn(usize, usize, usize) -> f64,
}

impl Case<'_> {
    fn computed(&self) -> Vec<f64> {
        let [heads, queries, size] = X;
        let keys = self.k.len() / self.groups / size;
        let wide = self.v.len() / self.groups / keys;
        let mut result = Vec::new();
        for head in 0..heads {
            let group = head / (heads / self.groups);
            for query in 0..queries {
                let score = |key: usize| {
                    let of = |i: usize| {
                        let q = self.q[(head * queries + query) * size + i];
                        f64::from(q) * f64::from(self.k[(group * keys + key) * size + i])
                    };
                    let score = (0..size).map(of).sum::<f64>() * self.scale;
                    let capped = if self.cap > 0.0 {
                        (score / self.cap).tanh() * self.cap
                    } else {
                        score
                    };
                    capped + (self.bias)(head, query, key)
                };
                let scores: Vec<f64> = (0..keys).map(score).collect();
                let most = scores.iter().copied().fold(HIDDEN, f64::max);
                let weights: Vec<f64> = scores
                    .iter()
                    .map(|s| if most == HIDDEN { 0.0 } else { (s - most).exp() })
                    .collect();
                let sum: f64 = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                for i in 0..wide {
                    let each = weights.iter().enumerate();
                    result.push(
                        each.map(|(key, w)| w / sum * f64::from(self.v[(group * keys + key) * wide + i]))
                            .sum(),
                    );
                }
            }
        }
        result
    }
}

#[test]
fn four_axes_with_every_mask() {
    let [heads, queries, size] = X;
    let keys = 5;
    let (x, k, v) = (
        random(1, heads * queries * size),
        random(2, heads * keys * size),
        random(3, heads * keys * 2),
    );
    let file = || {
        File::default()
            .input(&value("x", 1, &[1, 4, 3, 6]))
            .output(&value("y", 1, &[1, 4, 3, 2]))
            .holding(&floats("k", &[1, 4, 5, 6], &k))
            .holding(&floats("v", &[1, 4, 5, 2], &v))
    };
    let sees = |query: usize, key: usize| query != 1 && !(query + key).is_multiple_of(3);
    let mask: Vec<u8> = (0..15).map(|at| u8::from(sees(at / 5, at % 5))).collect();
    let hidden: Vec<f32> = mask
        .iter()
        .map(|&m| if m == 1 { 0.25 } else { f32::NEG_INFINITY })
        .collect();
    let scale = 1.0 / (size as f64).sqrt();
    let plain = |bias: &dyn Fn(usize, usize, usize) -> f64| {
        Case {
            q: &x,
            k: &k,
            v: &v,
            groups: heads,
            scale,
            cap: 0.0,
            bias,
        }
        .computed()
    };
    let run = |file: File| numbers(&computed(&file.bytes(24), &stored(&x)).expect("it packs"));

    let y = run(file().node("Attention", &["x", "k", "v"], "y", &[]));
    close(&y, &plain(&|_, _, _| 0.0), "alone");
    let y = run(file().node("Attention", &["x", "k", "v"], "y", &[int("is_causal", 1)]));
    close(
        &y,
        &plain(&|_, query, key| if key <= query { 0.0 } else { HIDDEN }),
        "causal",
    );
    let masked = file().holding(&initializer("m", 9, &[3, 5], &mask));
    let y = run(masked.node("Attention", &["x", "k", "v", "m"], "y", &[]));
    // The second query sees nothing: its result is 0.
    close(
        &y,
        &plain(&|_, query, key| if sees(query, key) { 0.0 } else { HIDDEN }),
        "mask",
    );
    // A mask that is computed at run time: times 1.
    let masked = file()
        .holding(&floats("h", &[3, 5], &hidden))
        .holding(&longs("zeros", &[0, 0, 0, 0]))
        .holding(&longs("ones", &[1, 1, 1, 1]))
        .node("Slice", &["x", "zeros", "ones"], "one", &[])
        .node("Div", &["one", "one"], "unit", &[])
        .node("Mul", &["h", "unit"], "m", &[]);
    let y = run(masked.node("Attention", &["x", "k", "v", "m"], "y", &[int("is_causal", 1)]));
    let bias = |_, query, key| if sees(query, key) && key <= query { 0.25 } else { HIDDEN };
    close(&y, &plain(&bias), "mask at run time");
    // A mask of fewer keys hides the others.
    let short = file().holding(&floats("s", &[1, 3, 2], &[0.5, -0.5, 0.0, 1.0, 2.0, 3.0]));
    let y = run(short.node("Attention", &["x", "k", "v", "s"], "y", &[]));
    let table = [[0.5, -0.5], [0.0, 1.0], [2.0, 3.0]];
    close(
        &y,
        &plain(&|_, query, key| table[query].get(key).copied().unwrap_or(HIDDEN)),
        "short mask",
    );
    let window = [int("left_window_size", 1), int("right_window_size", 0)];
    let y = run(file().node("Attention", &["x", "k", "v"], "y", &window));
    let bias = |_, query: usize, key: usize| if key <= query && query <= key + 1 { 0.0 } else { HIDDEN };
    close(&y, &plain(&bias), "window");
    let capped = [float("softcap", 0.75), float("scale", 0.5)];
    let y = run(file().node("Attention", &["x", "k", "v"], "y", &capped));
    let right = Case {
        q: &x,
        k: &k,
        v: &v,
        groups: heads,
        scale: 0.5,
        cap: 0.75,
        bias: &|_, _, _| 0.0,
    }
    .computed();
    close(&y, &right, "capped");
}

/// Heads side by side, two of the queries for one of the keys, and keys of the past in front.
#[test]
fn three_axes_groups_and_a_past() {
    let [heads, queries, size] = X;
    let (x, past) = (random(4, heads * queries * size), random(5, 2 * 2 * 2 * size));
    let (past_k, past_v) = past.split_at(2 * 2 * size);
    let fresh = random(6, 2 * queries * 2 * size);
    let (new_k, new_v) = fresh.split_at(2 * queries * size);
    // [length, heads, size] as the file has it, [heads, length, size] as the definition.
    let apart = |rows: &[f32], heads: usize| -> Vec<f32> {
        let length = rows.len() / heads / size;
        let at = |i: usize| {
            let (head, row, element) = (i / size / length, i / size % length, i % size);
            rows[(row * heads + head) * size + element]
        };
        (0..rows.len()).map(at).collect()
    };
    let joined = |past: &[f32], new: &[f32]| -> Vec<f32> {
        let new = apart(new, 2);
        let heads = past.chunks(2 * size).zip(new.chunks(queries * size));
        heads.flat_map(|(past, new)| [past, new].concat()).collect()
    };
    let (k, v) = (joined(past_k, new_k), joined(past_v, new_v));
    let q = apart(&x, heads);
    let file = File::default()
        .input(&value("x", 1, &[1, 3, 24]))
        .output(&value("y", 1, &[1, 3, 24]))
        .holding(&floats("k", &[1, 3, 12], new_k))
        .holding(&floats("v", &[1, 3, 12], new_v))
        .holding(&floats("pk", &[1, 2, 2, 6], past_k))
        .holding(&floats("pv", &[1, 2, 2, 6], past_v));
    let how = [int("q_num_heads", 4), int("kv_num_heads", 2), int("is_causal", 1)];
    let file = file.node("Attention", &["x", "k", "v", "", "pk", "pv"], "y", &how);
    let y = numbers(&computed(&file.bytes(23), &stored(&x)).expect("it packs"));
    let bias = |_, query: usize, key: usize| if key <= query + 2 { 0.0 } else { HIDDEN };
    let right = Case {
        q: &q,
        k: &k,
        v: &v,
        groups: 2,
        scale: 1.0 / (size as f64).sqrt(),
        cap: 0.0,
        bias: &bias,
    }
    .computed();
    close(&apart(&y, heads), &right, "three axes");
}

#[test]
fn rotated_pairs() {
    let (heads, length, size) = (2, 3, 8);
    let x = random(7, heads * length * size);
    for (interleaved, turned, flat, placed) in [
        (0, 0, false, false),
        (1, 0, false, true),
        (0, 4, true, true),
        (1, 4, true, false),
    ] {
        let width = if turned == 0 { size } else { turned };
        let half = width / 2;
        let rows = if placed { 5 } else { length };
        let angle = |row: usize, i: usize| (row as f32 + 0.5) / (1 + i) as f32;
        let table =
            |f: fn(f32) -> f32| -> Vec<f32> { (0..rows * half).map(|at| f(angle(at / half, at % half))).collect() };
        let (cos, sin) = (table(f32::cos), table(f32::sin));
        let places = [4usize, 0, 2];
        let shape: &[i64] = if placed {
            &[5, half as i64]
        } else {
            &[1, 3, half as i64]
        };
        let ports: &[i64] = if flat { &[1, 3, 16] } else { &[1, 2, 3, 8] };
        let mut inputs = vec!["x", "c", "s"];
        let mut file = File::default()
            .input(&value("x", 1, ports))
            .output(&value("y", 1, ports))
            .holding(&floats("c", shape, &cos))
            .holding(&floats("s", shape, &sin));
        if placed {
            inputs.push("p");
            let raw: Vec<u8> = places.iter().flat_map(|&p| (p as i64).to_le_bytes()).collect();
            file = file.holding(&initializer("p", 7, &[1, 3], &raw));
        }
        let mut how = vec![
            int("interleaved", interleaved),
            int("rotary_embedding_dim", turned as i64),
        ];
        if flat {
            how.push(int("num_heads", 2));
        }
        let y = computed(&file.node("RotaryEmbedding", &inputs, "y", &how).bytes(23), &stored(&x)).expect("it packs");
        let at = |head: usize, row: usize| {
            if flat {
                (row * heads + head) * size
            } else {
                (head * length + row) * size
            }
        };
        let mut right: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        for head in 0..heads {
            for row in 0..length {
                for i in 0..half {
                    let pair = if interleaved == 1 {
                        [2 * i, 2 * i + 1]
                    } else {
                        [i, i + half]
                    };
                    let [a, b] = pair.map(|i| f64::from(x[at(head, row) + i]));
                    let angle = f64::from(angle(if placed { places[row] } else { row }, i));
                    right[at(head, row) + pair[0]] = a * angle.cos() - b * angle.sin();
                    right[at(head, row) + pair[1]] = a * angle.sin() + b * angle.cos();
                }
            }
        }
        close(&numbers(&y), &right, "rotated");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let file = |k: &[i64], v: &[i64]| {
        let zeros = |shape: &[i64]| vec![0.0; shape.iter().product::<i64>() as usize];
        File::default()
            .input(&value("x", 1, &[1, 4, 3, 6]))
            .output(&value("y", 1, &[1, 4, 3, 6]))
            .holding(&floats("k", k, &zeros(k)))
            .holding(&floats("v", v, &zeros(v)))
    };
    let whole = [1, 4, 5, 6];
    let one = file(&whole, &whole).holding(&floats("m", &[3, 1], &[0.0; 3]));
    let text = imported(
        &one.node("Attention", &["x", "k", "v", "m"], "y", &[]).bytes(24),
        &Default::default(),
    );
    let text = text.expect_err("it is refused");
    assert!(text.contains("a mask of one key for 5 keys"), "{text}");
    for (file, inputs, how, wanted) in [
        (
            file(&[1, 3, 5, 6], &[1, 3, 5, 6]),
            vec!["x", "k", "v"],
            vec![],
            "do not fit together",
        ),
        (
            file(&whole, &[1, 4, 4, 6]),
            vec!["x", "k", "v"],
            vec![],
            "do not fit together",
        ),
        (
            file(&[1, 5, 24], &[1, 5, 24]),
            vec!["x", "k", "v"],
            vec![],
            "kv_num_heads for rows of 24 elements",
        ),
        (
            file(&whole, &whole),
            vec!["x", "k", "v", "", "k"],
            vec![],
            "a past of keys alone, or of values alone",
        ),
        (
            file(&whole, &whole),
            vec!["x", "k", "v", "", "", "", "k"],
            vec![],
            "lengths of the keys that are computed (nonpad_kv_seqlen)",
        ),
        (
            file(&whole, &whole),
            vec!["x", "k", "v", "k"],
            vec![],
            "a mask of more than 5 keys",
        ),
        (
            file(&whole, &whole),
            vec!["x", "k", "v"],
            vec![float("scale", f32::NAN)],
            "attribute `scale`",
        ),
    ] {
        let text = imported(
            &file.node("Attention", &inputs, "y", &how).bytes(24),
            &Default::default(),
        )
        .expect_err(wanted);
        assert!(text.contains(wanted), "{text} lacks `{wanted}`");
    }
}

#[test]
fn scores_and_angles_that_are_not_read_are_refused() {
    // The scores of a cap, which files mean differently.
    let node = Writer::node("Attention", &["x", "x", "x"], "y");
    let node = [b"", b"", b"scores" as &[u8]]
        .iter()
        .fold(node, |node, name| node.bytes(2, name));
    let node = [float("softcap", 2.0), int("qk_matmul_output_mode", 1)]
        .iter()
        .fold(node, |node, a| node.bytes(5, a));
    let file = File::default()
        .input(&value("x", 1, &[1, 4, 3, 6]))
        .output(&value("scores", 1, &[1, 4, 3, 3]));
    let text = imported(&file.raw(&node.done()).bytes(24), &Default::default()).expect_err("it is refused");
    assert!(text.contains("qk_matmul_output_mode 1 with softcap 2"), "{text}");
    let table = |half: i64| floats("t", &[1, 3, half], &vec![0.5; 3 * half as usize]);
    for (half, turned, wanted) in [
        (3, 0, "angles of shape [1, 3, 3]"),
        (4, 10, "rotary_embedding_dim of 8 elements"),
        (4, 5, "5 elements to turn in pairs"),
    ] {
        let file = File::default()
            .input(&value("x", 1, &[1, 2, 3, 8]))
            .output(&value("y", 1, &[1, 2, 3, 8]))
            .holding(&table(half))
            .node(
                "RotaryEmbedding",
                &["x", "t", "t"],
                "y",
                &[int("rotary_embedding_dim", turned)],
            );
        let text = imported(&file.bytes(23), &Default::default()).expect_err(wanted);
        assert!(text.contains(wanted), "{text} lacks `{wanted}`");
    }
}

/// The scores as an output: of keys that a mask hides too, or as weights.
#[test]
fn scores_that_are_read() {
    let x = random(8, 72);
    for (mode, softened) in [(2, false), (3, true)] {
        let node = Writer::node("Attention", &["x", "x", "x"], "");
        let node = [b"", b"", b"scores" as &[u8]]
            .iter()
            .fold(node, |node, name| node.bytes(2, name));
        let node = [int("is_causal", 1), int("qk_matmul_output_mode", mode)]
            .iter()
            .fold(node, |node, a| node.bytes(5, a));
        let file = File::default()
            .input(&value("x", 1, &[1, 4, 3, 6]))
            .output(&value("scores", 1, &[1, 4, 3, 3]))
            .raw(&node.done());
        let y = numbers(&computed(&file.bytes(24), &stored(&x)).expect("it packs"));
        for (at, y) in y.iter().enumerate() {
            let (head, query, key) = (at / 9, at / 3 % 3, at % 3);
            let score = |key: usize| {
                let of = |i: usize| f64::from(x[(head * 3 + query) * 6 + i]) * f64::from(x[(head * 3 + key) * 6 + i]);
                if key <= query {
                    (0..6).map(of).sum::<f64>() / 6f64.sqrt()
                } else {
                    HIDDEN
                }
            };
            let sum: f64 = (0..3).map(|key| score(key).exp()).sum();
            let right = if softened { score(key).exp() / sum } else { score(key) };
            assert!(
                f64::from(*y) == right || (f64::from(*y) - right).abs() < 1e-5,
                "{at}: {y}, {right}"
            );
        }
    }
}
