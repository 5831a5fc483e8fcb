//! Facts that a model file does not hold.

use serde::Serialize;

/// Parts of the page beyond the file itself.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// The text of the imported trace.
    pub trace: Option<String>,
    /// Where the model ran, and the instructions of each step.
    pub counted: Option<(String, Vec<u64>)>,
    /// How it answered labelled inputs.
    pub accuracy: Option<Accuracy>,
}

/// Answers to labelled inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    /// Where it ran.
    pub on: String,
    /// Samples.
    pub samples: usize,
    /// Samples whose class was right.
    pub correct: usize,
    /// Both ends of the 95 % interval of the accuracy, 0 to 1.
    pub interval: [f64; 2],
}
