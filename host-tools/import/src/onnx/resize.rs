//! Resize and Upsample: the runtime's operator where it samples at the same places, else a product with the weights of each sample.

use super::array::{Array, paid};
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::{axis_of, each_once, extents};
use crate::error::{Error, Result};
use crate::fold_budget::FoldBudget;
use crate::graph::Op;

/// Most elements along an axis of a result.
const MOST_SAMPLES: usize = 1 << 16;

/// How an axis is sampled. Places are computed in f32 as ONNX Runtime does, so that ties fall to the same side.
struct Sampling<'a> {
    mode: &'a str,
    transform: &'a str,
    nearest: &'a str,
    cubic: f32,
    exclude: bool,
}

/// Largest distance from a tie that counts as one, in elements.
const TIE: f32 = 1e-6;

/// Rounding of operator sets below 11: up where the operand has more elements than the result, else down.
const BY_SCALE: &str = "by scale";

impl Sampling<'_> {
    /// The place in the operand of sample `at`.
    fn place(&self, at: usize, from: usize, to: usize, scale: f32) -> Result<f32> {
        if scale == 1.0 && to == from {
            return Ok(at as f32);
        }
        let at = at as f32;
        Ok(match self.transform {
            "half_pixel" => (at + 0.5) / scale - 0.5,
            "pytorch_half_pixel" if to > 1 => (at + 0.5) / scale - 0.5,
            // The length is that of the result, also where the scale gives another one before it is rounded down.
            "align_corners" if to > 1 => at * (from as f32 - 1.0) / (to as f32 - 1.0),
            "pytorch_half_pixel" | "align_corners" => 0.0,
            "asymmetric" => at / scale,
            "half_pixel_symmetric" => {
                let adjustment = to as f32 / (scale * from as f32);
                let offset = from as f32 / 2.0 * (1.0 - adjustment);
                (f64::from(offset) + (f64::from(at) + 0.5) / f64::from(scale) - 0.5) as f32
            }
            "tf_half_pixel_for_nn" => (at + 0.5) / scale,
            other => {
                return Err(
                    Error::unsupported(format!("the coordinate transformation `{other}`")).expected(
                        "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric or tf_half_pixel_for_nn",
                    ),
                );
            }
        })
    }

    /// Index of the nearest element.
    fn rounded(&self, place: f32, scale: f32) -> Result<f32> {
        // As in ONNX Runtime 1.32: a tie that the division has moved is still one.
        let tie = (place - place.floor() - 0.5).abs() < TIE;
        Ok(match self.nearest {
            "floor" => place.floor(),
            "ceil" => place.ceil(),
            "round_prefer_ceil" if tie => place.ceil(),
            "round_prefer_floor" if tie => place.floor(),
            "round_prefer_ceil" | "round_prefer_floor" => place.round(),
            BY_SCALE if scale < 1.0 => place.ceil(),
            BY_SCALE => place.trunc(),
            other => {
                return Err(Error::unsupported(format!("the rounding `{other}`"))
                    .expected("round_prefer_floor, round_prefer_ceil, floor or ceil"));
            }
        })
    }

    /// The weights of the operand's elements in sample `at`.
    fn weights(&self, at: usize, from: usize, to: usize, scale: f32) -> Result<Vec<(usize, f32)>> {
        let place = self.place(at, from, to, scale)?;
        let clamped = |index: f32| index.clamp(0.0, from as f32 - 1.0) as usize;
        Ok(match self.mode {
            "nearest" => vec![(clamped(self.rounded(place, scale)?), 1.0)],
            "linear" | "bilinear" => {
                let low = place.floor();
                let high = place - low;
                vec![(clamped(low), 1.0 - high), (clamped(low + 1.0), high)]
            }
            "cubic" => {
                let (low, a) = (place.floor(), self.cubic);
                let t = place - low;
                let near = |t: f32| ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
                let far = |t: f32| ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a;
                let taps = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
                let inside = |i: f32| (0.0..from as f32).contains(&i);
                let places = (0..4).map(|i| low - 1.0 + i as f32);
                let mut weights: Vec<(f32, f32)> = places.zip(taps).collect();
                if self.exclude {
                    weights.retain(|(i, _)| inside(*i));
                    let sum: f32 = weights.iter().map(|(_, w)| w).sum();
                    weights.iter_mut().for_each(|(_, w)| *w /= sum);
                }
                weights.into_iter().map(|(i, w)| (clamped(i), w)).collect()
            }
            other => return Err(Error::unsupported(format!("the mode `{other}`")).expected("nearest, linear or cubic")),
        })
    }

    /// The matrix `[to, from]` of an axis.
    fn matrix(&self, budget: &FoldBudget, from: usize, to: usize, scale: f32) -> Result<Array> {
        let count = paid(budget, Elem::FLOAT, &[to, from])?;
        let mut matrix = vec![0.0; count];
        for at in 0..to {
            for (index, weight) in self.weights(at, from, to, scale)? {
                matrix[at * from + index] += weight;
            }
        }
        Ok(Array::floats(&[to, from], matrix))
    }
}

impl<'a> Importer<'_, 'a> {
    pub(super) fn resize(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let is_upsample = view.node.op == "Upsample";
        // Operands and attributes of operator set 10 are those of Upsample.
        let is_old = is_upsample || view.opset < 11;
        if view.flag("antialias", false)? {
            return Err(Error::unsupported("antialiasing").help("resize without it, or in the application"));
        }
        if view.text("keep_aspect_ratio_policy", "stretch")? != "stretch" {
            return Err(Error::unsupported("a kept aspect ratio").help("state the sizes that it gives"));
        }
        let axes = match view.node.ints("axes")? {
            None => (0..shape.len()).collect(),
            Some(axes) => axes
                .iter()
                .map(|&a| axis_of(a, shape.len()))
                .collect::<Result<Vec<_>>>()?,
        };
        each_once(&axes)?;
        let scales = match view.floats("scales")? {
            Some(scales) => Some(scales),
            None => {
                let known = self.known(view, if is_old { 1 } else { 2 }, "scales")?;
                known.map(|a| a.real().into_owned()).filter(|s| !s.is_empty())
            }
        };
        let sizes = if is_old { None } else { self.known(view, 3, "sizes")? };
        let sizes = sizes.map(|s| s.whole("sizes")).transpose()?.filter(|s| !s.is_empty());
        if let (Some(scales), Some(sizes)) = (&scales, &sizes) {
            return Err(Error::input(format!("scales {scales:?} and sizes {sizes:?}")).expected("one of the two"));
        }
        let mut to = shape.clone();
        let mut factors = vec![1.0f32; shape.len()];
        match (&scales, &sizes) {
            (_, Some(sizes)) if sizes.len() == axes.len() => {
                for (&axis, size) in axes.iter().zip(extents(sizes, "sizes")?) {
                    to[axis] = size;
                    factors[axis] = size as f32 / shape[axis] as f32;
                }
            }
            (Some(scales), None) if scales.len() == axes.len() => {
                for (&axis, &scale) in axes.iter().zip(scales) {
                    if !(scale.is_finite() && scale > 0.0 && scale < 65536.0) {
                        return Err(Error::input(format!("scale {scale}")));
                    }
                    if is_upsample && scale < 1.0 {
                        return Err(Error::input(format!("scale {scale} of Upsample"))
                            .expected("1 or more")
                            .help("Resize makes an operand smaller"));
                    }
                    to[axis] = (shape[axis] as f32 * scale).floor() as usize;
                    factors[axis] = scale;
                }
            }
            _ => {
                let (scales, sizes) = (scales.map_or(0, |s| s.len()), sizes.map_or(0, |s| s.len()));
                return Err(
                    Error::input(format!("{scales} scales and {sizes} sizes for {} axes", axes.len()))
                        .expected("scales or sizes, one for each axis"),
                );
            }
        }
        if shape.contains(&0) || to.contains(&0) || to.iter().any(|&extent| extent > MOST_SAMPLES) {
            return Err(Error::unsupported(format!("a resizing of {shape:?} to {to:?}"))
                .expected(format!("1 to {MOST_SAMPLES} elements along an axis")));
        }
        let sampling = Sampling {
            mode: view.text("mode", "nearest")?,
            transform: if is_old {
                "asymmetric"
            } else {
                view.text("coordinate_transformation_mode", "half_pixel")?
            },
            nearest: if is_old {
                BY_SCALE
            } else {
                view.text("nearest_mode", "round_prefer_floor")?
            },
            cubic: view.float("cubic_coeff_a", -0.75)?,
            exclude: view.flag("exclude_outside", false)?,
        };
        let y = self.resized(&x, &to, &factors, &sampling)?;
        // Of integers the reals between them are cut off, as ONNX Runtime does.
        let y = match self.elem(&x) {
            elem if elem.is_float() => y,
            elem => self.cast(&y, elem)?,
        };
        self.bind(view, 0, y)
    }

    fn resized(&mut self, x: &Value, to: &[usize], factors: &[f32], sampling: &Sampling<'_>) -> Result<Value> {
        let shape = self.shape(x);
        if let Some(op) = own_operator(&shape, to, factors, sampling)? {
            let x = Value::Tensor(self.real(x)?);
            let last = self.transpose(&x, &[0, 2, 3, 1])?;
            let last = self.tensor(&last)?;
            let y = self.emit_shape(op, &[last], &[to[0], to[2], to[3], to[1]])?;
            return self.transpose(&Value::Tensor(y), &[0, 3, 1, 2]);
        }
        let mut y = Value::Tensor(self.real(x)?);
        for axis in 0..shape.len() {
            if to[axis] == shape[axis] && factors[axis] == 1.0 {
                continue;
            }
            let matrix = sampling.matrix(&self.budget, shape[axis], to[axis], factors[axis])?;
            y = self.along(&y, axis, matrix)?;
        }
        Ok(y)
    }
}

/// The runtime's operator, where it takes the same elements with the same weights: images, of which rows and columns change.
fn own_operator(shape: &[usize], to: &[usize], factors: &[f32], sampling: &Sampling<'_>) -> Result<Option<Op>> {
    if shape.len() != 4 || to[..2] != shape[..2] || factors[..2] != [1.0, 1.0] {
        return Ok(None);
    }
    for (align_corners, half_pixel_centers) in [(false, false), (false, true), (true, false)] {
        let mut same = true;
        for axis in [2, 3] {
            let (from, count) = (shape[axis], to[axis]);
            let scale = if align_corners && count > 1 {
                (from - 1) as f32 / (count - 1) as f32
            } else {
                from as f32 / count as f32
            };
            for at in 0..count {
                let wanted = sampling.weights(at, from, count, factors[axis])?;
                let centre = if half_pixel_centers { 0.5 } else { 0.0 };
                same &= match sampling.mode {
                    "nearest" => {
                        let place = (at as f32 + centre) * scale;
                        let index = if align_corners { place.round() } else { place.floor() };
                        wanted[0].0 == index.clamp(0.0, from as f32 - 1.0) as usize
                    }
                    "linear" | "bilinear" => {
                        let place = (at as f32 + centre) * scale - centre;
                        let low = place.floor().max(0.0);
                        let high = place.ceil().min(from as f32 - 1.0);
                        let weight = (place - low).max(0.0);
                        let found = low + (high - low) * weight;
                        let asked: f32 = wanted.iter().map(|(i, w)| *i as f32 * w).sum();
                        (found - asked).abs() < 1e-6 * from as f32
                    }
                    _ => false,
                };
            }
        }
        if same {
            return Ok(Some(match sampling.mode {
                "nearest" => Op::ResizeNearest {
                    align_corners,
                    half_pixel_centers,
                },
                _ => Op::ResizeBilinear {
                    align_corners,
                    half_pixel_centers,
                },
            }));
        }
    }
    Ok(None)
}
