//! LSTM, GRU and RNN, unrolled: the products with the sequence at once, those with the state step by step.

use super::array::{Array, Elements};
use super::importer::{Importer, Value, View};
use crate::error::{Error, Result};
use crate::graph::numbers::Range;
use crate::graph::{BinaryOp, UnaryKind};
use arenite::ops::pointwise::{Function, SpecialOp};

/// Nodes that a step of a sequence becomes at least, in one direction.
const NODES_OF_STEP: usize = 4;

/// The recurrent operators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell {
    Lstm,
    Gru,
    Rnn,
}

impl Cell {
    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Rnn => 1,
        }
    }

    fn activations(self) -> &'static [&'static str] {
        match self {
            Cell::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Cell::Gru => &["Sigmoid", "Tanh"],
            Cell::Rnn => &["Tanh"],
        }
    }
}

/// An activation with its parameters.
#[derive(Debug, Clone, Copy)]
struct Activation<'a> {
    name: &'a str,
    alpha: Option<f32>,
    beta: Option<f32>,
}

/// The operands of one direction.
struct Direction<'a> {
    cell: Cell,
    /// `[hidden * gates, inputs]`
    w: Value,
    /// `[hidden * gates, hidden]`, in the pieces that are multiplied at once: of a GRU those of two gates and of the candidate. Cut here, all steps have the
    /// same weights.
    r: Vec<Value>,
    /// `[hidden * gates]` each.
    bias: Option<(Value, Value)>,
    h: Option<Value>,
    c: Option<Value>,
    /// `[1, hidden]` for input, output and forget gate.
    peepholes: Option<[Value; 3]>,
    activations: Vec<Activation<'a>>,
    clip: Option<f32>,
    reverse: bool,
    hidden: usize,
    reset_first: bool,
    couple: bool,
}

impl<'a> Importer<'_, 'a> {
    pub(super) fn recurrent(&mut self, view: View<'_, 'a>, cell: Cell) -> Result<()> {
        let mut x = self.operand(view, 0)?;
        let (w, r) = (self.operand(view, 1)?, self.operand(view, 2)?);
        let batchwise = view.flag("layout", false)?;
        if self.shape(&x).len() != 3 || self.shape(&w).len() != 3 || self.shape(&r).len() != 3 {
            return Err(Error::input(format!(
                "a sequence {:?}, weights {:?} and {:?}",
                self.shape(&x),
                self.shape(&w),
                self.shape(&r)
            ))
            .expected("three axes each"));
        }
        if batchwise {
            x = self.transpose(&x, &[1, 0, 2])?;
        }
        let (steps, w_shape, r_shape) = (self.shape(&x)[0], self.shape(&w), self.shape(&r));
        let (directions, hidden) = (w_shape[0], r_shape[2]);
        let rows = hidden.saturating_mul(cell.gates());
        if w_shape[1..] != [rows, self.shape(&x)[2]]
            || r_shape != [directions, rows, hidden]
            || !(1..=2).contains(&directions)
        {
            return Err(Error::input(format!(
                "a sequence {:?}, weights {w_shape:?} and {r_shape:?}",
                self.shape(&x)
            )));
        }
        let nodes = steps.saturating_mul(directions).saturating_mul(NODES_OF_STEP);
        self.budget.allow_nodes(self.out.nodes.len().saturating_add(nodes))?;
        self.check_lengths(view, steps)?;
        match view.node.int("hidden_size")? {
            Some(size) if size != hidden as i64 => {
                return Err(Error::input(format!("attribute `hidden_size` is {size}"))
                    .expected(format!("{hidden}, the last extent of the weights {r_shape:?}")));
            }
            _ => {}
        }
        let names = view.word("direction", &["forward", "reverse", "bidirectional"])?;
        let wanted = if names == "bidirectional" { 2 } else { 1 };
        if directions != wanted {
            return Err(Error::input(format!("weights of {directions} directions of `{names}`")));
        }
        let bias = self.optional(view, 3)?;
        let (mut first_h, mut first_c) = (self.optional(view, 5)?, None);
        let mut peepholes = None;
        if cell == Cell::Lstm {
            first_c = self.optional(view, 6)?;
            peepholes = self.optional(view, 7)?;
        }
        if batchwise {
            first_h = first_h.map(|h| self.transpose(&h, &[1, 0, 2])).transpose()?;
            first_c = first_c.map(|c| self.transpose(&c, &[1, 0, 2])).transpose()?;
        }
        // A state of zeros is none.
        let at_rest = [directions, self.shape(&x)[1], hidden];
        let moved = |state: Option<Value>| state.filter(|state| !is_zero(state, &at_rest));
        let (first_h, first_c) = (moved(first_h), moved(first_c));
        let activations = activations(view, cell, directions)?;
        let clip = (view.node.has("clip").then(|| view.number("clip", 0.0, Range::Positive))).transpose()?;
        let per = cell.activations().len();
        let (mut sequences, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..directions {
            let of = |net: &mut Self, value: &Value| -> Result<Value> {
                let shape = net.shape(value);
                let part = net.part(value, 0, index, 1)?;
                net.reshape(&part, &shape[1..])
            };
            let bias = match &bias {
                None => None,
                Some(bias) => {
                    let both = of(self, bias)?;
                    Some((self.part(&both, 0, 0, rows)?, self.part(&both, 0, rows, rows)?))
                }
            };
            let peepholes = match &peepholes {
                None => None,
                Some(all) => {
                    let own = of(self, all)?;
                    let own = self.reshape(&own, &[1, 3 * hidden])?;
                    let mut part = |i: usize| self.part(&own, 1, i * hidden, hidden);
                    Some([part(0)?, part(1)?, part(2)?])
                }
            };
            let whole = of(self, &r)?;
            let pieces = if cell == Cell::Gru {
                vec![
                    self.part(&whole, 0, 0, 2 * hidden)?,
                    self.part(&whole, 0, 2 * hidden, hidden)?,
                ]
            } else {
                vec![whole]
            };
            let direction = Direction {
                cell,
                w: of(self, &w)?,
                r: pieces,
                bias,
                h: first_h.as_ref().map(|h| of(self, h)).transpose()?,
                c: first_c.as_ref().map(|c| of(self, c)).transpose()?,
                peepholes,
                activations: activations[index * per..(index + 1) * per].to_vec(),
                clip,
                reverse: names == "reverse" || index == 1,
                hidden,
                reset_first: !view.flag("linear_before_reset", false)?,
                couple: view.flag("input_forget", false)?,
            };
            let (states, c) = self.direction(&x, &direction)?;
            let last = if direction.reverse {
                states.first()
            } else {
                states.last()
            };
            last_h.push(last.cloned().ok_or_else(|| Error::internal("an empty sequence"))?);
            last_c.extend(c);
            sequences.push(states);
        }
        let batch = self.shape(&x)[1];
        let (one, perm): ([usize; 3], &[usize]) = ([1, batch, hidden], &[1, 0, 2]);
        if view.output(0).is_some() {
            let mut all = Vec::new();
            for step in 0..steps {
                for states in &sequences {
                    all.push(self.reshape(&states[step], &one)?);
                }
            }
            let y = self.concat(&all, 0)?;
            let mut y = self.reshape(&y, &[steps, directions, batch, hidden])?;
            if batchwise {
                y = self.transpose(&y, &[2, 0, 1, 3])?;
            }
            self.bind(view, 0, y)?;
        }
        for (position, states) in [(1, last_h), (2, last_c)] {
            if view.output(position).is_some() && !states.is_empty() {
                let states: Vec<Value> = states.iter().map(|s| self.reshape(s, &one)).collect::<Result<_>>()?;
                let mut y = self.concat(&states, 0)?;
                if batchwise {
                    y = self.transpose(&y, perm)?;
                }
                self.bind(view, position, y)?;
            }
        }
        Ok(())
    }

    /// Lengths of sequences other than that of the operand are dynamic shapes.
    fn check_lengths(&mut self, view: View<'_, 'a>, steps: usize) -> Result<()> {
        let refused = || {
            Error::unsupported("dynamic shape: lengths of sequences")
                .expected(format!("{steps}, the length of the operand"))
                .help("leave sequence_lens out: a microcontroller runs the plan of one length")
        };
        match self.optional(view, 4)? {
            None => Ok(()),
            Some(Value::Array(lengths)) => {
                let lengths = lengths.whole("lengths")?;
                if lengths.iter().all(|&n| n == steps as i64) {
                    Ok(())
                } else {
                    Err(refused())
                }
            }
            Some(_) if steps == 1 => {
                let name = view.input(4)?;
                self.warn(format!(
                    "`{name}`: a sequence of one step has no other length; its value is not read"
                ));
                Ok(())
            }
            Some(_) => Err(refused()),
        }
    }

    /// The hidden states in the order of the operand's steps, and the last cell state of an LSTM.
    fn direction(&mut self, x: &Value, d: &Direction<'_>) -> Result<(Vec<Value>, Option<Value>)> {
        let shape = self.shape(x);
        let [steps, batch, inputs] = [shape[0], shape[1], shape[2]];
        let rows = d.hidden * d.cell.gates();
        let flat = self.reshape(x, &[steps * batch, inputs])?;
        // The bias of the state belongs to the reset product of a GRU, and elsewhere to the sum.
        let (bias, late) = match (&d.bias, d.cell) {
            (None, _) => (None, None),
            (Some((a, b)), Cell::Gru) if !d.reset_first => {
                let gates = 2 * d.hidden;
                let (low, high) = (self.part(b, 0, 0, gates)?, self.part(b, 0, gates, d.hidden)?);
                let none = Array::filled(&self.budget, &[d.hidden], 0.0)?.into();
                let low = self.concat(&[low, none], 0)?;
                (Some(self.binary(BinaryOp::Add, a, &low)?), Some(high))
            }
            (Some((a, b)), _) => (Some(self.binary(BinaryOp::Add, a, b)?), None),
        };
        let seen = self.linear(&flat, &d.w, bias.as_ref())?;
        let (mut h, mut c) = (d.h.clone(), d.c.clone());
        let mut states: Vec<Option<Value>> = vec![None; steps];
        for index in 0..steps {
            let step = if d.reverse { steps - 1 - index } else { index };
            let own = self.part(&seen, 0, step * batch, batch)?;
            let own = self.reshape(&own, &[batch, rows])?;
            let next = match d.cell {
                Cell::Rnn => {
                    let sum = self.plus_state(own, h.as_ref(), &d.r[0])?;
                    self.activated(d, 0, &sum)?
                }
                Cell::Gru => self.gru_step(&own, h.as_ref(), late.as_ref(), d)?,
                Cell::Lstm => {
                    let (next, cell) = self.lstm_step(own, h.as_ref(), c.as_ref(), d)?;
                    c = Some(cell);
                    next
                }
            };
            states[step] = Some(next.clone());
            h = Some(next);
        }
        Ok((states.into_iter().flatten().collect(), c))
    }

    /// `own + state * r`, where there is a state.
    fn plus_state(&mut self, own: Value, state: Option<&Value>, r: &Value) -> Result<Value> {
        let Some(state) = state else { return Ok(own) };
        let product = self.linear(state, r, None)?;
        self.binary(BinaryOp::Add, &own, &product)
    }

    fn lstm_step(
        &mut self,
        own: Value,
        h: Option<&Value>,
        c: Option<&Value>,
        d: &Direction<'_>,
    ) -> Result<(Value, Value)> {
        let n = d.hidden;
        let sum = self.plus_state(own, h, &d.r[0])?;
        // Input, output, forget, cell.
        let mut gates = Vec::new();
        for gate in 0..4 {
            gates.push(self.part(&sum, 1, gate * n, n)?);
        }
        if let (Some([input, _, forget]), Some(c)) = (&d.peepholes, c) {
            for (gate, weights) in [(0, input), (2, forget)] {
                let term = self.binary(BinaryOp::Mul, c, weights)?;
                gates[gate] = self.binary(BinaryOp::Add, &gates[gate], &term)?;
            }
        }
        let input = self.activated(d, 0, &gates[0])?;
        let candidate = self.activated(d, 1, &gates[3])?;
        let mut cell = self.binary(BinaryOp::Mul, &input, &candidate)?;
        if let Some(c) = c {
            let forget = if d.couple {
                self.binary(BinaryOp::Sub, &Array::scalar(1.0).into(), &input)?
            } else {
                self.activated(d, 0, &gates[2])?
            };
            let kept = self.binary(BinaryOp::Mul, &forget, c)?;
            cell = self.binary(BinaryOp::Add, &kept, &cell)?;
        }
        let mut output = gates[1].clone();
        if let Some([_, weights, _]) = &d.peepholes {
            let term = self.binary(BinaryOp::Mul, &cell, weights)?;
            output = self.binary(BinaryOp::Add, &output, &term)?;
        }
        let output = self.activated(d, 0, &output)?;
        let bounded = self.activated(d, 2, &cell)?;
        Ok((self.binary(BinaryOp::Mul, &output, &bounded)?, cell))
    }

    fn gru_step(&mut self, own: &Value, h: Option<&Value>, late: Option<&Value>, d: &Direction<'_>) -> Result<Value> {
        let n = d.hidden;
        let part = |net: &mut Self, of: &Value, gate: usize| net.part(of, 1, gate * n, n);
        let candidate = part(self, own, 2)?;
        let update_own = part(self, own, 0)?;
        let Some(h) = h else {
            // Without a state: `(1 - z) * g(own)`, where the late bias still passes the reset gate.
            let candidate = match late {
                None => candidate,
                Some(late) => {
                    let reset = part(self, own, 1)?;
                    let reset = self.activated(d, 0, &reset)?;
                    let term = self.binary(BinaryOp::Mul, &reset, late)?;
                    self.binary(BinaryOp::Add, &candidate, &term)?
                }
            };
            let candidate = self.activated(d, 1, &candidate)?;
            let update = self.activated(d, 0, &update_own)?;
            let rest = self.binary(BinaryOp::Sub, &Array::scalar(1.0).into(), &update)?;
            return self.binary(BinaryOp::Mul, &rest, &candidate);
        };
        let gates_own = self.part(own, 1, 0, 2 * n)?;
        let gates = self.plus_state(gates_own, Some(h), &d.r[0])?;
        let (update, reset) = (part(self, &gates, 0)?, part(self, &gates, 1)?);
        let (update, reset) = (self.activated(d, 0, &update)?, self.activated(d, 0, &reset)?);
        let term = if d.reset_first {
            let kept = self.binary(BinaryOp::Mul, &reset, h)?;
            self.linear(&kept, &d.r[1], None)?
        } else {
            let product = self.linear(h, &d.r[1], late)?;
            self.binary(BinaryOp::Mul, &reset, &product)?
        };
        let sum = self.binary(BinaryOp::Add, &candidate, &term)?;
        let candidate = self.activated(d, 1, &sum)?;
        // (1 - z) * candidate + z * h
        let difference = self.binary(BinaryOp::Sub, h, &candidate)?;
        let moved = self.binary(BinaryOp::Mul, &update, &difference)?;
        self.binary(BinaryOp::Add, &candidate, &moved)
    }

    /// Activation `which` of the direction, behind its clip; the cell state is not clipped, as in ONNX Runtime.
    fn activated(&mut self, d: &Direction<'_>, which: usize, x: &Value) -> Result<Value> {
        let clipped;
        let x = match d.clip {
            Some(clip) if which < 2 => {
                clipped = self.unary(UnaryKind::Clamp { min: -clip, max: clip }, x)?;
                &clipped
            }
            _ => x,
        };
        let Activation { name, alpha, beta } = d.activations[which];
        match name.to_ascii_lowercase().as_str() {
            "sigmoid" => self.unary(UnaryKind::LOGISTIC, x),
            "tanh" => self.unary(UnaryKind::TANH, x),
            "relu" => self.unary(UnaryKind::Relu, x),
            "softsign" => self.unary(UnaryKind::Function(Function::Special(SpecialOp::Softsign)), x),
            "softplus" => self.unary(UnaryKind::Function(Function::Special(SpecialOp::Softplus)), x),
            "leakyrelu" => {
                let alpha = alpha.unwrap_or(0.01);
                self.unary(UnaryKind::LeakyRelu { alpha }, x)
            }
            "elu" => self.exponential(x, alpha.unwrap_or(1.0), 1.0, 1.0),
            "hardsigmoid" => self.line_between(x, alpha.unwrap_or(0.2), beta.unwrap_or(0.5)),
            "affine" => {
                let line = self.with(BinaryOp::Mul, x, alpha.unwrap_or(1.0))?;
                self.with(BinaryOp::Add, &line, beta.unwrap_or(0.0))
            }
            "scaledtanh" => {
                let inner = self.with(BinaryOp::Mul, x, beta.unwrap_or(1.0))?;
                let bounded = self.unary(UnaryKind::TANH, &inner)?;
                self.with(BinaryOp::Mul, &bounded, alpha.unwrap_or(1.0))
            }
            other => Err(
                Error::unsupported(format!("the activation `{other}` of a recurrent operator")).expected(
                    "Sigmoid, Tanh, Relu, LeakyRelu, Elu, HardSigmoid, Softsign, Softplus, Affine or ScaledTanh",
                ),
            ),
        }
    }
}

/// The activations of all directions; parameters are handed out in order to those that have any.
fn activations<'a>(view: View<'_, 'a>, cell: Cell, directions: usize) -> Result<Vec<Activation<'a>>> {
    let usual: Vec<&str> = cell.activations().repeat(directions);
    let names = view.node.texts("activations")?.unwrap_or_else(|| usual.clone());
    if names.len() != usual.len() {
        return Err(Error::input(format!("activations {names:?}")).expected(format!("{}", usual.len())));
    }
    let mut alphas = view.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = view.floats("activation_beta")?.unwrap_or_default().into_iter();
    let each = names.into_iter().map(|name| {
        let (alpha, beta) = match name.to_ascii_lowercase().as_str() {
            "leakyrelu" | "elu" | "thresholdedrelu" => (alphas.next(), None),
            "hardsigmoid" | "affine" | "scaledtanh" => (alphas.next(), betas.next()),
            _ => (None, None),
        };
        Activation { name, alpha, beta }
    });
    Ok(each.collect())
}

/// Whether a value is known to be all zeros, of this shape.
fn is_zero(value: &Value, shape: &[usize]) -> bool {
    let Value::Array(array) = value else { return false };
    array.shape == shape && matches!(&array.data, Elements::Floats(values) if values.iter().all(|value| *value == 0.0))
}
