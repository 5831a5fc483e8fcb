//! Optimisers: where a parameter goes from its gradient, and what is kept for that from step to step.

use std::collections::HashMap;
use std::fmt;

use super::nodes::{binary, constant, made, node};
use super::parameters::Parameter;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{BinaryOp, DType, Data, Graph, Op, Tensor, TensorId, TensorKind, UnaryKind};
use arenite::ops::pointwise::{Function, UnaryOp};

/// An optimiser; `g` is a parameter's gradient, `w` the parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimiser {
    /// `w -= rate * g`.
    Sgd,
    /// `v = momentum * v + g; w -= rate * v`, from `v = 0` on (Polyak 1964, as PyTorch has it, without dampening).
    Momentum(f32),
    /// `m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g * g; w -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)`, of step `t` from 1 on
    /// (Kingma and Ba 2015).
    Adam {
        /// b1 and b2.
        betas: [f32; 2],
        /// Added to the root.
        epsilon: f32,
    },
}

/// Adam's defaults.
const ADAM: Optimiser = Optimiser::Adam {
    betas: [0.9, 0.999],
    epsilon: 1e-8,
};

/// The default share of a momentum.
const MOMENTUM: f32 = 0.9;

impl Optimiser {
    /// The optimiser of a text: `sgd`, `momentum`, `momentum=0.9`, `adam`, `adam=0.9,0.999,1e-8`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for others, and for numbers out of range.
    pub fn named(text: &str) -> Result<Self> {
        let wrong = |message: String| {
            Error::new(ErrorKind::Usage, message)
                .expected("sgd, momentum[=SHARE] or adam[=B1,B2,EPSILON]; shares from 0 to below 1, an epsilon above 0")
        };
        let (name, numbers) = text.split_once('=').unwrap_or((text, ""));
        let given: std::result::Result<Vec<f32>, _> = numbers
            .split(',')
            .filter(|_| !numbers.is_empty())
            .map(|number| number.trim().parse::<f32>())
            .collect();
        let given = given.map_err(|_| wrong(format!("--optimiser {text}: not a number")))?;
        let found = match (name, &given[..]) {
            ("sgd", []) if !text.contains('=') => Self::Sgd,
            ("momentum", []) => Self::Momentum(MOMENTUM),
            ("momentum", &[share]) => Self::Momentum(share),
            ("adam", []) => ADAM,
            ("adam", &[first, second, epsilon]) => Self::Adam {
                betas: [first, second],
                epsilon,
            },
            ("sgd" | "momentum" | "adam", _) => return Err(wrong(format!("--optimiser {text}"))),
            _ => return Err(wrong(format!("--optimiser {text}: there is no such optimiser"))),
        };
        let is_share = |share: &f32| (0.0..1.0).contains(share);
        let in_range = match &found {
            Self::Sgd => true,
            Self::Momentum(share) => is_share(share),
            Self::Adam { betas, epsilon } => betas.iter().all(is_share) && *epsilon > 0.0 && epsilon.is_finite(),
        };
        if in_range {
            Ok(found)
        } else {
            Err(wrong(format!("--optimiser {text}")))
        }
    }
}

impl fmt::Display for Optimiser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sgd => f.write_str("sgd"),
            Self::Momentum(share) => write!(f, "momentum={share}"),
            Self::Adam {
                betas: [first, second],
                epsilon,
            } => write!(f, "adam={first},{second},{epsilon}"),
        }
    }
}

/// Moments of gradients, kept from step to step in the state.
#[derive(Debug, Clone)]
pub(super) struct Moments {
    optimiser: Optimiser,
    /// Of each parameter, as many as the optimiser has.
    of: HashMap<TensorId, Vec<TensorId>>,
    /// Adam's `b1^t` and `b2^t`, `[1]`.
    powers: Vec<TensorId>,
}

impl Moments {
    /// Adds them to a network, zeros all.
    pub(super) fn added(graph: &mut Graph, parameters: &[Parameter], optimiser: Optimiser) -> Self {
        let kept: &[&str] = match optimiser {
            Optimiser::Sgd => &[],
            Optimiser::Momentum(_) => &["momentum"],
            Optimiser::Adam { .. } => &["mean", "square"],
        };
        let mut of = HashMap::new();
        for parameter in parameters {
            let tensor = graph.tensor(parameter.tensor).clone();
            let moment = |kept: &&str| {
                let zeros = vec![0; tensor.elements() * size_of::<f32>()];
                state(graph, &format!("{}.{kept}", tensor.name), &tensor.shape, zeros)
            };
            of.insert(parameter.tensor, kept.iter().map(moment).collect());
        }
        let powers = match optimiser {
            Optimiser::Adam { .. } => ["adam.mean", "adam.square"]
                .map(|name| state(graph, &format!("{name}.left"), &[1], 1.0_f32.to_le_bytes().to_vec()))
                .to_vec(),
            _ => Vec::new(),
        };
        Self { optimiser, of, powers }
    }

    /// Whether gradients must be stored.
    pub(super) fn store(&self) -> bool {
        self.optimiser != Optimiser::Sgd
    }

    /// The part of Adam that all parameters share: `1 / (1 - b^t)` of both shares; nothing of others.
    pub(super) fn begin(&self, graph: &mut Graph) -> Vec<TensorId> {
        let Optimiser::Adam { betas, .. } = self.optimiser else {
            return Vec::new();
        };
        let one = constant(graph, "one", 1.0);
        let mut factors = Vec::new();
        for (&left, beta) in self.powers.iter().zip(betas) {
            let name = graph.tensor(left).name.clone();
            let beta = constant(graph, &format!("{name}.share"), beta);
            let power = binary(graph, &format!("{name}.next"), BinaryOp::Mul, [left, beta]);
            assign(graph, left, power);
            let taken = binary(graph, &format!("{name}.taken"), BinaryOp::Sub, [one, power]);
            factors.push(binary(graph, &format!("{name}.factor"), BinaryOp::Div, [one, taken]));
        }
        factors
    }

    /// Where a parameter goes, times the rate and backwards; from its gradient and what [`Moments::begin`] made.
    pub(super) fn direction(
        &self,
        graph: &mut Graph,
        parameter: TensorId,
        gradient: TensorId,
        begun: &[TensorId],
    ) -> TensorId {
        let name = graph.tensor(parameter).name.clone();
        let named = |what: &str| format!("{name}.{what}");
        match (self.optimiser, &self.of[&parameter][..], begun) {
            (Optimiser::Momentum(share), &[velocity], _) => {
                let share = constant(graph, &named("momentum.share"), share);
                let kept = binary(graph, &named("momentum.kept"), BinaryOp::Mul, [velocity, share]);
                let next = binary(graph, &named("momentum.next"), BinaryOp::Add, [kept, gradient]);
                assign(graph, velocity, next);
                next
            }
            (Optimiser::Adam { betas, epsilon }, &[mean, square], &[of_mean, of_square]) => {
                let squared = binary(graph, &named("square.gradient"), BinaryOp::Mul, [gradient, gradient]);
                let [first, second] = betas;
                let mean = moved(graph, mean, gradient, first);
                let square = moved(graph, square, squared, second);
                let mean = binary(graph, &named("mean.whole"), BinaryOp::Mul, [mean, of_mean]);
                let square = binary(graph, &named("square.whole"), BinaryOp::Mul, [square, of_square]);
                let shape = graph.tensor(square).shape.clone();
                let result = Tensor::activation(named("root"), &shape, DType::F32);
                let op = Op::Unary(UnaryKind::Function(Function::Basic(UnaryOp::Sqrt)));
                let root = made(graph, &named("root"), op, &[square], result);
                let epsilon = constant(graph, &named("epsilon"), epsilon);
                let root = binary(graph, &named("root.epsilon"), BinaryOp::Add, [root, epsilon]);
                binary(graph, &named("direction"), BinaryOp::Div, [mean, root])
            }
            _ => gradient,
        }
    }
}

/// A tensor of the state.
fn state(graph: &mut Graph, name: &str, shape: &[usize], bytes: Vec<u8>) -> TensorId {
    graph.add_tensor(Tensor {
        kind: TensorKind::State(Data::Bytes(bytes.into())),
        ..Tensor::activation(name, shape, DType::F32)
    })
}

/// A kept mean after another value, `share * kept + (1 - share) * fresh`.
fn moved(graph: &mut Graph, kept: TensorId, fresh: TensorId, share: f32) -> TensorId {
    let name = graph.tensor(kept).name.clone();
    let shares = [share, 1.0 - share].map(|share| constant(graph, &format!("{name}.share"), share));
    let old = binary(graph, &format!("{name}.kept"), BinaryOp::Mul, [kept, shares[0]]);
    let new = binary(graph, &format!("{name}.fresh"), BinaryOp::Mul, [fresh, shares[1]]);
    let next = binary(graph, &format!("{name}.next"), BinaryOp::Add, [old, new]);
    assign(graph, kept, next);
    next
}

fn assign(graph: &mut Graph, state: TensorId, value: TensorId) {
    let name = format!("{}.assign", graph.tensor(state).name);
    node(graph, &name, Op::AssignState, &[state, value], &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimisers_have_names_and_numbers() {
        for (text, expected) in [
            ("sgd", Optimiser::Sgd),
            ("momentum", Optimiser::Momentum(0.9)),
            ("momentum=0.5", Optimiser::Momentum(0.5)),
            ("momentum=0", Optimiser::Momentum(0.0)),
            ("adam", ADAM),
            (
                "adam=0.8, 0.99,1e-6",
                Optimiser::Adam {
                    betas: [0.8, 0.99],
                    epsilon: 1e-6,
                },
            ),
        ] {
            assert_eq!(Optimiser::named(text).expect(text), expected);
            assert_eq!(Optimiser::named(&expected.to_string()).expect(text), expected);
        }
        for text in [
            "",
            "sgd=",
            "sgd=1",
            "momentum=1",
            "momentum=-0.1",
            "momentum=NaN",
            "momentum=0.9,0.9",
            "adam=0.9",
            "adam=0.9,1,1e-8",
            "adam=0.9,0.9,0",
            "adam=0.9,0.9,inf",
            "adam=a,b,c",
            "rmsprop",
        ] {
            let error = Optimiser::named(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
        }
    }
}
