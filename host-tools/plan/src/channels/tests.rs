//! The check sees each way in which a pruned network can be wrong.

use super::live::Classes;
use super::ranges::Ranges;
use super::sample::sample;
use super::{check, remove, rewrite};
use crate::graph::{Data, Graph, Quant, TensorKind};
use crate::metadata::{Channel, Channels};

fn fates(graph: &Graph, name: &str) -> Vec<Channel> {
    graph.channels[name].each().collect()
}

/// Networks and claims of a check.
struct Case {
    whole: Graph,
    pruned: Graph,
    claims: Vec<Vec<(i32, i32)>>,
}

impl Case {
    fn new() -> Self {
        let whole = sample();
        let ranges = Ranges::of(&whole);
        let mut pruned = whole.clone();
        rewrite::rewrite(&mut pruned, &Classes::of(&whole, &ranges, 1), &ranges).expect("rewritten");
        Self {
            claims: ranges.claims(),
            whole,
            pruned,
        }
    }

    fn id(&self, name: &str) -> usize {
        let named = self.whole.tensors.iter().position(|t| t.name == name);
        named.expect("a tensor")
    }

    /// The bytes of a constant of the pruned network.
    fn change(&mut self, node: usize, operand: usize, f: impl FnOnce(&mut Vec<u8>)) {
        let id = self.pruned.nodes[node].inputs[operand].expect("there");
        let TensorKind::Const(Data::Bytes(bytes)) = &mut self.pruned.tensor_mut(id).kind else {
            panic!("no constant");
        };
        let mut changed = bytes.to_vec();
        f(&mut changed);
        *bytes = changed.into();
    }

    fn refused(&self) -> String {
        let found = check::check(&self.whole, &self.pruned, &self.claims);
        found.expect_err("the check takes it").to_string()
    }
}

#[test]
fn the_sample_has_channels_of_every_kind() {
    use Channel::{Constant, Kept, Unread};
    let case = Case::new();
    check::check(&case.whole, &case.pruned, &case.claims).expect("right");
    let expected = [Kept, Constant(-128), Kept, Kept, Unread];
    assert_eq!(fates(&case.pruned, "first"), expected);
    assert_eq!(fates(&case.pruned, "same"), expected);
    assert_eq!(fates(&case.pruned, "second"), [Kept, Unread, Kept]);
    assert_eq!(fates(&case.pruned, "depthwise"), [Kept, Constant(127), Kept]);
    assert_eq!(case.claims[case.id("first")][3], (127, 127));
    assert!(!case.pruned.channels.contains_key("last"));
    let removed = remove(&mut sample(), 1).expect("removes");
    assert_eq!(removed.channels, 4);
}

/// A change, with the message that the check must give.
type Change = (&'static str, fn(&mut Case));

#[test]
fn every_wrong_network_is_seen() {
    let changes: &[Change] = &[
        ("channel 0 of `first` may hold", |case| {
            let at = case.id("first");
            case.claims[at][0].1 -= 1;
        }),
        ("channel 2 of `same` may hold", |case| {
            let at = case.id("same");
            case.claims[at][2].0 += 1;
        }),
        ("`x` is claimed to hold less", |case| {
            let at = case.id("x");
            case.claims[at][1] = (0, 127);
        }),
        ("`second`, channel 0: its weights of channel 2 are others", |case| {
            case.change(2, 1, |weights| weights[1] ^= 1);
        }),
        ("`last`, channel 0: its bias grew by", |case| {
            case.change(4, 2, |biases| biases[0] ^= 1);
        }),
        ("`first`, channel 3: it holds", |case| {
            case.change(0, 2, |biases| biases[8..12].copy_from_slice(&0_i32.to_le_bytes()));
        }),
        ("`first`, channel 3: it holds None", |case| {
            // The factor is 0.02: with a shift to the left a sum may leave its 32 bits.
            case.claims[0] = vec![(-128, 127); 2];
            let weights = case.pruned.nodes[0].inputs[1].expect("there");
            case.pruned.tensor_mut(weights).quant = Some(Quant::per_tensor(200.0, 0));
        }),
        ("`depthwise`, channel 2: its weights or its bias are others", |case| {
            case.change(3, 1, |weights| weights[5] ^= 1);
        }),
        ("channel 1 of `first` is not always -127", |case| {
            let changed = fates(&case.pruned, "first").into_iter().map(|fate| match fate {
                Channel::Constant(_) => Channel::Constant(-127),
                fate => fate,
            });
            let changed = Channels::new(changed);
            case.pruned.channels.insert("first".into(), changed);
        }),
        ("channel 4 of `first` is needed, and went", |case| {
            let mut swapped = fates(&case.pruned, "same");
            swapped.swap(0, 4);
            let swapped = Channels::new(swapped.into_iter());
            case.pruned.channels.insert("same".into(), swapped);
        }),
        ("`second`, channel 0: channel 4 of `same` is needed, and went", |case| {
            let weights = case.whole.nodes[2].inputs[1].expect("there");
            let TensorKind::Const(Data::Bytes(bytes)) = &mut case.whole.tensor_mut(weights).kind else {
                panic!("no constant");
            };
            let mut changed = bytes.to_vec();
            changed[4] = 1;
            *bytes = changed.into();
            for name in ["second", "depthwise", "last"] {
                let at = case.id(name);
                let narrow = case.claims[at].iter_mut().filter(|claim| claim.0 < claim.1);
                narrow.for_each(|claim| *claim = (-128, 127));
            }
        }),
        ("channel 0 of `first` is needed, and went", |case| {
            let mut held = fates(&case.pruned, "first");
            held[0] = Channel::Filler;
            case.pruned
                .channels
                .insert("first".into(), Channels::new(held.into_iter()));
        }),
        ("channel 0 of `second` is needed, and went", |case| {
            let mut held = fates(&case.pruned, "second");
            held[0] = Channel::Filler;
            case.pruned
                .channels
                .insert("second".into(), Channels::new(held.into_iter()));
        }),
        ("channels of `last` went", |case| {
            case.pruned.channels.insert("last".into(), Channels::default());
        }),
        ("operators are missing", |case| {
            case.pruned.nodes.pop();
        }),
        ("`elsewhere` stands in its place", |case| {
            case.pruned.nodes[2].name = "elsewhere".into();
        }),
        ("`second`: 4 to 2 channels; expected 3 to 2", |case| {
            let w = case.pruned.nodes[2].inputs[1].expect("there");
            case.pruned.tensor_mut(w).shape[3] = 4;
        }),
        ("it is no layer of constant weights any more", |case| {
            let w = case.pruned.nodes[2].inputs[1].expect("there");
            case.pruned.tensor_mut(w).kind = TensorKind::Activation;
        }),
    ];
    for (message, change) in changes {
        let mut case = Case::new();
        change(&mut case);
        let found = case.refused();
        assert!(found.contains(message), "{found}\ninstead of\n{message}");
    }
}
