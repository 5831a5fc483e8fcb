//! The network's vocabulary, and how a garbled word is matched to it.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crate::spelling::distance;

/// A node of the forward half, as the grammar names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Name {
    Data,
    RawOutput,
    Labels,
    Weights(usize),
    Gain(usize),
    Bias(usize),
    Filter(usize),
    FilterOutput(usize),
    FilterA(usize),
    FilterAOutput(usize),
    FilterNl(usize),
    FilterNlOutput(usize),
    Weights1,
    Linear1,
    Linear1Output,
    Softmax,
    Probability,
    SoftmaxOutput,
    Evaluate,
    EvaluateOutput,
    Accuracy,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Data => f.write_str("data"),
            Name::RawOutput => f.write_str("data.raw_output"),
            Name::Labels => f.write_str("data.labels_output"),
            Name::Weights(i) => write!(f, "L{i}.W"),
            Name::Gain(i) => write!(f, "L{i}.a"),
            Name::Bias(i) => write!(f, "L{i}.b"),
            Name::Filter(i) => write!(f, "L{i}.filter"),
            Name::FilterOutput(i) => write!(f, "L{i}.filter.output"),
            Name::FilterA(i) => write!(f, "L{i}.filterA"),
            Name::FilterAOutput(i) => write!(f, "L{i}.filterA.output"),
            Name::FilterNl(i) => write!(f, "L{i}.filterNL"),
            Name::FilterNlOutput(i) => write!(f, "L{i}.filterNL.output"),
            Name::Weights1 => f.write_str("classifier.weights1"),
            Name::Linear1 => f.write_str("classifier.linear1"),
            Name::Linear1Output => f.write_str("classifier.linear1.output"),
            Name::Softmax => f.write_str("classifier.softmax"),
            Name::Probability => f.write_str("classifier.softmax.probability"),
            Name::SoftmaxOutput => f.write_str("classifier.softmax.output"),
            Name::Evaluate => f.write_str("classifier.evaluate"),
            Name::EvaluateOutput => f.write_str("classifier.evaluate.output"),
            Name::Accuracy => f.write_str("classifier.evaluate.accuracy"),
        }
    }
}

/// A node of the training half, as the grammar names it after one of the forward half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Training {
    /// An operator that computes gradients, or a node that holds them.
    Gradient(Name),
    /// The operator that clears a gradient.
    SetZero(Name),
    /// The update of a parameter.
    Update(Name),
}

impl fmt::Display for Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Training::Gradient(name) => write!(f, "{name}.grad"),
            Training::SetZero(name) => write!(f, "{name}.grad.set_zero"),
            Training::Update(Name::Weights1) => f.write_str("update_W1"),
            Training::Update(name) => write!(f, "update_{name}"),
        }
    }
}

impl Training {
    /// The forward node that it belongs to.
    pub(super) fn of(self) -> Name {
        match self {
            Training::Gradient(name) | Training::SetZero(name) | Training::Update(name) => name,
        }
    }

    /// All operators of the training half of a network with these layers.
    pub(super) fn operators(layers: usize) -> Vec<Training> {
        let mut all: Vec<Training> = [Name::Softmax, Name::Linear1].map(Training::Gradient).to_vec();
        all.extend([Name::SoftmaxOutput, Name::Linear1Output, Name::Weights1].map(Training::SetZero));
        all.push(Training::Update(Name::Weights1));
        for i in 0..layers {
            all.extend([Name::Filter(i), Name::FilterA(i), Name::FilterNl(i)].map(Training::Gradient));
            all.extend([Name::FilterOutput(i), Name::FilterAOutput(i), Name::FilterNlOutput(i)].map(Training::SetZero));
            for parameter in [Name::Weights(i), Name::Gain(i), Name::Bias(i)] {
                all.extend([Training::SetZero(parameter), Training::Update(parameter)]);
            }
        }
        all
    }
}

/// A word of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    Node(Name),
    Training(Training),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Node(name) => name.fmt(f),
            Word::Training(name) => name.fmt(f),
        }
    }
}

const FIXED: [Name; 12] = [
    Name::Data,
    Name::RawOutput,
    Name::Labels,
    Name::Weights1,
    Name::Linear1,
    Name::Linear1Output,
    Name::Softmax,
    Name::Probability,
    Name::SoftmaxOutput,
    Name::Evaluate,
    Name::EvaluateOutput,
    Name::Accuracy,
];

const OF_LAYER: [fn(usize) -> Name; 9] = [
    Name::Weights,
    Name::Gain,
    Name::Bias,
    Name::Filter,
    Name::FilterOutput,
    Name::FilterA,
    Name::FilterAOutput,
    Name::FilterNl,
    Name::FilterNlOutput,
];

/// The most layers that a picture can have.
pub(super) const MOST_LAYERS: usize = 64;

/// Words in their folded spelling.
pub(super) struct Vocabulary {
    exact: HashMap<String, Word>,
    /// Long enough to be recognised with a few wrong letters.
    long: Vec<(String, Word)>,
}

impl Vocabulary {
    /// All words of a network with these layers.
    pub(super) fn new(layers: impl Iterator<Item = usize>) -> Self {
        let of_layers = layers.flat_map(|i| OF_LAYER.map(|name| name(i)));
        let names: Vec<Name> = FIXED.into_iter().chain(of_layers).collect();
        let nodes = names.iter().map(|&name| Word::Node(name));
        let training = names.iter().flat_map(|&name| {
            let update = matches!(name, Name::Weights1 | Name::Weights(_) | Name::Gain(_) | Name::Bias(_));
            let update = update.then_some(Training::Update(name));
            [Training::Gradient(name), Training::SetZero(name)]
                .into_iter()
                .chain(update)
        });
        let words: Vec<(String, Word)> = (nodes.chain(training.map(Word::Training)))
            .map(|word| (fold(&word.to_string()), word))
            .collect();
        Self {
            long: words.iter().filter(|(word, _)| word.len() >= 8).cloned().collect(),
            exact: words.into_iter().collect(),
        }
    }

    /// The word itself, letters and digits that look alike taken as equal.
    pub(super) fn exact(&self, word: &str) -> Option<Word> {
        self.exact.get(&fold(word)).copied()
    }

    /// The same, where it is a node of the forward half.
    pub(super) fn node(&self, word: &str) -> Option<Name> {
        match self.exact(word) {
            Some(Word::Node(name)) => Some(name),
            _ => None,
        }
    }

    /// The nearest word, where it is near and no other is as near. Layers are never guessed: their number must be legible.
    pub(super) fn near(&self, word: &str) -> Option<Word> {
        let word = fold(word);
        if word.len() < 6 || word.len() > 64 {
            return None;
        }
        let most = (word.len() / 6).clamp(1, 3);
        let mut near: Vec<(usize, Word)> = self
            .long
            .iter()
            .filter(|(w, _)| w.len().abs_diff(word.len()) <= most)
            .map(|(w, name)| (distance(&word, w), *name))
            .filter(|(distance, _)| *distance <= most)
            .collect();
        near.sort();
        match near.as_slice() {
            [(_, name)] => Some(*name),
            [(first, name), (second, _), ..] if first < second => Some(*name),
            _ => None,
        }
    }
}

/// The layers that the text mentions: `L`, a number, and a word of a layer.
pub(super) fn layers<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<usize> {
    let all = Vocabulary::new(0..MOST_LAYERS);
    let mut mentions: HashMap<usize, BTreeSet<Name>> = HashMap::new();
    for name in words.filter_map(|word| all.node(word)) {
        if let Some(layer) = layer(name) {
            mentions.entry(layer).or_default().insert(name);
        }
    }
    // A single mention is more likely a doubled digit than a layer of its own.
    mentions
        .into_iter()
        .filter(|(_, names)| names.len() >= 3)
        .map(|(layer, _)| layer)
        .collect()
}

/// The layer that a name belongs to.
pub(super) fn layer(name: Name) -> Option<usize> {
    match name {
        Name::Weights(i)
        | Name::Gain(i)
        | Name::Bias(i)
        | Name::Filter(i)
        | Name::FilterOutput(i)
        | Name::FilterA(i)
        | Name::FilterAOutput(i)
        | Name::FilterNl(i)
        | Name::FilterNlOutput(i) => Some(i),
        _ => None,
    }
}

/// A digit that OCR read as a letter.
pub(super) fn digit(c: char) -> Option<char> {
    match c {
        '0'..='9' => Some(c),
        'O' | 'o' | 'Q' | 'D' => Some('0'),
        'l' | 'I' | 'i' | '|' | '!' => Some('1'),
        'Z' | 'z' => Some('2'),
        'S' | 's' => Some('5'),
        'b' | 'G' => Some('6'),
        'B' => Some('8'),
        'g' | 'q' => Some('9'),
        _ => None,
    }
}

/// One spelling for letters and digits that look alike.
fn fold(word: &str) -> String {
    let alike = |c: char| match c {
        'O' | 'o' | 'Q' => '0',
        'l' | 'I' | 'i' | '|' | '!' | 'L' => '1',
        'Z' | 'z' => '2',
        'S' | 's' => '5',
        'B' | 'b' => '8',
        'g' | 'q' => '9',
        ',' | ':' | ';' => '.',
        '-' | '~' => '_',
        c => c,
    };
    word.chars().map(alike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_ocr_leaves_them() {
        let words = Vocabulary::new(0..2);
        let exact = [
            ("LO.W", Name::Weights(0)),
            ("Ll.filter", Name::Filter(1)),
            ("LI.filterNL.output", Name::FilterNlOutput(1)),
            ("classifier.linearl.output", Name::Linear1Output),
            ("classifier.weightsl", Name::Weights1),
            ("cla551fier.5oftmax", Name::Softmax),
        ];
        for (word, name) in exact {
            assert_eq!(words.node(word), Some(name), "{word}");
        }
        let near = [
            ("classifilier.linearl.output", Name::Linear1Output),
            ("classifier.evaluate.ouptut", Name::EvaluateOutput),
            ("data.raw_outputt", Name::RawOutput),
            ("LO.filterNL.outpt", Name::FilterNlOutput(0)),
        ];
        for (word, name) in near {
            assert_eq!(words.near(word), Some(Word::Node(name)), "{word}");
        }
        assert_eq!(words.near("L.filterA.output"), None, "either layer");
        let training = [
            ("update_Ll.W", Training::Update(Name::Weights(1))),
            ("update-W1", Training::Update(Name::Weights1)),
            (
                "classifiler.softmax.output.grad.set_zero",
                Training::SetZero(Name::SoftmaxOutput),
            ),
            ("cla881f1ertsoftmax.grad", Training::Gradient(Name::Softmax)),
            ("LO.filterA.output.grad", Training::Gradient(Name::FilterAOutput(0))),
        ];
        for (word, name) in training {
            let found = words.exact(word).or_else(|| words.near(word));
            assert_eq!(found, Some(Word::Training(name)), "{word}");
        }
    }
}
