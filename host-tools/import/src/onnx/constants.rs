//! Operators whose results are known when importing.

use super::array::{Array, Elements, paid};
use super::elem::Elem;
use super::importer::{Importer, View};
use super::movement::extents;
use crate::error::{Error, Result};

impl<'a> Importer<'_, 'a> {
    pub(super) fn shape_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let shape = {
            let x = self.operand(view, 0)?;
            self.shape(&x)
        };
        let rank = shape.len() as i64;
        let at = |index: i64| if index < 0 { index.saturating_add(rank) } else { index }.clamp(0, rank);
        let (from, to) = (at(view.int("start", 0)?), at(view.int("end", rank)?));
        let part = shape.get(from as usize..to as usize).unwrap_or(&[]);
        let values: Vec<i64> = part.iter().map(|&n| n as i64).collect();
        self.bind(view, 0, Array::integers(Elem::INT64, &[values.len()], values).into())
    }

    pub(super) fn size(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let count: usize = self.shape(&x).iter().product();
        self.bind(view, 0, Array::integers(Elem::INT64, &[], vec![count as i64]).into())
    }

    pub(super) fn constant_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let node = view.node;
        let array = if let Some(tensor) = node.tensor("value")? {
            if tensor.external.is_some() {
                return Err(Error::unsupported("a constant with external data").help("make it an initializer"));
            }
            Array::read(&tensor, None, &self.budget)?
        } else if let Some(value) = node.float("value_float")? {
            Array::scalar(value)
        } else if let Some(values) = node.floats("value_floats")? {
            Array::floats(&[values.len()], values)
        } else if let Some(value) = node.int("value_int")? {
            Array::integers(Elem::INT64, &[], vec![value])
        } else if let Some(values) = node.ints("value_ints")? {
            Array::integers(Elem::INT64, &[values.len()], values)
        } else {
            return Err(
                Error::unsupported("a constant that is no tensor of numbers").help("build the network without it")
            );
        };
        self.bind(view, 0, array.into())
    }

    pub(super) fn constant_of_shape(&mut self, view: View<'_, 'a>) -> Result<()> {
        let shape = self
            .known(view, 0, "extents")?
            .ok_or_else(|| Error::input("no extents"))?;
        let shape = extents(&shape.whole("extents")?, "extents")?;
        let value = self.node_value(view)?;
        let count = paid(&self.budget, value.elem, &shape)?;
        let array = match &value.data {
            Elements::Floats(v) => Array::floats(&shape, vec![v.first().copied().unwrap_or(0.0); count]),
            Elements::Integers(v) => Array::integers(value.elem, &shape, vec![v.first().copied().unwrap_or(0); count]),
        };
        self.bind(view, 0, array.into())
    }

    pub(super) fn range(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut bounds = Vec::new();
        for position in 0..3 {
            let bound = self.known(view, position, "bounds")?;
            bounds.push(bound.ok_or_else(|| Error::input("a bound is missing"))?);
        }
        let array = match (&bounds[0].data, &bounds[1].data, &bounds[2].data) {
            (Elements::Integers(from), Elements::Integers(to), Elements::Integers(step)) => {
                let (Some(&from), Some(&to), Some(&step)) = (from.first(), to.first(), step.first()) else {
                    return Err(Error::input("an empty bound"));
                };
                let count = match step {
                    0 => return Err(Error::input("a range with step 0")),
                    _ => {
                        (i128::from(to) - i128::from(from) + i128::from(step) - i128::from(step.signum()))
                            / i128::from(step)
                    }
                };
                let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
                paid(&self.budget, bounds[0].elem, &[count])?;
                let values = (0..count as i64)
                    .map(|i| from.wrapping_add(i.wrapping_mul(step)))
                    .collect();
                Array::integers(bounds[0].elem, &[count], values)
            }
            _ => {
                let [from, to, step] = [0, 1, 2].map(|i| bounds[i].single().unwrap_or(f32::NAN));
                let count = ((to - from) / step).ceil().max(0.0);
                if !count.is_finite() {
                    return Err(Error::input(format!("a range from {from} to {to} by {step}")));
                }
                paid(&self.budget, Elem::FLOAT, &[count as usize])?;
                let values = (0..count as usize).map(|i| from + i as f32 * step).collect();
                Array::floats(&[count as usize], values)
            }
        };
        self.bind(view, 0, array.into())
    }

    fn node_value(&self, view: View<'_, '_>) -> Result<Array> {
        match view.node.tensor("value")? {
            Some(tensor) => Array::read(&tensor, None, &self.budget),
            None => Ok(Array::scalar(0.0)),
        }
    }
}
