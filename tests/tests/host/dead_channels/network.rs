//! int8 networks made step by step.

use arenite::DType;
use arenite_host::graph::{
    Activation, BinaryOp, Conv2dAttrs, Data, Graph, Layout, Node, Op, Origin, Padding2d, PoolAttrs, Quant, ReduceKind,
    Role, Tensor, TensorId, TensorKind,
};

/// Scale and zero point.
pub(crate) type Affine = (f32, i32);

/// A network under construction; its names count from 0.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) graph: Graph,
}

/// A layer of constant weights.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) outputs: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) padding: Padding2d,
    pub(crate) activation: Activation,
    pub(crate) quant: Affine,
    pub(crate) weight_scale: f32,
    pub(crate) bias: bool,
}

impl Layer {
    /// One by one, without padding.
    pub(crate) fn pointwise(outputs: usize) -> Self {
        Self {
            outputs,
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding: Padding2d::default(),
            activation: Activation::None,
            quant: (0.1, 3),
            weight_scale: 0.02,
            bias: true,
        }
    }

    /// Three rows by two columns, one row above and below and one column to the left.
    pub(crate) fn padded(outputs: usize) -> Self {
        Self {
            kernel: [3, 2],
            padding: Padding2d {
                top: 1,
                bottom: 1,
                left: 1,
                right: 0,
            },
            ..Self::pointwise(outputs)
        }
    }

    pub(crate) fn with(self, activation: Activation, quant: Affine) -> Self {
        Self {
            activation,
            quant,
            ..self
        }
    }
}

impl Network {
    pub(crate) fn shape(&self, id: TensorId) -> Vec<usize> {
        self.graph.tensor(id).shape.clone()
    }

    pub(crate) fn channels(&self, id: TensorId) -> usize {
        *self.shape(id).last().expect("an axis")
    }

    pub(crate) fn name(&self, id: TensorId) -> &str {
        &self.graph.tensor(id).name
    }

    pub(crate) fn tensor(&mut self, shape: &[usize], (scale, zero_point): Affine) -> TensorId {
        let name = format!("t{}", self.graph.tensors.len());
        let quant = Some(Quant::per_tensor(scale, zero_point));
        self.graph.add_tensor(Tensor {
            quant,
            ..Tensor::activation(name, shape, DType::I8)
        })
    }

    pub(crate) fn input(&mut self, shape: &[usize], quant: Affine) -> TensorId {
        let id = self.tensor(shape, quant);
        self.graph.tensor_mut(id).kind = TensorKind::Input;
        self.graph.inputs.push(id);
        id
    }

    pub(crate) fn output(&mut self, id: TensorId) {
        self.graph.outputs.push(id);
    }

    pub(crate) fn constant(&mut self, shape: &[usize], quant: Affine, values: &[i8]) -> TensorId {
        let id = self.tensor(shape, quant);
        let bytes = values.iter().map(|&v| v as u8).collect();
        self.graph.tensor_mut(id).kind = TensorKind::Const(Data::Bytes(bytes));
        id
    }

    pub(crate) fn node(&mut self, op: Op, inputs: &[TensorId], shape: &[usize], quant: Affine) -> TensorId {
        let y = self.tensor(shape, quant);
        let name = format!("n{}", self.graph.nodes.len());
        self.graph.add_node(Node {
            kind: name.clone(),
            name,
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![y],
            role: Role::Forward,
            origin: Origin::default(),
        });
        y
    }

    /// An operator of one operand that changes neither shape nor quantisation.
    pub(crate) fn same(&mut self, op: Op, x: TensorId) -> TensorId {
        let (shape, quant) = (self.shape(x), self.affine(x));
        self.node(op, &[x], &shape, quant)
    }

    pub(crate) fn affine(&self, id: TensorId) -> Affine {
        let quant = self.graph.tensor(id).quant.as_ref().expect("quantised");
        (quant.scale[0], quant.zero_point[0])
    }

    /// Weights by output channel, tap and input channel; one scale for each output channel.
    fn constants(
        &mut self,
        layer: &Layer,
        shape: &[usize],
        weight: &mut dyn FnMut(usize, usize, usize) -> i8,
        bias: &mut dyn FnMut(usize) -> i32,
    ) -> Vec<TensorId> {
        let [inputs, taps] = [shape[shape.len() - 1], shape[1..shape.len() - 1].iter().product()];
        let mut values = Vec::new();
        for o in 0..layer.outputs {
            for tap in 0..taps {
                values.extend((0..inputs).map(|c| weight(o, tap, c)));
            }
        }
        let weights = self.constant(shape, (1.0, 0), &values);
        self.graph.tensor_mut(weights).quant = Some(Quant {
            scale: (0..layer.outputs)
                .map(|o| layer.weight_scale * (1.0 + o as f32 / 64.0))
                .collect(),
            zero_point: vec![0; layer.outputs],
            axis: Some(0),
        });
        if !layer.bias {
            return vec![weights];
        }
        let values: Vec<i32> = (0..layer.outputs).map(bias).collect();
        let name = format!("t{}", self.graph.tensors.len());
        let biases = self.graph.add_tensor(Tensor {
            kind: TensorKind::Const(Data::from_i32(&values)),
            ..Tensor::activation(name, &[layer.outputs], DType::I32)
        });
        vec![weights, biases]
    }

    fn convolution(&mut self, x: TensorId, layer: &Layer, groups: usize, constants: Vec<TensorId>) -> TensorId {
        let shape = self.shape(x);
        let p = layer.padding;
        let extent = |axis: usize, padding: usize| {
            let reach = layer.dilation[axis] * (layer.kernel[axis] - 1);
            (shape[1 + axis] + padding - reach - 1) / layer.stride[axis] + 1
        };
        let (rows, columns) = (extent(0, p.top + p.bottom), extent(1, p.left + p.right));
        let attrs = Conv2dAttrs {
            layout: Layout::Nhwc,
            stride: layer.stride,
            dilation: layer.dilation,
            padding: p,
            groups,
            activation: layer.activation,
        };
        let inputs: Vec<TensorId> = [x].into_iter().chain(constants).collect();
        self.node(
            Op::Conv2d(attrs),
            &inputs,
            &[shape[0], rows, columns, layer.outputs],
            layer.quant,
        )
    }

    pub(crate) fn conv(
        &mut self,
        x: TensorId,
        layer: &Layer,
        weight: &mut dyn FnMut(usize, usize, usize) -> i8,
        bias: &mut dyn FnMut(usize) -> i32,
    ) -> TensorId {
        let shape = [layer.outputs, layer.kernel[0], layer.kernel[1], self.channels(x)];
        let constants = self.constants(layer, &shape, weight, bias);
        self.convolution(x, layer, 1, constants)
    }

    /// The number of outputs is a multiple of the number of channels.
    pub(crate) fn depthwise(
        &mut self,
        x: TensorId,
        layer: &Layer,
        weight: &mut dyn FnMut(usize, usize, usize) -> i8,
        bias: &mut dyn FnMut(usize) -> i32,
    ) -> TensorId {
        let constants = self.constants(
            layer,
            &[layer.outputs, layer.kernel[0], layer.kernel[1], 1],
            weight,
            bias,
        );
        self.convolution(x, layer, self.channels(x), constants)
    }

    pub(crate) fn linear(
        &mut self,
        x: TensorId,
        layer: &Layer,
        weight: &mut dyn FnMut(usize, usize, usize) -> i8,
        bias: &mut dyn FnMut(usize) -> i32,
    ) -> TensorId {
        let mut shape = self.shape(x);
        let inputs = shape.pop().expect("an axis");
        let mut constants = self.constants(layer, &[layer.outputs, inputs], &mut |o, _, c| weight(o, 0, c), bias);
        constants.insert(0, x);
        shape.push(layer.outputs);
        let activation = layer.activation;
        self.node(Op::Linear { activation }, &constants, &shape, layer.quant)
    }

    pub(crate) fn binary(&mut self, kind: BinaryOp, a: TensorId, b: TensorId, quant: Affine) -> TensorId {
        let activation = Activation::None;
        let shape = self.shape(a);
        self.node(Op::Binary { kind, activation }, &[a, b], &shape, quant)
    }

    pub(crate) fn concat(&mut self, operands: &[TensorId], axis: usize) -> TensorId {
        let mut shape = self.shape(operands[0]);
        shape[axis] = operands.iter().map(|&id| self.shape(id)[axis]).sum();
        let (activation, quant) = (Activation::None, self.affine(operands[0]));
        self.node(Op::Concat { axis, activation }, operands, &shape, quant)
    }

    pub(crate) fn pool(&mut self, x: TensorId, max: bool, kernel: [usize; 2], stride: [usize; 2]) -> TensorId {
        let shape = self.shape(x);
        let padding = Padding2d {
            left: usize::from(kernel[1] > 1),
            ..Padding2d::default()
        };
        let rows = (shape[1] - kernel[0]) / stride[0] + 1;
        let columns = (shape[2] + padding.left - kernel[1]) / stride[1] + 1;
        let attrs = PoolAttrs {
            layout: Layout::Nhwc,
            kernel,
            stride,
            padding,
            count_include_pad: false,
            activation: Activation::None,
        };
        let op = if max {
            Op::MaxPool2d(attrs)
        } else {
            Op::AvgPool2d(attrs)
        };
        let quant = self.affine(x);
        self.node(op, &[x], &[shape[0], rows, columns, shape[3]], quant)
    }

    pub(crate) fn reshape(&mut self, x: TensorId, shape: &[usize]) -> TensorId {
        let quant = self.affine(x);
        self.node(Op::Reshape, &[x], shape, quant)
    }

    pub(crate) fn flatten(&mut self, x: TensorId) -> TensorId {
        let shape = self.shape(x);
        self.reshape(x, &[shape[0], shape[1..].iter().product()])
    }

    pub(crate) fn mean(&mut self, x: TensorId, quant: Affine) -> TensorId {
        let shape = self.shape(x);
        let op = Op::Reduce {
            kind: ReduceKind::Mean,
            axes: vec![1, 2],
            keep_dims: false,
        };
        self.node(op, &[x], &[shape[0], shape[3]], quant)
    }

    pub(crate) fn pad(&mut self, x: TensorId, pads: [(usize, usize); 4], value: i8) -> TensorId {
        let shape: Vec<usize> = self.shape(x).iter().zip(pads).map(|(n, (a, b))| n + a + b).collect();
        let op = Op::Pad {
            pads: pads.to_vec(),
            value: f32::from(value),
        };
        let quant = self.affine(x);
        self.node(op, &[x], &shape, quant)
    }

    /// `count` channels from `first` on.
    pub(crate) fn slice(&mut self, x: TensorId, first: usize, count: usize) -> TensorId {
        let mut shape = self.shape(x);
        let mut begin = vec![0; shape.len()];
        (begin[shape.len() - 1], shape[begin.len() - 1]) = (first, count);
        let (stride, quant) = (vec![1; shape.len()], self.affine(x));
        self.node(Op::Slice { begin, stride }, &[x], &shape, quant)
    }
}
