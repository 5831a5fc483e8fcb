//! The signal operators of TensorFlow Lite Micro: custom operators with the options that its Python package writes.

use super::flexbuffer::Options;
use super::importer::{Importer, Translator, View};
use crate::error::{Error, Result};
use crate::graph::signal::Subtraction;
use crate::graph::{DType, Data, Op, Signal, Tensor, TensorId, TensorKind};

use DType::{Bool, F32, I16, I32, I64};

/// Their names, the types of their first operands, and what translates them. All are of version 1.
#[rustfmt::skip]
pub(super) const ROWS: &[(&str, &[DType], Translator)] = &[
    ("CUSTOM `SignalWindow`", &[I16], |i, v| i.signal_window(v)),
    ("CUSTOM `SignalFftAutoScale`", &[I16], |i, v| i.signal_auto_scale(v)),
    ("CUSTOM `SignalRfft`", &[I16, I32, F32], |i, v| i.signal_fft(v, false)),
    ("CUSTOM `SignalIrfft`", &[I16, I32, F32], |i, v| i.signal_fft(v, true)),
    ("CUSTOM `SignalEnergy`", &[I16], |i, v| i.signal_energy(v)),
    ("CUSTOM `SignalFilterBank`", &[I32], |i, v| i.signal_filter_bank(v)),
    ("CUSTOM `SignalFilterBankSquareRoot`", &[I64], |i, v| i.signal_square_root(v)),
    ("CUSTOM `SignalFilterBankSpectralSubtraction`", &[I32], |i, v| i.signal_subtraction(v)),
    ("CUSTOM `SignalPCAN`", &[I32], |i, v| i.signal_pcan(v)),
    ("CUSTOM `SignalFilterBankLog`", &[I32], |i, v| i.signal_log(v)),
    ("CUSTOM `SignalDelay`", &[I16], |i, v| i.signal_delay(v)),
    ("CUSTOM `SignalFramer`", &[I16], |i, v| i.signal_framer(v)),
    ("CUSTOM `SignalStacker`", &[I16], |i, v| i.signal_stacker(v)),
    ("CUSTOM `SignalOverlapAdd`", &[I16, F32], |i, v| i.signal_overlap_add(v)),
];

impl Importer<'_, '_> {
    /// Operators that take UINT32 and UINT64 numbers for what they are, or move them. Others would take them for signed ones.
    pub(super) fn check_unsigned(&self, view: View<'_, '_>) -> Result<()> {
        const MOVES: [&str; 14] = [
            "RESHAPE",
            "SQUEEZE",
            "EXPAND_DIMS",
            "TRANSPOSE",
            "REVERSE_V2",
            "GATHER",
            "CONCATENATION",
            "PACK",
            "UNPACK",
            "SPLIT",
            "SPLIT_V",
            "SLICE",
            "STRIDED_SLICE",
            "SHAPE",
        ];
        let tensors = view.inputs.iter().flatten().chain(view.outputs);
        let Some(unsigned) = tensors.clone().find(|&&t| self.info(t).is_unsigned()) else {
            return Ok(());
        };
        // Between integers, a cast of an unsigned number keeps or drops bits.
        let integer =
            |&t: &usize| self.info(t).is_unsigned() || matches!(self.info(t).dtype(), Some(I32 | I16 | DType::I8));
        let known = MOVES.contains(&view.kind)
            || view.kind.starts_with("CUSTOM `Signal")
            || (view.kind == "CAST" && tensors.clone().all(integer));
        if known {
            return Ok(());
        }
        let info = self.info(*unsigned);
        Err(Error::unsupported(format!("`{}` is {}", info.name, info.type_name()))
            .expected("signal operators, casts between integers or movement of such a tensor")
            .help("insert CAST to INT32"))
    }

    fn signal_window(&mut self, view: View<'_, '_>) -> Result<()> {
        let shift = bounded(view, "shift", 0, 31)? as u8;
        let (x, w, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        self.expect_type(w, I16)?;
        self.expect_type(y, I16)?;
        let (x_shape, w_shape) = (self.shape(x)?, self.shape(w)?);
        if w_shape.len() != 1 || x_shape.last() != w_shape.last() {
            return Err(Error::input(format!(
                "a window of shape {w_shape:?} for samples of shape {x_shape:?}"
            ))
            .expected("the extent of the last axis"));
        }
        self.expect_shape(y, &x_shape)?;
        let (x, w) = (self.operand(x)?, self.operand(w)?);
        self.signal(view, Signal::Window { shift }, vec![x, w])
    }

    fn signal_auto_scale(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(0)?;
        let shape = self.shape(x)?;
        self.expect(view.output(0)?, I16, &shape)?;
        self.expect(view.output(1)?, I32, &[])?;
        let x = self.operand(x)?;
        self.signal(view, Signal::AutoScale, vec![x])
    }

    fn signal_fft(&mut self, view: View<'_, '_>, inverse: bool) -> Result<()> {
        let length = bounded(view, "fft_length", 4, i64::from(arenite::ops::fft::MAX_FFT))? as usize;
        if arenite::ops::fft::FftPlan::new(length as u32).is_none() {
            return Err(Error::unsupported(format!("a Fourier transform of length {length}"))
                .expected("an even length, half of it a product of 2, 3 and 5"));
        }
        let (x, y) = (view.input(0)?, view.output(0)?);
        let mut shape = self.shape(x)?;
        let dtype = self.dtype(x)?;
        let wrong = |n: usize, most: &str| {
            Err(Error::input(format!("rows of {n} elements for length {length}"))
                .expected(format!("{most} along the last axis")))
        };
        match shape.last_mut() {
            Some(n) if inverse && *n == length + 2 => *n = length,
            Some(n) if !inverse && *n <= length => *n = length + 2,
            Some(&mut n) if inverse => return wrong(n, &format!("{}", length + 2)),
            n => return wrong(n.map_or(0, |n| *n), &format!("at most {length}")),
        }
        self.expect(y, dtype, &shape)?;
        let x = self.operand(x)?;
        self.signal(view, Signal::Fft { length, inverse }, vec![x])
    }

    fn signal_energy(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let &[elements] = self.shape(x)?.as_slice() else {
            return Err(Error::input(format!("a spectrum of shape {:?}", self.shape(x)?)).expected("one axis"));
        };
        let bins = elements / 2;
        let end = bounded(view, "end_index", 0, bins as i64)? as usize;
        let start = bounded(view, "start_index", 0, end as i64)? as usize;
        self.expect(y, I32, &[bins])?;
        if elements % 2 != 0 {
            return Err(Error::input(format!("a spectrum of {elements} elements")).expected("pairs"));
        }
        let x = self.operand(x)?;
        self.signal(view, Signal::Energy { start, end }, vec![x])
    }

    fn signal_filter_bank(&mut self, view: View<'_, '_>) -> Result<()> {
        let channels = bounded(view, "num_channels", 1, 1 << 15)? as usize;
        self.expect(view.output(0)?, I64, &[channels])?;
        let mut operands = vec![self.operand(view.input(0)?)?];
        for position in 1..6 {
            let table = view.input(position)?;
            self.expect_type(table, I16)?;
            let extent = self.shape(table)?.iter().product::<usize>();
            if position > 2 && extent != channels + 1 {
                return Err(Error::input(format!("operand {position} has {extent} elements"))
                    .expected(format!("{}, one more than channels", channels + 1)));
            }
            operands.push(self.operand(table)?);
        }
        self.signal(view, Signal::FilterBank, operands)
    }

    fn signal_square_root(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, bits, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        let shape = self.shape(x)?;
        self.expect(bits, I32, &[])?;
        self.expect(y, I32, &shape)?;
        let operands = vec![self.operand(x)?, self.operand(bits)?];
        self.signal(view, Signal::SquareRoot, operands)
    }

    fn signal_subtraction(&mut self, view: View<'_, '_>) -> Result<()> {
        let factor = |name: &str| bounded(view, name, 0, i64::from(i32::MAX)).map(|factor| factor as u32);
        let constants = Subtraction {
            smoothing: [factor("smoothing")?, factor("alternate_smoothing")?],
            rest: [factor("one_minus_smoothing")?, factor("alternate_one_minus_smoothing")?],
            floor: factor("min_signal_remaining")?,
            smoothing_bits: bounded(view, "smoothing_bits", 0, 31)? as u8,
            bits: bounded(view, "spectral_subtraction_bits", 0, 63)? as u8,
            clamping: bounded(view, "clamping", 0, 1)? == 1,
        };
        let x = view.input(0)?;
        let shape = self.shape(x)?;
        let channels = shape.iter().product::<usize>();
        bounded(view, "num_channels", channels as i64, channels as i64)?;
        for output in 0..2 {
            self.expect(view.output(output)?, I32, &shape)?;
        }
        let operands = vec![self.operand(x)?, self.signal_state(view, channels, I32)?];
        self.signal(view, Signal::SpectralSubtraction(constants), operands)
    }

    fn signal_pcan(&mut self, view: View<'_, '_>) -> Result<()> {
        let shift = bounded(view, "snr_shift", 0, 63)? as u8;
        let (x, noise, table, y) = (view.input(0)?, view.input(1)?, view.input(2)?, view.output(0)?);
        let shape = self.shape(x)?;
        self.expect(noise, I32, &shape)?;
        self.expect_type(table, I16)?;
        self.expect(y, I32, &shape)?;
        let least = arenite::ops::signal::GAIN_TABLE as usize;
        let elements = self.shape(table)?.iter().product::<usize>();
        if elements < least {
            return Err(Error::input(format!("a table of {elements} gains"))
                .expected(format!("at least {least}, for noise of 32 bits")));
        }
        let operands = vec![self.operand(x)?, self.operand(noise)?, self.operand(table)?];
        self.signal(view, Signal::Pcan { shift }, operands)
    }

    fn signal_log(&mut self, view: View<'_, '_>) -> Result<()> {
        let scale = bounded(view, "output_scale", 0, i64::from(i32::MAX))? as u32;
        let correction = bounded(view, "input_correction_bits", 0, 31)? as u8;
        let x = view.input(0)?;
        let shape = self.shape(x)?;
        self.expect(view.output(0)?, I16, &shape)?;
        let x = self.operand(x)?;
        self.signal(view, Signal::Log { scale, correction }, vec![x])
    }

    fn signal_delay(&mut self, view: View<'_, '_>) -> Result<()> {
        let length = bounded(view, "delay_length", 1, MOST)? as usize;
        let x = view.input(0)?;
        let shape = self.shape(x)?;
        self.expect(view.output(0)?, I16, &shape)?;
        let rows: usize = shape.iter().rev().skip(1).product();
        let state = self.signal_state(view, rows * length, I16)?;
        let operands = vec![self.operand(x)?, state];
        self.signal(view, Signal::Delay { length }, operands)
    }

    fn signal_framer(&mut self, view: View<'_, '_>) -> Result<()> {
        let size = bounded(view, "frame_size", 1, MOST)? as usize;
        let prefill = bounded(view, "prefill", 0, 1)? == 1;
        // The elements filled in before the first step are the rest of a frame.
        let step = bounded(view, "frame_step", 1, if prefill { size as i64 } else { MOST })? as usize;
        let x = view.input(0)?;
        let mut shape = self.shape(x)?;
        let samples = shape.pop().unwrap_or(0);
        if samples == 0 || samples % step != 0 {
            return Err(Error::input(format!("{samples} samples in steps of {step}")).expected("a multiple"));
        }
        let rows: usize = shape.iter().product();
        shape.extend([samples / step, size]);
        self.expect(view.output(0)?, I16, &shape)?;
        self.expect(view.output(1)?, Bool, &[])?;
        let kept = if prefill {
            size - step
        } else {
            (size.div_ceil(step) - 1) * step
        };
        let state = self.signal_state(view, 1 + rows * kept, I16)?;
        let operands = vec![self.operand(x)?, state];
        self.signal(view, Signal::Framer { size, step, prefill }, operands)
    }

    fn signal_stacker(&mut self, view: View<'_, '_>) -> Result<()> {
        let left = bounded(view, "stacker_left_context", 0, 0x3fff)? as usize;
        let right = bounded(view, "stacker_right_context", 0, 0x3fff)? as usize;
        let frames = left + right + 1;
        let step = bounded(view, "stacker_step", 1, frames as i64)? as usize;
        let x = view.input(0)?;
        let channels: usize = self.shape(x)?.iter().product();
        bounded(view, "num_channels", channels as i64, channels as i64)?;
        self.expect(view.output(0)?, I16, &[frames * channels])?;
        self.expect(view.output(1)?, Bool, &[])?;
        let state = self.signal_state(view, 1 + (left + right) * channels, I16)?;
        let operands = vec![self.operand(x)?, state];
        self.signal(view, Signal::Stacker { left, right, step }, operands)
    }

    fn signal_overlap_add(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(0)?;
        let mut shape = self.shape(x)?;
        let dtype = self.dtype(x)?;
        let (Some(size), Some(frames)) = (shape.pop(), shape.pop()) else {
            return Err(Error::input("frames of one axis").expected("at least two: frames, samples"));
        };
        let step = bounded(view, "frame_step", 1, size as i64)? as usize;
        let rows: usize = shape.iter().product();
        shape.push(frames * step);
        self.expect(view.output(0)?, dtype, &shape)?;
        let state = self.signal_state(view, rows * size, dtype)?;
        let operands = vec![self.operand(x)?, state];
        self.signal(view, Signal::OverlapAdd { step }, operands)
    }

    fn signal(&mut self, view: View<'_, '_>, signal: Signal, operands: Vec<TensorId>) -> Result<()> {
        let outputs = view.outputs.iter().map(|&y| self.output(y)).collect::<Result<_>>()?;
        self.node(
            view,
            "",
            Op::Signal(signal),
            operands.into_iter().map(Some).collect(),
            outputs,
        );
        Ok(())
    }

    /// Returns the state of an operator: zeros after a reset.
    fn signal_state(&mut self, view: View<'_, '_>, elements: usize, dtype: DType) -> Result<TensorId> {
        self.state_of_its_own()?;
        if elements > MOST as usize {
            return Err(
                Error::unsupported(format!("a state of {elements} elements")).expected(format!("at most {MOST}"))
            );
        }
        let name = format!(
            "{}#{}.state",
            view.kind.trim_start_matches("CUSTOM ").trim_matches('`'),
            view.index
        );
        let bytes = vec![0u8; elements * dtype.bytes()];
        Ok(self.add_const(Tensor {
            kind: TensorKind::State(Data::Bytes(bytes.into())),
            ..Tensor::activation(name, &[elements], dtype)
        }))
    }

    fn expect(&self, index: usize, dtype: DType, shape: &[usize]) -> Result<()> {
        self.expect_type(index, dtype)?;
        self.expect_shape(index, shape)
    }
}

/// The most samples of a frame, a delay or a state: more than a minute of any audio.
const MOST: i64 = 1 << 22;

/// The option `name` of a custom operator, between `low` and `high`.
fn bounded(view: View<'_, '_>, name: &str, low: i64, high: i64) -> Result<i64> {
    let value = Options::read(view.custom)?.integer(name)?;
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    let expected = if low == high {
        format!("{low}")
    } else {
        format!("{low} to {high}")
    };
    Err(Error::input(format!("option `{name}` is {value}")).expected(expected))
}
