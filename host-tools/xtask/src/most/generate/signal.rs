//! Generated steps of the signal operators.

use arenite::ops::fft::{FftPlan, SignalFft};
use arenite::ops::frames::{SignalDelay, SignalFramer, SignalOverlapAdd, SignalStacker};
use arenite::ops::signal::{
    GAIN_TABLE, LOG_TABLE, SignalAutoScale, SignalEnergy, SignalFilterBank, SignalLog, SignalPcan, SignalSquareRoot,
    SignalSubtraction, SignalWindow, Subtraction,
};
use arenite::{DType, KernelId, Slot, Step};

use super::shapes::Random;

/// The step and its constants, which are to lie from `base` on; `None` of other kernels.
pub(super) fn signal(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let slot = Slot::default();
    let (output, input) = (slot, slot);
    let count = random.axis("count", 600);
    let (rows, frames) = (if random.chance(3) { 2 } else { 1 }, random.between(1, 4));
    let (rows, frames) = (random.extent("rows", rows), random.extent("frames", frames));
    let step = match kernel {
        KernelId::SignalWindow => Step::SignalWindow(SignalWindow {
            output,
            input,
            window: slot,
            count: count * rows,
            size: count,
            shift: 12,
        }),
        KernelId::SignalAutoScale => Step::SignalAutoScale(SignalAutoScale {
            output,
            input,
            bits: slot,
            count,
        }),
        KernelId::SignalEnergy => {
            let start = random.between(0, count / 2);
            let end = random.between(start, count);
            Step::SignalEnergy(SignalEnergy {
                output,
                input,
                bins: count,
                start,
                end,
            })
        }
        KernelId::SignalSquareRoot => Step::SignalSquareRoot(SignalSquareRoot {
            output,
            input,
            bits: slot,
            count,
        }),
        KernelId::SignalSubtraction => Step::SignalSubtraction(SignalSubtraction {
            output,
            input,
            noise: slot,
            state: slot,
            count,
            constants: Subtraction {
                smoothing: [410, 983],
                rest: [15974, 15401],
                floor: 820,
                smoothing_bits: 10,
                bits: 14,
                clamping: random.chance(2),
            },
        }),
        KernelId::SignalDelay => {
            let delay = random.axis("delay", 300);
            Step::SignalDelay(SignalDelay {
                output,
                input,
                state: slot,
                rows,
                frame: count,
                delay,
            })
        }
        KernelId::SignalFramer => Step::SignalFramer(SignalFramer {
            output,
            input,
            valid: slot,
            state: slot,
            rows,
            frames,
            size: count,
            step: step(random, count),
            prefill: random.chance(2),
        }),
        KernelId::SignalStacker => {
            let (left, right) = (random.between(0, 4), random.between(0, 4));
            let (left, right) = (random.extent("left", left), random.extent("right", right));
            Step::SignalStacker(SignalStacker {
                output,
                input,
                valid: slot,
                state: slot,
                channels: count.min(80),
                left,
                right,
                step: random.between(1, left + right + 1),
            })
        }
        KernelId::SignalOverlapAdd => Step::SignalOverlapAdd(SignalOverlapAdd {
            output,
            input,
            state: slot,
            dtype: random.one_of(&[DType::I16, DType::F32]),
            rows,
            frames,
            size: count,
            step: step(random, count),
        }),
        _ => return with_constants(kernel, random, base),
    };
    Some((step, Vec::new()))
}

fn with_constants(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let slot = Slot::default();
    let (output, input) = (slot, slot);
    let count = random.axis("elements", 120);
    let shorts = |random: &mut Random, count: u32| -> Vec<u8> {
        (0..count)
            .flat_map(|_| (i16::from(random.byte()) << 6).to_le_bytes())
            .collect()
    };
    Some(match kernel {
        KernelId::SignalPcan => {
            let table = shorts(random, GAIN_TABLE);
            (
                Step::SignalPcan(SignalPcan {
                    output,
                    input,
                    noise: slot,
                    count,
                    shift: 6,
                    table: base,
                }),
                table,
            )
        }
        KernelId::SignalLog => {
            let table = shorts(random, LOG_TABLE);
            (
                Step::SignalLog(SignalLog {
                    output,
                    input,
                    count,
                    scale: 1600,
                    correction: 3,
                    table: base,
                }),
                table,
            )
        }
        KernelId::SignalFilterBank => {
            let (bins, channels) = (random.between(16, 257), random.between(1, 40));
            let (bins, channels) = (random.extent("bins", bins), random.extent("channels", channels));
            let most = random.extent("taps", 24);
            let mut op = SignalFilterBank {
                output,
                input,
                bins,
                channels,
                taps: 0,
                bands: base,
                weights: base,
            };
            let mut constants = Vec::new();
            for _ in 0..op.bands() {
                let random = random.contents();
                let first = random.between(0, bins - 1);
                let taps = random.between(0, (bins - first).min(most));
                constants.extend([first as u16, taps as u16].iter().flat_map(|word| word.to_le_bytes()));
                op.taps += taps;
            }
            op.weights = base + constants.len() as u32;
            constants.extend(shorts(random, 2 * op.taps));
            (Step::SignalFilterBank(op), constants)
        }
        KernelId::SignalFftS16 | KernelId::SignalFftS32 | KernelId::SignalFftF32 => {
            let length = random.one_of(&[
                16, 32, 64, 128, 256, 512, 512, 1024, 20, 60, 96, 160, 240, 320, 480, 8, 400,
            ]);
            let length = random.extent("length", length);
            let plan = FftPlan::new(length)?;
            let inverse = random.chance(3);
            let rows = if random.state().is_multiple_of(3) { 2 } else { 1 };
            let rows = random.extent("rows", rows);
            let op = |dtype| SignalFft {
                output,
                input,
                dtype,
                rows,
                samples: if inverse { length } else { length - length / 8 },
                length,
                inverse,
                twiddles: base,
            };
            let (step, bytes) = match kernel {
                KernelId::SignalFftS16 => (Step::SignalFftS16(op(DType::I16)), 2),
                KernelId::SignalFftS32 => (Step::SignalFftS32(op(DType::I32)), 4),
                _ => (Step::SignalFftF32(op(DType::F32)), 4),
            };
            let float = kernel == KernelId::SignalFftF32;
            let factor = |random: &mut Random| match bytes {
                2 => (i16::from(random.byte()) << 7).to_le_bytes().to_vec(),
                _ if float => random.float().to_le_bytes().to_vec(),
                _ => (i32::from(random.byte()) << 23).to_le_bytes().to_vec(),
            };
            let constants = (0..2 * plan.factors()).flat_map(|_| factor(random)).collect();
            (step, constants)
        }
        _ => return None,
    })
}

/// A distance of frames of `size` samples, which is drawn from the frame's unscaled length.
fn step(random: &mut Random, size: u32) -> u32 {
    let drawn = random.unscaled("count", size);
    let step = random.between(1, drawn);
    random.extent("step", step).min(size)
}
