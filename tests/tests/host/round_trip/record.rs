//! Outcomes of every small change to a trace are on record: `tests/results/imports.txt` has a letter for each.
//!
//! Other tests hold that what is accepted is the network that was written, and that nothing panics. This one notices a check that is gone, a default that
//! is another, or a choice that is made in another order. Where that is meant, `ARENITE_BLESS=1` writes the file anew.

use std::fmt::Write;

use arenite_host::graph::TensorKind;
use arenite_tests::record::held;

use super::*;

/// Where letters, digits and underscores stand together.
pub(crate) fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|&(_, c)| of_word(c)) {
        match words.last_mut() {
            Some(word) if word.end == at => word.end += c.len_utf8(),
            _ => words.push(at..at + c.len_utf8()),
        }
    }
    words
}

/// The text with one word changed in one way.
pub(crate) fn edited(text: &str, words: &[std::ops::Range<usize>], at: usize, way: usize) -> String {
    let word = &text[words[at].clone()];
    let number: Option<u64> = word.parse().ok();
    let new = match (way, number) {
        (0, Some(n)) => (n + 1).to_string(),
        (0, None) => format!("{word}x"),
        (1, Some(_)) => "0".to_string(),
        (1, None) => "w".to_string(),
        (2, _) => String::new(),
        _ => format!("{word} {word}"),
    };
    format!("{}{new}{}", &text[..words[at].start], &text[words[at].end..])
}

/// Lines of a trace that are changed as a whole, at most.
const SAMPLED_LINES: usize = 60;

/// The text with a line left out, twice, or behind the next one. A trace of one line has none to change.
pub(crate) fn relined(text: &str, sample: usize, way: usize) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let count = lines.len();
    if count < 2 || sample >= count {
        return None;
    }
    let at = (sample * count / SAMPLED_LINES.min(count)) % count;
    match way {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at]),
        _ => lines.swap(at, (at + 1) % count),
    }
    Some(lines.join("\n") + "\n")
}

fn sum(text: &str) -> u8 {
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((sum ^ (sum >> 32)) % 26) as u8
}

/// A letter for what was read: a capital for an error, by all that it says; else one that depends on all of the graph, constants too where they are asked for.
pub(crate) fn letter(result: Result<Imported, Error>, folder: &Path, constants: bool) -> char {
    let imported = match result {
        Ok(imported) => imported,
        Err(error) => {
            let said = format!("{:?} {error}", error.kind());
            return char::from(b'A' + sum(&said.replace(&folder.display().to_string(), "")));
        }
    };
    let graph = &imported.graph;
    let mut said = format!("{:?} {:?} {:?}", imported.warnings.len(), graph.inputs, graph.outputs);
    for node in &graph.nodes {
        let _ = write!(
            said,
            "{:?} {:?} {:?} {:?} {:?};",
            node.name, node.op, node.role, node.inputs, node.outputs
        );
    }
    for tensor in &graph.tensors {
        let constant = matches!(tensor.kind, TensorKind::Const(_));
        let _ = write!(
            said,
            "{:?} {:?} {:?} {constant};",
            tensor.name, tensor.shape, tensor.quant
        );
        if constants {
            let _ = write!(said, "{:?} {:?};", tensor.dtype, tensor.kind);
        }
    }
    char::from(b'a' + sum(&said))
}

#[test]
fn changed_traces_are_read_as_on_record() {
    let with_lrn = Chain {
        batch: 2,
        image: [3, 18, 29],
        layers: vec![
            conv(6, 5, 1, 2),
            Layer::Relu,
            Layer::Lrn,
            pool(3, 2, false),
            grouped(8, 3, 1, 1, 2, 1),
            Layer::Relu,
            pool(3, 2, false),
        ],
    };
    let native = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/digits/{name}.trace.json"));
        let text = std::fs::read_to_string(path).expect("a trace");
        // Without the files beside it.
        let mut trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for key in ["parameters", "samples"] {
            trace.as_object_mut().expect("an object").remove(key);
        }
        trace.to_string()
    };
    let cases = [
        ("native", native("residual"), 160),
        ("native", native("digits"), 80),
        ("chainer", chainer::write(&uneven(2, true), 5), 160),
        ("megengine", megengine::write(&uneven(2, false)), 200),
        ("tf-shapes", tf_shapes::write(&with_lrn, Some(3)), 160),
        ("keras-order", keras_order::write("resnet8", &[2, 1]), 100),
        ("rects", local(&[(5, 4), (3, 3)]).write(), 60),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.trace");
    let mut text = String::from(
        "# dialect and way of changing a word; a letter for each of the words, evenly spread over the trace\n",
    );
    for (dialect, trace, samples) in cases {
        let words = words(&trace);
        for way in 0..4 {
            let letters = (0..samples).map(|sample| {
                let at = (sample * words.len() / samples + 7 * way) % words.len();
                std::fs::write(&path, edited(&trace, &words, at, way)).expect("written");
                letter(
                    import(&path, Some(dialect), &ImportOptions::default()).map(|(_, imported)| imported),
                    folder.path(),
                    false,
                )
            });
            let letters: String = letters.collect();
            let _ = writeln!(text, "{dialect} {way} {letters}");
        }
        for way in 0..3 {
            let letters = (0..SAMPLED_LINES).filter_map(|sample| {
                std::fs::write(&path, relined(&trace, sample, way)?).expect("written");
                let read = import(&path, Some(dialect), &ImportOptions::default());
                Some(letter(read.map(|(_, imported)| imported), folder.path(), false))
            });
            let letters: String = letters.collect();
            let _ = writeln!(text, "{dialect} line {way} {letters}");
        }
    }
    compared("imports.txt", &text);
}

/// Holds a text to the record of this name.
pub(crate) fn compared(record: &str, text: &str) {
    held(&format!("results/{record}"), text, "round_trip::");
}
