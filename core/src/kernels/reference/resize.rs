//! Resizing of images: [`crate::ops::resize`].

use super::{at, constant, len, read, written};
use crate::arena::Mem;
use crate::cells::Element;
use crate::ops::resize::{Interpolation, Resize};
use crate::tensor::DType;

pub(crate) fn any(op: &Resize, mem: &Mem<'_>) -> Option<()> {
    match op.dtype {
        DType::F32 => of_type::<f32>(op, mem, |[ll, lh, hl, hh], fractions| {
            let [y, x] = fractions.map(|fraction| f32::from_bits(fraction as u32));
            ll * (1.0 - y) * (1.0 - x) + hl * y * (1.0 - x) + lh * (1.0 - y) * x + hh * y * x
        }),
        _ => of_type::<i8>(op, mem, |corners, fractions| {
            let [y, x] = fractions.map(|fraction| i64::from(fraction.clamp(0, 1024)));
            let weights = [(1024 - y) * (1024 - x), (1024 - y) * x, y * (1024 - x), y * x];
            let sum: i64 = corners.into_iter().zip(weights).map(|(x, w)| i64::from(x) * w).sum();
            // The weights add up to 2^20; ties away from zero.
            let magnitude = (sum.abs() + (1 << 19)) >> 20;
            (if sum < 0 { -magnitude } else { magnitude }) as i8
        }),
    }
}

fn of_type<T: Element>(op: &Resize, mem: &Mem<'_>, mean: impl Fn([T; 4], [i32; 2]) -> T) -> Option<()> {
    let [batch, channels] = [op.batch, op.channels].map(|extent| extent as usize);
    let ([h, w], [oh, ow]) = (op.from.map(|n| n as usize), op.to.map(|n| n as usize));
    let (from, to) = ([batch, h, w, channels], [batch, oh, ow, channels]);
    let (input, output) = (
        read::<T>(mem, op.input, len(&from))?,
        written::<T>(mem, op.output, len(&to))?,
    );
    let table = constant::<i32>(mem, op.table, (oh + ow) * 3)?;
    // Rows come first; an index beyond the image means its edge.
    let line = |line: usize, extent: usize| {
        let of = |field: usize| table.get(at([oh + ow, 3], [line, field])).copied();
        let index = |index: i32| i64::from(index).clamp(0, extent as i64 - 1) as usize;
        Some((index(of(0)?), index(of(1)?), of(2)?))
    };
    for n in 0..batch {
        for oy in 0..oh {
            for ox in 0..ow {
                let (y0, y1, fraction_y) = line(oy, h)?;
                let (x0, x1, fraction_x) = line(oh + ox, w)?;
                for c in 0..channels {
                    let of = |y: usize, x: usize| input.get(at(from, [n, y, x, c]));
                    let pixel = match op.interpolation {
                        Interpolation::Nearest => of(y0, x0)?,
                        Interpolation::Bilinear => {
                            let corners = [of(y0, x0)?, of(y0, x1)?, of(y1, x0)?, of(y1, x1)?];
                            mean(corners, [fraction_y, fraction_x])
                        }
                    };
                    output.set(at(to, [n, oy, ox, c]), pixel)?;
                }
            }
        }
    }
    Some(())
}
