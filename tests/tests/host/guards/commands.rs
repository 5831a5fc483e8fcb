//! Steps with commands for an NPU.

use arenite::ops::ethos_u::{EthosU, Inputs, Span};

use super::*;

/// A step for an Ethos-U whose payload is none.
pub(super) fn no_payload() -> Vec<u8> {
    let blob = Blob {
        arena: [64, 0, 0, 0],
        weights: vec![0; 16],
        ..Blob::default()
    };
    let inputs = Inputs {
        first: None,
        second: None,
        third: None,
        fourth: None,
        fifth: None,
        sixth: None,
        seventh: None,
        eighth: None,
        bytes: Default::default(),
    };
    let step = Step::EthosU(EthosU {
        scratch: at(0),
        fast: at(32),
        inputs,
        payload: 0,
        payload_bytes: 16,
        constants: 0,
        constants_bytes: 0,
        scratch_bytes: 16,
        fast_bytes: 0,
        outputs: std::iter::once(Span { offset: 0, bytes: 16 }).collect(),
    });
    blob.step(&step).file()
}
