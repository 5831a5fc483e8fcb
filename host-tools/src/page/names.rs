//! Names shortened to the parts that distinguish them from their neighbours.

use std::collections::{BTreeMap, BTreeSet};

/// Names of at most so many characters stay as they are.
const WHOLE: usize = 20;
/// The most characters of a short name, without a number behind it.
const MOST: usize = 28;
/// The most parts of a name that are joined before its number is added.
const PARTS: usize = 3;

/// A short form of each name: its rarest part, or several where one is not enough; unlike all others, whatever the names are. Frameworks write what a
/// layer was made of into its name (`model/act_1/Relu;model/conv_1/BiasAdd/ReadVariableOp`), so that neither its beginning nor its end tells it apart.
pub(super) fn short(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<String>> = names.iter().map(|name| parts(name)).collect();
    let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
    for parts in &parts {
        let distinct: BTreeSet<&str> = parts.iter().map(String::as_str).collect();
        distinct
            .into_iter()
            .for_each(|part| *holders.entry(part).or_default() += 1);
    }
    let label = |index: usize, count: usize| {
        let name = printable(names[index]);
        if name.chars().count() <= WHOLE {
            return name;
        }
        let parts = &parts[index];
        // The rarest first; of equals the last, where the layer's own operator is named.
        let mut order: Vec<usize> = (0..parts.len())
            .filter(|&at| !parts[..at].contains(&parts[at]))
            .collect();
        order.sort_by_key(|&at| (holders[parts[at].as_str()], usize::MAX - at));
        order.truncate(count);
        order.sort_unstable();
        let joined: Vec<&str> = order.iter().map(|&at| parts[at].as_str()).collect();
        middle_out(&if joined.is_empty() { name } else { joined.join("/") })
    };
    let mut labels: Vec<String> = (0..names.len()).map(|index| label(index, 1)).collect();
    for count in 2..=PARTS {
        for index in repeated(&labels) {
            labels[index] = label(index, count);
        }
    }
    // Names that no part tells apart, or that are the same: their number does.
    let mut taken: BTreeSet<String> = labels.iter().cloned().collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for label in &mut labels {
        if !seen.insert(label.clone()) {
            let numbered = (2..)
                .map(|n| format!("{label} ({n})"))
                .find(|name| !taken.contains(name));
            *label = numbered.unwrap_or_default();
            taken.insert(label.clone());
            seen.insert(label.clone());
        }
    }
    labels
}

/// Indices of labels that stand more than once.
fn repeated(labels: &[String]) -> Vec<usize> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for label in labels {
        *count.entry(label).or_default() += 1;
    }
    (0..labels.len())
        .filter(|&index| count[labels[index].as_str()] > 1)
        .collect()
}

/// A name between its separators; a number stays with the part before it.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in printable(name)
        .split(['/', ';', ':', '.', ',', '|', ' '])
        .filter(|part| !part.is_empty())
    {
        match parts.last_mut() {
            Some(last) if part.chars().all(|c| c.is_ascii_digit()) => *last += &format!(".{part}"),
            _ => parts.push(part.to_string()),
        }
    }
    parts
}

/// Without characters that move others: line ends, other controls, marks of direction, characters of no width.
fn printable(name: &str) -> String {
    let moves = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    name.chars().map(|c| if moves(c) { ' ' } else { c }).collect()
}

/// The beginning and the end of what is too long.
fn middle_out(label: &str) -> String {
    let letters: Vec<char> = label.chars().collect();
    if letters.len() <= MOST {
        return label.to_string();
    }
    let (head, tail) = (MOST / 2, MOST - MOST / 2 - 1);
    let [head, tail] = [&letters[..head], &letters[letters.len() - tail..]].map(|part| part.iter().collect::<String>());
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_called_by_the_part_that_no_other_has() {
        let names = [
            "model/activation/Relu;model/batch_normalization/FusedBatchNormV3;model/conv2d/BiasAdd/ReadVariableOp/resource1",
            "model/activation_1/Relu;model/batch_normalization_1/FusedBatchNormV3;model/depthwise_conv2d/BiasAdd/ReadVariableOp/resource1",
            "model/activation_2/Relu;model/batch_normalization_2/FusedBatchNormV3;model/depthwise_conv2d_1/BiasAdd/ReadVariableOp/resource1",
            "softmax",
        ];
        assert_eq!(
            short(&names),
            ["conv2d", "depthwise_conv2d", "depthwise_conv2d_1", "softmax"]
        );
    }

    #[test]
    fn parts_are_joined_where_one_is_not_enough() {
        let names = [
            "transformer.encoder.layers.0.attention.query",
            "transformer.encoder.layers.0.attention.value",
            "transformer.encoder.layers.1.attention.query",
            "transformer.encoder.layers.1.attention.value",
        ];
        let expected = ["layers.0/query", "layers.0/value", "layers.1/query", "layers.1/value"];
        assert_eq!(short(&names), expected);
    }

    #[test]
    fn names_that_nothing_tells_apart_are_numbered() {
        let long = format!("{}ü", "x".repeat(80));
        let names = [long.as_str(), &long, "a", "a", "a (2)", "", ""];
        let found = short(&names);
        assert_eq!(found[2..5], ["a", "a (3)", "a (2)"]);
        assert!(found[0].contains('…') && found[0].ends_with('ü') && found[1] == format!("{} (2)", found[0]));
    }

    /// Whatever names are: short ones differ, are short, and hold nothing that moves other text.
    #[test]
    fn short_names_differ_and_are_short() {
        let alphabet: Vec<char> = "ab/;.1 \n\u{202e}<ü".chars().collect();
        let mut state = 7u32;
        let mut next = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % below
        };
        for _ in 0..300 {
            let count = 1 + next(12);
            let names: Vec<String> = (0..count)
                .map(|_| {
                    let length = next(60);
                    (0..length).map(|_| alphabet[next(alphabet.len())]).collect()
                })
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = short(&names);
            let distinct: BTreeSet<&String> = found.iter().collect();
            assert_eq!(distinct.len(), names.len(), "{names:?}: {found:?}");
            assert!(
                found.iter().all(|label| label.chars().count() <= MOST + " (12)".len()),
                "{found:?}"
            );
            assert!(
                !found.iter().any(|label| label.contains(['\n', '\u{202e}'])),
                "{found:?}"
            );
        }
    }
}
