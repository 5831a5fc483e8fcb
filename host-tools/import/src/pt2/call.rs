//! The call under translation: its arguments by name, with their defaults, and the nodes of ONNX that it becomes.

use std::collections::HashMap;

use super::aliases::Aliases;
use super::elements::{Extent, Meta, element_type};
use super::program::{Arg, Node, Program, Whole};
use crate::error::{Error, Result};
use crate::onnx::{Attribute, Draft, ElementType};

/// The largest extent that is computed with.
const LARGEST: i64 = 1 << 40;

/// Result of a call: values of the draft, by name.
pub(super) type Made = Result<String>;

/// A call of the program.
pub(super) struct Call<'c> {
    pub(super) program: &'c Program,
    pub(super) node: &'c Node,
    pub(super) draft: &'c mut Draft,
    /// The draft's names of the program's values.
    pub(super) names: &'c HashMap<&'c str, String>,
    pub(super) aliases: &'c Aliases<'c>,
    /// Prefix of the names of its own values.
    pub(super) prefix: String,
    pub(super) parts: usize,
}

/// Whether values of two types are computed with alike: real numbers, integers, or truth values.
fn alike(a: ElementType, b: ElementType) -> bool {
    let kind = |elem: ElementType| (elem.is_float(), elem == ElementType::BOOL);
    kind(a) == kind(b)
}

impl Call<'_> {
    fn wrong(&self, name: &str, expected: &str) -> Error {
        Error::input(format!("its argument `{name}` is missing, or of another kind")).expected(expected)
    }

    /// The refusal of an argument's value.
    pub(super) fn refused(&self, name: &str, expected: &str) -> Error {
        let value = self.node.argument(name);
        let shown = value.map_or_else(|| "its default".to_string(), Arg::shown);
        Error::unsupported(format!("its argument `{name}` is {shown}")).expected(expected)
    }

    /// The refusal of extents that are not stated.
    fn open(&self, name: &str) -> Error {
        Error::unsupported(format!(
            "dynamic shape: `{name}` depends on extents that the program leaves open"
        ))
        .help("export it again without dynamic_shapes for this extent")
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.node.argument(name).is_some()
    }

    /// The draft's name of a value of the program.
    fn current(&self, name: &str) -> String {
        self.names
            .get(self.aliases.first(name))
            .map_or_else(|| name.to_string(), Clone::clone)
    }

    /// A tensor argument.
    pub(super) fn x(&self, name: &str) -> Made {
        self.maybe(name)?.ok_or_else(|| self.wrong(name, "a tensor"))
    }

    /// A tensor argument that may be missing.
    pub(super) fn maybe(&self, name: &str) -> Result<Option<String>> {
        match self.node.argument(name) {
            None => Ok(None),
            Some(Arg::Tensor(own)) => Ok(Some(self.current(own))),
            Some(_) => Err(self.wrong(name, "a tensor")),
        }
    }

    /// A list of tensors.
    pub(super) fn list(&self, name: &str) -> Result<Vec<String>> {
        let all = self.optionals(name)?.into_iter().collect::<Option<Vec<String>>>();
        all.filter(|all| !all.is_empty())
            .ok_or_else(|| self.wrong(name, "a list of tensors"))
    }

    /// A list of tensors, of which some may be missing.
    pub(super) fn optionals(&self, name: &str) -> Result<Vec<Option<String>>> {
        match self.node.argument(name) {
            Some(Arg::Tensors(names)) => Ok(names
                .iter()
                .map(|own| own.as_ref().map(|own| self.current(own)))
                .collect()),
            _ => Err(self.wrong(name, "a list of tensors")),
        }
    }

    fn meta(&self, name: &str) -> Result<&Meta> {
        let found = match self.node.argument(name) {
            Some(Arg::Tensor(own)) => self.program.tensors.get(own),
            Some(Arg::Tensors(names)) => {
                let first = names.iter().flatten().next();
                first.and_then(|own| self.program.tensors.get(own))
            }
            _ => None,
        };
        found.ok_or_else(|| self.wrong(name, "a tensor of which type and shape are stated"))
    }

    pub(super) fn rank(&self, name: &str) -> Result<usize> {
        Ok(self.meta(name)?.sizes.len())
    }

    pub(super) fn elem(&self, name: &str) -> Result<ElementType> {
        Ok(self.meta(name)?.elem)
    }

    /// The shape of an argument, all of which must be stated.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<i64>> {
        let shape = self.meta(name)?.shape().ok_or_else(|| self.open(name))?;
        shape.into_iter().map(|extent| self.bounded(name, extent)).collect()
    }

    /// An extent whose products with small numbers are far from overflow.
    fn bounded(&self, name: &str, extent: i64) -> Result<i64> {
        let fits = (0..=LARGEST).contains(&extent);
        fits.then_some(extent)
            .ok_or_else(|| self.wrong(name, "a tensor of extents from 0 to 2^40"))
    }

    /// An extent of an argument, which must be stated.
    pub(super) fn extent(&self, name: &str, axis: usize) -> Result<i64> {
        match self.meta(name)?.sizes.get(axis) {
            Some(Extent::Known(extent)) => self.bounded(name, *extent),
            _ => Err(self.open(name)),
        }
    }

    /// The type and shape that the program states of result `position`.
    fn result(&self, position: usize) -> Option<&Meta> {
        let name = match self.node.outputs.first() {
            Some(Arg::Tensors(names)) => names.get(position)?.as_ref(),
            _ => match self.node.outputs.get(position) {
                Some(Arg::Tensor(name)) => Some(name),
                _ => None,
            },
        };
        self.program.tensors.get(name?)
    }

    /// The element type of the result.
    pub(super) fn result_elem(&self) -> ElementType {
        self.result(0).map_or(ElementType::FLOAT, |meta| meta.elem)
    }

    /// Whether anything reads result `position`.
    pub(super) fn is_read(&self, position: usize) -> bool {
        match self.node.outputs.get(position) {
            Some(Arg::Tensor(name)) => self.aliases.is_read(name),
            _ => false,
        }
    }

    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64> {
        match self.node.argument(name) {
            None => Ok(default),
            Some(Arg::Int(value)) => Ok(*value),
            Some(Arg::Symbol(_)) => Err(self.open(name)),
            Some(_) => Err(self.wrong(name, "an integer")),
        }
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.node.argument(name) {
            None => Ok(default),
            Some(Arg::Bool(value)) => Ok(*value),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// A number that is no NaN.
    pub(super) fn float(&self, name: &str, default: f64) -> Result<f64> {
        let value = self.any_float(name, default)?;
        if value.is_nan() {
            return Err(self.refused(name, "a number"));
        }
        Ok(value)
    }

    pub(super) fn any_float(&self, name: &str, default: f64) -> Result<f64> {
        match self.node.argument(name) {
            None => Ok(default),
            Some(Arg::Float(value)) => Ok(*value),
            Some(Arg::Int(value)) => Ok(*value as f64),
            Some(Arg::Bool(value)) => Ok(f64::from(u8::from(*value))),
            Some(_) => Err(self.wrong(name, "a number")),
        }
    }

    pub(super) fn text(&self, name: &str, default: &str) -> Result<String> {
        match self.node.argument(name) {
            None => Ok(default.to_string()),
            Some(Arg::Text(value)) => Ok(value.clone()),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    /// Integers that are all stated; `None` where the argument is missing.
    pub(super) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        let known = |value: &Whole| match value {
            Whole::Known(value) => Ok(*value),
            Whole::Symbol(_) => Err(self.open(name)),
        };
        match self.node.argument(name) {
            None => Ok(None),
            Some(Arg::Int(value)) => Ok(Some(vec![*value])),
            Some(Arg::Ints(values)) => values.iter().map(known).collect::<Result<_>>().map(Some),
            Some(_) => Err(self.wrong(name, "a list of integers")),
        }
    }

    /// An integer for each of `count` axes: the same where one is given.
    pub(super) fn each(&self, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
        let values = self.ints(name)?.filter(|values| !values.is_empty());
        let values = values.unwrap_or_else(|| vec![default]);
        match values.len() {
            1 => Ok(vec![values[0]; count]),
            found if found == count => Ok(values),
            _ => Err(self.wrong(name, "an integer for each spatial axis")),
        }
    }

    pub(super) fn floats(&self, name: &str) -> Result<Option<Vec<f64>>> {
        match self.node.argument(name) {
            None => Ok(None),
            Some(Arg::Floats(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.wrong(name, "a list of numbers")),
        }
    }

    /// An axis, counted from the front.
    pub(super) fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        self.counted(name, self.int(name, default)?, rank)
    }

    /// Axes, counted from the front, in order.
    pub(super) fn axes(&self, name: &str, rank: usize) -> Result<Option<Vec<usize>>> {
        let Some(axes) = self.ints(name)? else {
            return Ok(None);
        };
        axes.iter()
            .map(|&axis| self.counted(name, axis, rank))
            .collect::<Result<_>>()
            .map(Some)
    }

    fn counted(&self, name: &str, axis: i64, rank: usize) -> Result<usize> {
        let from_front = if axis < 0 {
            axis.saturating_add(rank.max(1) as i64)
        } else {
            axis
        };
        let axis = usize::try_from(from_front).ok().filter(|&axis| axis < rank.max(1));
        axis.ok_or_else(|| self.wrong(name, "an axis of its operand"))
    }

    /// The element type of an argument that names one.
    pub(super) fn dtype(&self, name: &str) -> Result<Option<ElementType>> {
        match self.node.argument(name) {
            None => Ok(None),
            Some(Arg::Type(number)) => Ok(Some(element_type(*number))),
            Some(_) => Err(self.wrong(name, "a type of elements")),
        }
    }

    /// A tensor, number or computed integer, as the type that it is computed in.
    pub(super) fn operand(&mut self, name: &str, elem: ElementType) -> Made {
        match self.node.argument(name) {
            Some(Arg::Tensor(own)) => {
                let (from, value) = (self.program.tensors.get(own).map(|meta| meta.elem), self.current(own));
                Ok(match from {
                    Some(from) if !alike(from, elem) => self.cast(&value, elem),
                    _ => value,
                })
            }
            Some(Arg::Symbol(own)) => {
                let value = self.current(own);
                Ok(if alike(ElementType::INT64, elem) {
                    value
                } else {
                    self.cast(&value, elem)
                })
            }
            Some(Arg::Int(_) | Arg::Float(_) | Arg::Bool(_)) => {
                let value = self.any_float(name, 0.0)?;
                Ok(match self.node.argument(name) {
                    Some(Arg::Int(exact)) if !elem.is_float() => self.whole(*exact),
                    _ => self.number(value, elem),
                })
            }
            _ => Err(self.wrong(name, "a tensor or a number")),
        }
    }

    /// The type that two operands are compared in.
    pub(super) fn common(&self, names: [&str; 2]) -> ElementType {
        let is_float = |name: &&str| match self.node.argument(name) {
            Some(Arg::Float(_)) => true,
            Some(Arg::Tensor(_)) => self.elem(name).is_ok_and(ElementType::is_float),
            _ => false,
        };
        if names.iter().any(is_float) {
            ElementType::FLOAT
        } else {
            self.elem(names[0]).unwrap_or(ElementType::INT64)
        }
    }

    /// A name for a value of this call.
    fn fresh(&mut self) -> String {
        self.parts += 1;
        format!("{}.{}", self.prefix, self.parts)
    }

    /// Adds a node of one result.
    pub(super) fn add(
        &mut self,
        op: &'static str,
        inputs: &[&str],
        attributes: &[(&'static str, Attribute<'_>)],
    ) -> String {
        self.adds(op, inputs, attributes, 1).swap_remove(0)
    }

    /// Adds a node of several results.
    pub(super) fn adds(
        &mut self,
        op: &'static str,
        inputs: &[&str],
        attributes: &[(&'static str, Attribute<'_>)],
        count: usize,
    ) -> Vec<String> {
        let outputs: Vec<String> = (0..count).map(|_| self.fresh()).collect();
        let inputs = inputs.iter().map(ToString::to_string).collect();
        self.draft.add(op, inputs, outputs.clone(), attributes);
        outputs
    }

    /// Adds a function of `core/src/ops/pointwise.rs`.
    pub(super) fn pointwise(&mut self, name: &'static str, x: &str) -> String {
        let output = self.fresh();
        self.draft.add_pointwise(name, x.to_string(), output.clone());
        output
    }

    /// Adds a fully connected layer.
    pub(super) fn linear(&mut self, x: &str, w: &str, bias: Option<&str>) -> String {
        let output = self.fresh();
        let inputs = [x, w].into_iter().chain(bias).map(ToString::to_string);
        self.draft.add_linear(inputs.collect(), output.clone());
        output
    }

    pub(super) fn cast(&mut self, x: &str, elem: ElementType) -> String {
        self.add("Cast", &[x], &[("to", Attribute::Int(elem.number()))])
    }

    fn constant(&mut self, elem: ElementType, shape: &[i64], data: &[u8]) -> String {
        self.add("Constant", &[], &[("value", Attribute::Tensor(elem, shape, data))])
    }

    /// A number of this type: in f32, 64 bits or a byte.
    pub(super) fn number(&mut self, value: f64, elem: ElementType) -> String {
        if elem.is_float() {
            self.constant(ElementType::FLOAT, &[], &(value as f32).to_le_bytes())
        } else if elem == ElementType::BOOL {
            self.constant(elem, &[], &[u8::from(value != 0.0)])
        } else {
            self.whole(value as i64)
        }
    }

    fn whole(&mut self, value: i64) -> String {
        self.constant(ElementType::INT64, &[], &value.to_le_bytes())
    }

    /// A real number.
    pub(super) fn real(&mut self, value: f64) -> String {
        self.number(value, ElementType::FLOAT)
    }

    /// A list of real numbers.
    pub(super) fn real_list(&mut self, values: &[f32]) -> String {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(ElementType::FLOAT, &[values.len() as i64], &data)
    }

    /// A list of integers.
    pub(super) fn whole_list(&mut self, values: &[i64]) -> String {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(ElementType::INT64, &[values.len() as i64], &data)
    }

    /// Integers of an argument as a list, some of which the program may compute.
    pub(super) fn sizes(&mut self, name: &str) -> Made {
        let values = match self.node.argument(name) {
            Some(Arg::Ints(values)) => values.clone(),
            Some(Arg::Int(value)) => vec![Whole::Known(*value)],
            Some(Arg::Symbol(own)) => vec![Whole::Symbol(own.clone())],
            _ => return Err(self.wrong(name, "a list of integers")),
        };
        self.whole_values(&values)
    }

    /// Integers as a list.
    pub(super) fn whole_values(&mut self, values: &[Whole]) -> Made {
        let known = |value: &Whole| match value {
            Whole::Known(value) => Some(*value),
            Whole::Symbol(_) => None,
        };
        if let Some(values) = values.iter().map(known).collect::<Option<Vec<i64>>>() {
            return Ok(self.whole_list(&values));
        }
        let mut parts = Vec::new();
        for value in values {
            parts.push(match value {
                Whole::Known(value) => self.whole_list(&[*value]),
                Whole::Symbol(own) => self.current(own),
            });
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Ok(self.add("Concat", &parts, &[("axis", Attribute::Int(0))]))
    }

    pub(super) fn reshaped(&mut self, x: &str, shape: &[i64]) -> String {
        let shape = self.whole_list(shape);
        self.add("Reshape", &[x, &shape], &[])
    }

    /// With axes of one element.
    pub(super) fn unsqueezed(&mut self, x: &str, axes: &[i64]) -> String {
        let axes = self.whole_list(axes);
        self.add("Unsqueeze", &[x, &axes], &[])
    }

    /// Without axes of one element.
    pub(super) fn squeezed(&mut self, x: &str, axes: &[i64]) -> String {
        let axes = self.whole_list(axes);
        self.add("Squeeze", &[x, &axes], &[])
    }

    pub(super) fn transposed(&mut self, x: &str, perm: &[usize]) -> String {
        let perm: Vec<i64> = perm.iter().map(|&axis| axis as i64).collect();
        self.add("Transpose", &[x], &[("perm", Attribute::Ints(&perm))])
    }

    /// The elements from `begin` to `end` along an axis, every `step`-th.
    pub(super) fn sliced(&mut self, x: &str, axis: usize, [begin, end, step]: [i64; 3]) -> String {
        let [begin, end, axis, step] = [begin, end, axis as i64, step].map(|value| self.whole_list(&[value]));
        self.add("Slice", &[x, &begin, &end, &axis, &step], &[])
    }
}
