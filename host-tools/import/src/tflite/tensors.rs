//! Tensors of the file as tensors of the graph.

use super::constant::Constant;
use super::importer::Importer;
use super::schema::{INT8, INT16, TensorInfo};
use super::scope::Parameter;
use crate::error::{Error, Result};
use crate::graph::{DType, Data, Node, Op, Origin, Quant, Role, Tensor, TensorId, TensorKind};

impl<'m, 'a> Importer<'m, 'a> {
    pub(super) fn info(&self, index: usize) -> &'m TensorInfo<'a> {
        &self.scope.graph.tensors[index]
    }

    /// The extents of tensor `index`: those that were inferred, else those that the file states.
    pub(super) fn shape(&self, index: usize) -> Result<Vec<usize>> {
        if let Some(shape) = self.scope.shapes.get(&index) {
            return Ok(shape.clone());
        }
        self.stated_shape(index)
    }

    /// The extents that the file states of tensor `index`.
    pub(super) fn stated_shape(&self, index: usize) -> Result<Vec<usize>> {
        let info = self.info(index);
        let shape: Option<Vec<usize>> = info
            .shape
            .iter()
            .map(|&d| usize::try_from(d).ok().filter(|&d| d > 0))
            .collect();
        let wrong = |e: Error| e.at(format_args!("tensor {index} `{}`", info.name));
        let shape = shape
            .ok_or_else(|| wrong(Error::input(format!("shape {:?}", info.shape)).expected("extents above zero")))?;
        allowed(&shape).map_err(wrong)?;
        Ok(shape)
    }

    /// The element type of tensor `index`.
    pub(super) fn dtype(&self, index: usize) -> Result<DType> {
        if let Some(constant) = self.scope.folded.get(&index) {
            return Ok(constant.dtype);
        }
        if self.scope.narrowed.contains(&index) {
            return Ok(DType::I32);
        }
        let info = self.info(index);
        info.dtype().ok_or_else(|| {
            Error::unsupported(format!("tensor `{}` has type {}", info.name, info.type_name()))
                .expected("FLOAT32, INT8, UINT8, INT16, INT32, INT64 or BOOL")
                .help("convert the model again with int8 or float32 activations and weights")
        })
    }

    /// A network input.
    pub(super) fn input(&mut self, index: usize) -> Result<TensorId> {
        let id = self.add(index, TensorKind::Input)?;
        self.scope.map[index] = Some(id);
        Ok(id)
    }

    /// Refuses to write what has been written, or what the file holds.
    pub(super) fn has_no_value(&self, index: usize) -> Result<()> {
        let info = self.info(index);
        if self.scope.map[index].is_none() && info.data.is_none() && !self.scope.folded.contains_key(&index) {
            return Ok(());
        }
        Err(Error::input(format!(
            "it writes `{}`, which has a value already",
            info.name
        )))
    }

    /// The tensor that an operator writes.
    pub(super) fn output(&mut self, index: usize) -> Result<TensorId> {
        self.has_no_value(index)?;
        let id = self.add(index, TensorKind::Activation)?;
        self.scope.map[index] = Some(id);
        Ok(id)
    }

    /// A tensor that an operator reads: a constant, a variable, or what an earlier operator has written.
    pub(super) fn operand(&mut self, index: usize) -> Result<TensorId> {
        if let Some(id) = self.scope.map[index] {
            return Ok(id);
        }
        self.has_elements(index)?;
        let kind = match self.constant(index)? {
            Some(constant) => TensorKind::Const(Data::Bytes(constant.bytes.into())),
            None if self.info(index).variable && self.scope.number != self.model.main => {
                let name = &self.info(index).name;
                return Err(Error::unsupported(format!("the variable tensor `{name}` of a subgraph"))
                    .expected("variable tensors of the main subgraph alone")
                    .help("TensorFlow Lite does not keep it from run to run; use VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE"));
            }
            None if self.info(index).variable => {
                // As the interpreter resets it: bytes of the zero point for int8, zero otherwise.
                let info = self.info(index);
                let fill = match (info.dtype(), info.zero_point.first()) {
                    (Some(DType::I8), Some(&zero_point)) => zero_point as u8,
                    _ => 0,
                };
                let bytes = self.shape(index)?.iter().product::<usize>() * self.dtype(index)?.bytes();
                TensorKind::State(Data::Bytes(vec![fill; bytes].into()))
            }
            None => {
                let name = &self.info(index).name;
                return Err(Error::input(format!("it reads `{name}` before anything writes it")));
            }
        };
        let value = matches!(kind, TensorKind::Const(_))
            && matches!(self.dtype(index)?, DType::F32 | DType::I8 | DType::U8 | DType::I16);
        let id = self.add(index, kind)?;
        self.scope.map[index] = Some(id);
        if value {
            self.parameter(index, id);
        }
        Ok(id)
    }

    /// Notes that the constant `id` is made of the parameter `index` of the file. Shapes, axes and indices are none; of one that the import has made, what it
    /// repeats is.
    pub(super) fn parameter(&mut self, index: usize, id: TensorId) {
        if let Some(parameter) = self.parameter_of(index) {
            let name = self.out.tensor(id).name.clone();
            self.out.stated.params.insert(name, parameter);
        }
    }

    /// The parameter of the file that the constant `index` is, or repeats.
    pub(super) fn parameter_of(&self, index: usize) -> Option<Parameter> {
        match self.scope.made.get(&index) {
            Some(&of) => of,
            None => {
                let extents = self.info(index).shape.iter();
                let elements = extents.map(|&d| u64::from(d.unsigned_abs())).product();
                Some((self.scope.graph.first + index, elements))
            }
        }
    }

    /// A bias, of the type of the sums: one number for each of `channels`, whatever its axes.
    /// That of a channel whose weights `w` have a scale of 0 is 0: TensorFlow Lite Micro multiplies its sum by 0.
    pub(super) fn bias(
        &mut self,
        bias: Option<usize>,
        [x, w]: [usize; 2],
        channels: usize,
    ) -> Result<Option<TensorId>> {
        let Some(bias) = bias else { return Ok(None) };
        let sums = match self.dtype(x)? {
            DType::F32 => DType::F32,
            DType::I16 => DType::I64,
            _ => DType::I32,
        };
        self.expect_type(bias, sums)?;
        let idle = self.idle_channels(w)?;
        let id = match self.constant(bias)? {
            Some(constant)
                if constant.shape.iter().product::<usize>() == channels
                    && (constant.shape != [channels] || !idle.is_empty()) =>
            {
                let name = self.info(bias).name.clone();
                let mut bytes = constant.bytes.into_owned();
                for channel in idle {
                    let first = channel * sums.bytes();
                    bytes
                        .iter_mut()
                        .skip(first)
                        .take(sums.bytes())
                        .for_each(|byte| *byte = 0);
                }
                self.add_const(Tensor {
                    kind: TensorKind::Const(Data::Bytes(bytes.into())),
                    ..Tensor::activation(name, &[channels], sums)
                })
            }
            _ => self.operand(bias)?,
        };
        if self.out.tensor(id).is_const() {
            self.parameter(bias, id);
        }
        Ok(Some(id))
    }

    /// A network output. One that no operator computes is copied, so that it has a place of its own.
    pub(super) fn result(&mut self, index: usize) -> Result<TensorId> {
        let id = self.operand(index)?;
        let tensor = self.out.tensor(id);
        if matches!(tensor.kind, TensorKind::Activation | TensorKind::Input) {
            return Ok(id);
        }
        let copy = Tensor {
            kind: TensorKind::Activation,
            ..tensor.clone()
        };
        let copy = self.add_const(copy);
        self.out.add_node(Node {
            name: format!("output#{index}"),
            kind: "OUTPUT".to_string(),
            op: Op::Identity,
            inputs: vec![Some(id)],
            outputs: vec![copy],
            role: Role::Forward,
            origin: Origin::default(),
        });
        Ok(copy)
    }

    /// Operand `index` where it is given.
    pub(super) fn optional_operand(&mut self, index: Option<usize>) -> Result<Option<TensorId>> {
        index.map(|index| self.operand(index)).transpose()
    }

    /// The value of tensor `index` where it is known now.
    pub(super) fn constant(&self, index: usize) -> Result<Option<Constant<'a>>> {
        if let Some(constant) = self.scope.folded.get(&index) {
            return Ok(Some(constant.clone()));
        }
        let info = self.info(index);
        if info.data.is_none() {
            return Ok(None);
        }
        let (shape, dtype) = (self.shape(index)?, self.dtype(index)?);
        Ok(self
            .stored(index, dtype.bytes())?
            .map(|bytes| Constant { dtype, shape, bytes }))
    }

    /// The elements of an operand that must be a constant integer tensor: axes, extents, paddings.
    pub(super) fn integers(&self, index: usize, what: &str) -> Result<Vec<i64>> {
        let constant = self.constant(index)?.ok_or_else(|| {
            Error::unsupported(format!(
                "the {what} `{}` are computed at run time",
                self.info(index).name
            ))
            .help("make them constants in the model before converting it")
        })?;
        constant.integers().ok_or_else(|| {
            Error::input(format!("the {what} are {}", constant.dtype.name())).expected("an integer type")
        })
    }

    /// A tensor of no name in the file, between two nodes of one operator.
    pub(super) fn temporary(&mut self, name: &str, like: usize, shape: &[usize]) -> Result<TensorId> {
        let tensor = Tensor {
            quant: self.quant(like)?,
            ..Tensor::activation(self.unique(name, usize::MAX), shape, self.dtype(like)?)
        };
        Ok(self.out.add_tensor(tensor))
    }

    /// A constant that stands for another one in a different layout.
    pub(super) fn add_const(&mut self, tensor: Tensor) -> TensorId {
        let name = self.unique(&tensor.name, usize::MAX);
        self.out.add_tensor(Tensor { name, ..tensor })
    }

    /// The channels of a constant that have a scale of 0 and no values but zeros: what converters make of a filter of zeros.
    fn idle_channels(&self, index: usize) -> Result<Vec<usize>> {
        let info = self.info(index);
        let count = info.scale.len();
        if !matches!(info.kind, INT16 | INT8) || !info.scale.contains(&0.0) {
            return Ok(Vec::new());
        }
        let (Some(constant), false) = (self.constant(index)?, info.zero_point.is_empty()) else {
            return Ok(Vec::new());
        };
        let axis = if count == 1 {
            Some(0)
        } else {
            usize::try_from(info.axis).ok()
        };
        let shape = &constant.shape;
        let axis = axis.filter(|&axis| count == 1 || shape.get(axis) == Some(&count));
        let (Some(axis), Some(values)) = (axis, constant.integers()) else {
            return Ok(Vec::new());
        };
        let inner: usize = shape.iter().skip(axis + 1).product();
        let zero = |channel: usize| info.zero_point.get(channel).unwrap_or(&info.zero_point[0]);
        let of = |at: usize| if count == 1 { 0 } else { at / inner % count };
        let mut idle: Vec<bool> = info.scale.iter().map(|&scale| scale == 0.0).collect();
        for (at, value) in values.iter().enumerate() {
            idle[of(at)] &= value == zero(of(at));
        }
        Ok((0..count).filter(|&channel| idle[channel]).collect())
    }

    /// The quantisation of tensor `index`, as TensorFlow Lite Micro reads it.
    pub(super) fn quant(&mut self, index: usize) -> Result<Option<Quant>> {
        let info = self.info(index);
        let at = |e: Error| e.at(format_args!("tensor {index} `{}`", info.name));
        let is_f32 = self
            .scope
            .folded
            .get(&index)
            .is_some_and(|value| value.dtype == DType::F32);
        if !is_f32 && info.blocks.is_some() {
            return Err(at(super::blocks::under_integers()));
        }
        if is_f32 || info.scale.is_empty() || !matches!(info.kind, 2 | 3 | 4 | 7 | 9) {
            return Ok(None);
        }
        // Biases and indices. A bias is in the units of the operands' scales, whatever the file says of its own; where an operator rescales
        // INT32 values, it reads one scale.
        if matches!(info.kind, 2 | 4) {
            if let Some(scale) = info.scale.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
                return Err(at(
                    Error::input(format!("scale {scale}")).expected("a finite scale that is not below zero")
                ));
            }
            let one = match (info.scale.as_slice(), info.zero_point.as_slice()) {
                (&[scale], &[zero_point]) if scale.is_finite() && scale > 0.0 => {
                    i32::try_from(zero_point).ok().map(|zero| (scale, zero))
                }
                _ => None,
            };
            return Ok(one.map(|(scale, zero)| Quant::per_tensor(scale, zero)));
        }
        if info.zero_point.is_empty() {
            let text = format!(
                "tensor `{}` has a scale but no zero point: read as not quantised",
                info.name
            );
            self.warn(text);
            return Ok(None);
        }
        let idle = self.idle_channels(index)?;
        let sensible = |at: usize, scale: f32| scale.is_finite() && scale > 0.0 || idle.contains(&at);
        let mut scales = info.scale.iter().enumerate();
        if let Some((_, scale)) = scales.find(|&(at, &scale)| !sensible(at, scale)) {
            return Err(at(
                Error::input(format!("scale {scale}")).expected("a finite scale above zero")
            ));
        }
        // Only weights are quantised by channel; of several scales of other tensors the first counts.
        let is_constant = info.data.is_some() || self.scope.folded.contains_key(&index);
        let channels = if is_constant { info.scale.len() } else { 1 };
        let counts = (info.scale.len(), info.zero_point.len());
        let (low, high) = match info.kind {
            3 => (0, 255),
            7 => (-32768, 32767),
            _ => (-128, 127),
        };
        if let Some(z) = info.zero_point.iter().find(|&&z| z < low || z > high) {
            return Err(at(
                Error::input(format!("zero point {z}")).expected(format!("{low} to {high}"))
            ));
        }
        let zero_point: Vec<i32> = if counts.0 == counts.1 {
            info.zero_point.iter().take(channels).map(|&z| z as i32).collect()
        } else {
            vec![info.zero_point[0] as i32; channels]
        };
        let mut odd = Vec::new();
        if counts.1 != 1 && counts.0 != counts.1 {
            odd.push(format!(
                "{} zero points for {} scales: the first counts",
                counts.1, counts.0
            ));
        }
        if channels < counts.0 {
            odd.push(format!(
                "{} scales of a tensor that is computed: the first counts",
                counts.0
            ));
        }
        let name = info.name.clone();
        for text in odd {
            self.warn(format!("tensor `{name}`: {text}, as in TensorFlow Lite Micro"));
        }
        let info = self.info(index);
        let at = |e: Error| e.at(format_args!("tensor {index} `{}`", info.name));
        let extent = usize::try_from(info.axis)
            .ok()
            .and_then(|axis| info.shape.get(axis).map(|&d| (axis, d)));
        let axis = match (channels, extent) {
            (1, None) if info.axis != 0 => {
                let text = format!(
                    "tensor `{}`: quantised dimension {} of shape {:?} is out of range; it has one scale, so the dimension is ignored",
                    info.name, info.axis, info.shape
                );
                self.warn(text);
                None
            }
            (1, _) => None,
            (_, Some((axis, extent))) if i64::from(extent) == channels as i64 => Some(axis),
            _ => {
                return Err(at(Error::input(format!(
                    "{channels} scales along dimension {} of shape {:?}",
                    info.axis, info.shape
                ))
                .expected("one scale, or one for each index of an existing dimension")
                .help(
                    "convert the model again; its per-channel quantisation contradicts its shape",
                )));
            }
        };
        let mut scale: Vec<f32> = self.info(index).scale.iter().take(channels).copied().collect();
        // Zeros mean the same at every scale: the largest of the others stands for it.
        let largest = scale.iter().fold(0.0_f32, |largest, &scale| largest.max(scale));
        for channel in idle {
            scale[channel] = if largest > 0.0 { largest } else { 1.0 };
        }
        Ok(Some(Quant {
            scale,
            zero_point,
            axis,
        }))
    }

    fn add(&mut self, index: usize, kind: TensorKind) -> Result<TensorId> {
        let tensor = Tensor {
            kind,
            ..self.described(index)?
        };
        Ok(self.out.add_tensor(tensor))
    }

    /// Tensor `index` as the file states it.
    pub(super) fn described(&mut self, index: usize) -> Result<Tensor> {
        Ok(Tensor {
            name: self.unique(&self.info(index).name.clone(), index),
            shape: self.shape(index)?,
            dtype: self.dtype(index)?,
            quant: self.quant(index)?,
            kind: TensorKind::Activation,
            traced_perm: None,
        })
    }

    /// `name`, made unique.
    fn unique(&mut self, name: &str, index: usize) -> String {
        let name = match name {
            "" => format!("{}tensor#{index}", self.scope.place),
            _ => format!("{}{name}", self.scope.place),
        };
        let mut candidate = name.clone();
        let mut number = index;
        while !self.names.insert(candidate.clone()) {
            candidate = match number {
                usize::MAX => format!("{name}'"),
                _ => format!("{name}#{number}"),
            };
            if number == usize::MAX {
                number = self.names.len();
            } else {
                number += 1;
            }
        }
        candidate
    }
}

/// Refuses a shape of too many elements.
pub(super) fn allowed(shape: &[usize]) -> Result<()> {
    let elements = shape
        .iter()
        .try_fold(8_u32, |n, &d| n.checked_mul(u32::try_from(d).ok()?));
    match elements {
        Some(_) => Ok(()),
        None => Err(Error::unsupported(format!("shape {shape:?}")).expected("fewer than 2^29 elements")),
    }
}
