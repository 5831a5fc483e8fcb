//! Discrete Fourier transforms: the runtime's own of real samples, products with a matrix of sines and cosines else. Transforms of frames are convolutions
//! with that matrix, each tap times its place of the window.

use std::f64::consts::TAU;

use arenite::ops::fft::{FftPlan, MAX_FFT};

use super::array::{Array, paid};
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use super::windows::Windows;
use crate::error::{Error, Result};
use crate::graph::{Op, Signal};

/// Most elements of a transform, as the runtime's own has them: what a product's matrix may hold is less, by the budget of a file.
const MOST: usize = MAX_FFT as usize;

/// The sum over n of x[n] exp(-+ 2 pi i k n / length).
#[derive(Clone, Copy)]
struct Transform {
    length: usize,
    inverse: bool,
    /// The bins up to half the length alone: the others of real samples are their conjugates.
    onesided: bool,
}

impl Transform {
    fn bins(&self) -> usize {
        if self.onesided {
            self.length / 2 + 1
        } else {
            self.length
        }
    }

    /// Factors by which element `n` of `parts` (real, or real and imaginary) adds to bin `k`: of each of its parts to the real and to the imaginary part.
    fn factors(&self, k: usize, n: usize) -> [[f64; 2]; 2] {
        // Whole turns of the circle are left out, as integers: large angles lose digits.
        let (sin, cos) = (TAU * (k * n % self.length) as f64 / self.length as f64).sin_cos();
        if self.inverse {
            let by = 1.0 / self.length as f64;
            [[cos * by, -sin * by], [sin * by, cos * by]]
        } else {
            [[cos, sin], [-sin, cos]]
        }
    }
}

impl<'a> Importer<'_, 'a> {
    pub(super) fn dft(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let rank = shape.len();
        let parts = parts_of(&shape)?;
        let axis = if view.opset < 20 {
            view.int("axis", 1)?
        } else {
            let stated = self.known(view, 2, "axis")?;
            stated.map_or(Ok(-2), |axis| single(&axis, "an axis"))?
        };
        let axis = axis_of(axis, rank)?;
        if axis + 1 == rank {
            return Err(Error::input(format!(
                "a transform along the parts of numbers, axis {axis} of {rank}"
            )));
        }
        let stated = self.known(view, 1, "length")?;
        let length = stated.map_or(Ok(shape[axis]), |length| length_of(&length))?;
        let transform = Transform {
            length,
            inverse: view.flag("inverse", false)?,
            onesided: view.flag("onesided", false)?,
        };
        if transform.onesided && transform.inverse {
            return Err(Error::unsupported("an inverse transform of one half of the bins")
                .help("give the operator all bins, and `onesided` 0"));
        }
        if transform.onesided && parts == 2 {
            return Err(Error::input("half of the bins of complex numbers").expected("real samples, or `onesided` 0"));
        }
        // Samples beyond the length have no part; those that lack are zeros, which add nothing.
        let samples = shape[axis].min(length);
        let x = self.part(&x, axis, 0, samples)?;
        let to_end: Vec<usize> = (0..rank - 1).filter(|&a| a != axis).chain([axis, rank - 1]).collect();
        let x = self.transpose(&x, &to_end)?;
        let outer: Vec<usize> = to_end[..rank - 2].iter().map(|&a| shape[a]).collect();
        let extents = |last: &[usize]| [&outer, last].concat();
        let x = self.reshape(&x, &extents(&[samples * parts]))?;
        let has_kernel = transform.onesided && FftPlan::new(length as u32).is_some();
        let y = match &x {
            Value::Tensor(_) if has_kernel => {
                let x = self.real(&x)?;
                let op = Op::Signal(Signal::Fft { length, inverse: false });
                Value::Tensor(self.emit_shape(op, &[x], &extents(&[length + 2]))?)
            }
            _ => {
                let matrix = self.matrix(transform, samples, parts)?;
                let rows = self.reshape(&x, &[outer.iter().product(), samples * parts])?;
                self.linear(&rows, &matrix, None)?
            }
        };
        let y = self.reshape(&y, &extents(&[transform.bins(), 2]))?;
        let mut back: Vec<usize> = (0..rank - 2).collect();
        back.insert(axis, rank - 2);
        back.push(rank - 1);
        let y = self.transpose(&y, &back)?;
        self.bind(view, 0, y)
    }

    /// A transform as weights of a fully connected layer: `[bins x 2, samples x parts]`.
    fn matrix(&self, transform: Transform, samples: usize, parts: usize) -> Result<Value> {
        let shape = [transform.bins() * 2, samples * parts];
        paid(&self.budget, Elem::FLOAT, &shape)?;
        let mut values = Vec::with_capacity(shape[0] * shape[1]);
        for bin in 0..transform.bins() {
            for part in 0..2 {
                let of = |n| transform.factors(bin, n)[part];
                values.extend((0..samples).flat_map(|n| of(n).into_iter().take(parts).map(|factor| factor as f32)));
            }
        }
        Ok(Array::floats(&shape, values).into())
    }

    pub(super) fn stft(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let parts = parts_of(&shape)?;
        let &[batch, samples, _] = shape.as_slice() else {
            return Err(Error::input(format!("a signal of shape {shape:?}")).expected("[batch, samples, 1 or 2]"));
        };
        let step = self
            .known(view, 1, "frame_step")?
            .ok_or_else(|| Error::input("no frame_step"))?;
        let step = length_of(&step)?;
        let window = self.known(view, 2, "window")?;
        let stated = self
            .known(view, 3, "frame_length")?
            .map(|length| length_of(&length))
            .transpose()?;
        let length = match (&window, stated) {
            (Some(window), stated) if window.shape.len() != 1 || stated.is_some_and(|n| n != window.len()) => {
                return Err(
                    Error::input(format!("a window of shape {:?}", window.shape)).expected("frame_length numbers")
                );
            }
            (Some(window), _) => window.len(),
            (None, stated) => stated.ok_or_else(|| Error::input("neither a window nor a frame_length"))?,
        };
        let transform = Transform {
            length,
            inverse: false,
            onesided: view.flag("onesided", true)?,
        };
        if transform.onesided && parts == 2 {
            return Err(Error::input("half of the bins of complex numbers").expected("real samples, or `onesided` 0"));
        }
        if !(1..=samples.min(MOST)).contains(&length) {
            return Err(Error::input(format!("frames of {length} in {samples} samples")));
        }
        let frames = (samples - length) / step + 1;
        // Weights in which a block of samples is the channels, where the frames are whole blocks: a stride that no window of the runtime has is one then.
        let block = if length.is_multiple_of(step) { step } else { 1 };
        let (channels, kernel, stride) = (block * parts, length / block, step / block);
        let bins = transform.bins() * 2;
        paid(&self.budget, Elem::FLOAT, &[bins, channels, kernel])?;
        let window = window.map(|window| window.real().into_owned());
        let mut weights = vec![0.0; bins * channels * kernel];
        for row in 0..bins {
            for n in 0..length {
                let by = window.as_ref().map_or(1.0, |window| f64::from(window[n]));
                let factors = transform.factors(row / 2, n)[row % 2];
                for (part, factor) in factors.iter().enumerate().take(parts) {
                    let channel = n % block * parts + part;
                    weights[(row * channels + channel) * kernel + n / block] = (factor * by) as f32;
                }
            }
        }
        let weights = Array::floats(&[bins, channels, kernel], weights).into();
        let blocks = samples / block;
        let x = self.part(&x, 1, 0, blocks * block)?;
        let x = self.reshape(&x, &[batch, blocks, channels])?;
        let x = self.transpose(&x, &[0, 2, 1])?;
        let windows = Windows {
            kernel: vec![kernel],
            stride: vec![stride],
            dilation: vec![1],
            pads: vec![(0, 0)],
            extra: vec![0],
            out: vec![frames],
        };
        let y = self.convolution(&x, &weights, None, 1, &windows)?;
        let y = self.transpose(&y, &[0, 2, 1])?;
        let y = self.reshape(&y, &[batch, frames, transform.bins(), 2])?;
        self.bind(view, 0, y)
    }
}

/// Whether numbers are real, 1, or complex, 2: the last axis.
fn parts_of(shape: &[usize]) -> Result<usize> {
    match shape {
        &[_, .., parts @ (1 | 2)] => Ok(parts),
        _ => {
            Err(Error::input(format!("a signal of shape {shape:?}")).expected("a last axis of 1, real, or 2, complex"))
        }
    }
}

fn single(array: &Array, what: &str) -> Result<i64> {
    match array.whole(what)?.as_slice() {
        &[value] => Ok(value),
        values => Err(Error::input(format!("{values:?} for {what}"))),
    }
}

fn length_of(array: &Array) -> Result<usize> {
    let value = single(array, "a length")?;
    let fits = usize::try_from(value).ok().filter(|n| (1..=MOST).contains(n));
    fits.ok_or_else(|| Error::input(format!("a length of {value}")).expected(format!("1 to {MOST}")))
}
