//! Networks of the form of llama (Touvron et al., 2023), a token a run: what their formats have in common.
//!
//! The graph has two inputs, `token` and `position`, and one output, `logits`; keys and values of every layer are states of as many lines as the context has
//! positions. Parameters have GGUF's names, whichever format they come from.

use crate::assume::Assumptions;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{
    Activation, BinaryOp, DType, Data, Graph, Node, Op, Origin, Role, Tensor, TensorId, TensorKind, UnaryKind,
};
use crate::imported::{ImportOptions, Imported};

/// The largest extent of a network.
pub(crate) const LARGEST: usize = 1 << 24;

/// Extents and constants of a network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// Of the residual stream.
    pub(crate) width: usize,
    /// Of the feed-forward layers.
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    /// Of keys and values.
    pub(crate) kv_heads: usize,
    /// Elements of a head.
    pub(crate) head: usize,
    pub(crate) vocabulary: usize,
    /// Positions that the network was trained for.
    pub(crate) context: usize,
    /// Of the normalisations.
    pub(crate) epsilon: f32,
    /// Whether the classifier is the table of embeddings.
    pub(crate) shared: bool,
}

/// The angles that a head's pairs are turned by: cosines, then sines, `[context, head / 2]`.
pub(crate) type Tables = [Vec<f32>; 2];

/// Gives the values of a parameter by its name and extents.
pub(crate) type Values<'v> = dyn FnMut(&str, &[usize]) -> Result<Data> + 'v;

impl Shape {
    /// Refuses extents that no network has.
    pub(crate) fn check(&self) -> Result<()> {
        let extents = [
            ("width", self.width),
            ("hidden width", self.hidden),
            ("number of layers", self.layers),
            ("number of heads", self.heads),
            ("number of heads of keys and values", self.kv_heads),
            ("width of a head", self.head),
            ("vocabulary", self.vocabulary),
            ("context", self.context),
        ];
        if let Some((what, extent)) = extents.into_iter().find(|(_, n)| *n == 0 || *n > LARGEST) {
            return Err(Error::input(format!("the {what} is {extent}")).expected(format!("1 to {LARGEST}")));
        }
        if self.layers > MOST_LAYERS {
            return Err(
                Error::unsupported(format!("{} layers", self.layers)).expected(format!("at most {MOST_LAYERS}"))
            );
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(Error::input(format!(
                "{} heads over {} heads of keys and values",
                self.heads, self.kv_heads
            ))
            .expected("a multiple"));
        }
        if !self.head.is_multiple_of(2) {
            return Err(Error::input(format!("heads of {} elements", self.head))
                .expected("an even number, which is turned in pairs"));
        }
        Ok(())
    }

    /// With as many positions as are asked for.
    pub(crate) fn with_context(self, options: &ImportOptions) -> Result<Self> {
        match options.context {
            None => Ok(self),
            Some(context) if (1..=self.context).contains(&context) => Ok(Self { context, ..self }),
            Some(context) => Err(
                Error::new(ErrorKind::Usage, format!("--context {context}")).expected(format!(
                    "1 to {}, the positions that the network was trained for",
                    self.context
                )),
            ),
        }
    }

    /// Refuses positions whose keys, values and angles are larger than a device's memory: what follows is as large. A context that nobody asked for may
    /// take less: the file alone states it, in a few bytes.
    pub(crate) fn check_cache(&self, options: &ImportOptions) -> Result<()> {
        let product = |extents: &[usize]| extents.iter().map(|&extent| extent as u128).product::<u128>();
        let position = product(&[2, self.layers, self.kv_heads, self.head, 4]) + product(&[self.head, 4]);
        let bytes = position * self.context as u128;
        let (most, help) = match options.context {
            Some(_) => (MOST_ASKED, "pass --context N with a smaller N"),
            None => (MOST_UNASKED, "pass --context N with as many positions as you need"),
        };
        if bytes <= most {
            return Ok(());
        }
        let error = Error::unsupported(format!(
            "keys and values of {} positions, with the angles of each, take {bytes} bytes",
            self.context
        ));
        let fitting = most / position;
        Err(error
            .expected(format!("at most {most}, which are {fitting} positions"))
            .help(help))
    }

    /// The angles of each position and pair, from a base of frequencies: products of f32, as where such networks are trained.
    pub(crate) fn tables(&self, base: f32) -> Tables {
        let half = self.head / 2;
        let frequency = |pair: usize| {
            let exponent = (2 * pair) as f32 / self.head as f32;
            1.0 / f64::from(base).powf(exponent.into()) as f32
        };
        let frequencies: Vec<f32> = (0..half).map(frequency).collect();
        let angles = || (0..self.context).flat_map(|position| frequencies.iter().map(move |f| position as f32 * f));
        [
            angles().map(|angle| f64::from(angle).cos() as f32).collect(),
            angles().map(|angle| f64::from(angle).sin() as f32).collect(),
        ]
    }
}

/// Refuses what a network of this form has no place for.
pub(crate) fn refuse_others(options: &ImportOptions) -> Result<()> {
    let usage = |message: String| {
        Error::new(ErrorKind::Usage, message).expected("nothing: a run takes one token and its position")
    };
    match (options.batch, &options.input_shape) {
        (Some(batch), _) if batch != 1 => Err(usage(format!("--batch {batch}"))),
        (_, Some(shape)) => Err(usage(format!("--input-shape {shape:?}"))),
        _ => Assumptions::new(options).finish().map(drop),
    }
}

/// Bytes of keys, values and angles at most, with `--context`.
const MOST_ASKED: u128 = 1 << 30;

/// Likewise without it.
const MOST_UNASKED: u128 = 1 << 27;

/// Layers at most: a graph of a few hundred thousand nodes is none that a device runs.
const MOST_LAYERS: usize = 1024;

/// The network, of extents that are checked.
///
/// # Errors
/// Errors of `values` for a parameter.
pub(crate) fn network(
    name: &str,
    kind: &'static str,
    shape: &Shape,
    tables: Tables,
    values: &mut Values<'_>,
) -> Result<Imported> {
    let mut net = Net {
        graph: Graph {
            name: name.to_string(),
            ..Graph::default()
        },
        values,
        kind,
        params: 0,
    };
    net.build(shape, tables)?;
    crate::graph::check::check(&net.graph)?;
    Ok(Imported {
        graph: net.graph,
        ..Imported::default()
    })
}

struct Net<'v, 'n> {
    graph: Graph,
    values: &'n mut Values<'v>,
    /// The operators' kind, by the dialect.
    kind: &'static str,
    params: usize,
}

impl Net<'_, '_> {
    fn build(&mut self, shape: &Shape, [cosines, sines]: Tables) -> Result<()> {
        let &Shape {
            width,
            hidden,
            layers,
            heads,
            kv_heads,
            head,
            vocabulary,
            context,
            epsilon,
            shared,
        } = shape;
        let token = self.input("token");
        let given = self.input("position");
        let table = self.parameter("token_embd.weight", &[vocabulary, width])?;
        let pairs = [context, head / 2];
        let cosines = self.known("rope_cosines", &pairs, &cosines);
        let sines = self.known("rope_sines", &pairs, &sines);
        // A token beyond the vocabulary ends a run before the position is counted.
        let mut x = self.node("token_embd", Op::Embedding, &[token, table], &[1, width], DType::F32);
        let lines = self.state("lines", &[1], DType::I32);
        let position = self.node(
            "lines_known",
            Op::Position { capacity: context },
            &[given, lines],
            &[1],
            DType::I32,
        );
        for layer in 0..layers {
            let of = |what: &str| format!("blk.{layer}.{what}");
            let norm = self.norm(&of("attn_norm"), x, width, epsilon)?;
            let query = self.linear(&of("attn_q"), norm, heads * head, width)?;
            let key = self.linear(&of("attn_k"), norm, kv_heads * head, width)?;
            let value = self.linear(&of("attn_v"), norm, kv_heads * head, width)?;
            let mut turned = |what: &str, x: TensorId, heads: usize| {
                let parted = self.reshaped(&of(&format!("{what}_heads")), x, &[heads, head]);
                let operands = [parted, cosines, sines, position];
                let op = Op::Rotary { interleaved: true };
                self.node(&of(&format!("{what}_rope")), op, &operands, &[heads, head], DType::F32)
            };
            let (query, key) = (turned("attn_q", query, heads), turned("attn_k", key, kv_heads));
            let value = self.reshaped(&of("attn_v_heads"), value, &[kv_heads, head]);
            let cache = [kv_heads, context, head];
            let keys = self.state(&of("keys"), &cache, DType::F32);
            let written = self.state(&of("values"), &cache, DType::F32);
            self.effect(&of("keys_write"), Op::WriteLine, &[keys, key, position]);
            self.effect(&of("values_write"), Op::WriteLine, &[written, value, position]);
            let op = Op::Attention {
                scale: 1.0 / (head as f32).sqrt(),
            };
            let attended = self.node(
                &of("attn"),
                op,
                &[query, keys, written, position],
                &[heads, head],
                DType::F32,
            );
            let joined = self.reshaped(&of("attn_joined"), attended, &[1, heads * head]);
            let out = self.linear(&of("attn_output"), joined, width, heads * head)?;
            x = self.binary(&of("attn_residual"), BinaryOp::Add, x, out);
            let norm = self.norm(&of("ffn_norm"), x, width, epsilon)?;
            let gate = self.linear(&of("ffn_gate"), norm, hidden, width)?;
            let up = self.linear(&of("ffn_up"), norm, hidden, width)?;
            let op = Op::Unary(UnaryKind::LOGISTIC);
            let open = self.node(&of("ffn_sigmoid"), op, &[gate], &[1, hidden], DType::F32);
            let silu = self.binary(&of("ffn_silu"), BinaryOp::Mul, gate, open);
            let gated = self.binary(&of("ffn_gated"), BinaryOp::Mul, silu, up);
            let down = self.linear(&of("ffn_down"), gated, width, hidden)?;
            x = self.binary(&of("ffn_residual"), BinaryOp::Add, x, down);
        }
        let last = self.norm("output_norm", x, width, epsilon)?;
        let classifier = if shared {
            table
        } else {
            self.parameter("output.weight", &[vocabulary, width])?
        };
        let op = Op::Linear {
            activation: Activation::None,
        };
        let logits = self.node("logits", op, &[last, classifier], &[1, vocabulary], DType::F32);
        self.graph.outputs.push(logits);
        Ok(())
    }

    fn tensor(&mut self, name: &str, shape: &[usize], dtype: DType, kind: TensorKind) -> TensorId {
        self.graph.add_tensor(Tensor {
            kind,
            ..Tensor::activation(name, shape, dtype)
        })
    }

    /// One int32.
    fn input(&mut self, name: &str) -> TensorId {
        let id = self.tensor(name, &[1], DType::I32, TensorKind::Input);
        self.graph.inputs.push(id);
        id
    }

    fn state(&mut self, name: &str, shape: &[usize], dtype: DType) -> TensorId {
        let zeros = vec![0; shape.iter().product::<usize>() * dtype.bytes()];
        self.tensor(name, shape, dtype, TensorKind::State(Data::Bytes(zeros.into())))
    }

    fn parameter(&mut self, name: &str, shape: &[usize]) -> Result<TensorId> {
        let elements = crate::build::elements(shape).map_err(|e| e.at(format!("parameter `{name}`")))?;
        let data = (self.values)(name, shape)?;
        self.graph
            .stated
            .params
            .insert(name.to_string(), (self.params, elements as u64));
        self.params += 1;
        Ok(self.tensor(name, shape, DType::F32, TensorKind::Const(data)))
    }

    fn known(&mut self, name: &str, shape: &[usize], values: &[f32]) -> TensorId {
        self.tensor(name, shape, DType::F32, TensorKind::Const(Data::from_f32(values)))
    }

    fn node(&mut self, name: &str, op: Op, inputs: &[TensorId], shape: &[usize], dtype: DType) -> TensorId {
        let output = self.tensor(name, shape, dtype, TensorKind::Activation);
        self.add(name, op, inputs, vec![output]);
        output
    }

    fn effect(&mut self, name: &str, op: Op, inputs: &[TensorId]) {
        self.add(name, op, inputs, Vec::new());
    }

    fn add(&mut self, name: &str, op: Op, inputs: &[TensorId], outputs: Vec<TensorId>) {
        self.graph.add_node(Node {
            name: name.to_string(),
            kind: named(&op).to_string(),
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs,
            role: Role::Forward,
            origin: Origin {
                line: None,
                path: self.kind.to_string(),
            },
        });
    }

    fn linear(&mut self, name: &str, x: TensorId, outputs: usize, inputs: usize) -> Result<TensorId> {
        let weights = self.parameter(&format!("{name}.weight"), &[outputs, inputs])?;
        let op = Op::Linear {
            activation: Activation::None,
        };
        Ok(self.node(name, op, &[x, weights], &[1, outputs], DType::F32))
    }

    fn norm(&mut self, name: &str, x: TensorId, width: usize, epsilon: f32) -> Result<TensorId> {
        let gain = self.parameter(&format!("{name}.weight"), &[width])?;
        Ok(self.node(name, Op::RmsNorm { epsilon }, &[x, gain], &[1, width], DType::F32))
    }

    fn reshaped(&mut self, name: &str, x: TensorId, shape: &[usize]) -> TensorId {
        self.node(name, Op::Reshape, &[x], shape, DType::F32)
    }

    fn binary(&mut self, name: &str, kind: BinaryOp, a: TensorId, b: TensorId) -> TensorId {
        let shape = self.graph.tensor(a).shape.clone();
        let op = Op::Binary {
            kind,
            activation: Activation::None,
        };
        self.node(name, op, &[a, b], &shape, DType::F32)
    }
}

/// The operator's name in counts.
fn named(op: &Op) -> &'static str {
    match op {
        Op::Embedding => "embedding",
        Op::Position { .. } => "position",
        Op::Linear { .. } => "linear",
        Op::RmsNorm { .. } => "rms_norm",
        Op::Rotary { .. } => "rotary",
        Op::WriteLine => "write_line",
        Op::Attention { .. } => "attention",
        Op::Unary(_) => "sigmoid",
        Op::Binary {
            kind: BinaryOp::Add, ..
        } => "add",
        Op::Binary { .. } => "mul",
        _ => "reshape",
    }
}
