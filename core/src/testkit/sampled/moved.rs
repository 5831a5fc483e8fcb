//! Operators that move elements, or say where they are.

use heapless::Vec;

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::arg_max::ArgMax;
use crate::ops::gather::Gather;
use crate::ops::movement::{CopyLoop, CopyStrided};
use crate::ops::resize::{Interpolation, Resize};
use crate::tensor::DType;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

impl Generated for CopyStrided {
    /// A slice, a transpose, a repetition or a part of a concatenation: strides of the source in any order, of the destination as of a tensor in a larger one.
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let element = draw.pick(&[1, 1, 2, 4, 8])?;
        let axes = draw.pick(&[1, 2, 2, 3, 3, 4, 6])?;
        let mut left = 240 / u32::from(element);
        // From the innermost axis on; a destination of more elements than are written keeps the others.
        let (mut loops, mut to, mut gaps) = (Vec::<CopyLoop, 6>::new(), 1, false);
        for _ in 0..axes {
            let count = draw.share(if axes == 1 { 240 } else { 12 }, &mut left);
            let apart = draw.one_in(8);
            gaps |= apart;
            let _ = loops.push(CopyLoop { count, to, from: 0 });
            to *= count + u32::from(apart);
        }
        loops.reverse();
        // The source's axes, innermost first, are those of the destination in this order.
        let mut order: Vec<usize, 6> = (0..axes).collect();
        if draw.coin() {
            order.reverse();
        } else if draw.coin() {
            order.rotate_left(1);
        }
        let (mut stride, mut from) = (1_i32, 0_i32);
        for axis in order.into_iter().rev() {
            let axis = loops.get_mut(axis)?;
            let (count, step) = (axis.count as i32, draw.pick(&[1, 1, 1, 1, 2, -1, -1, 0])?);
            axis.from = stride * step;
            if step < 0 {
                from += (count - 1) * stride;
            }
            stride *= if step == 0 { 1 } else { (count - 1) * step.abs() + 1 };
        }
        let before = if draw.one_in(4) { draw.random.below(4) as i32 } else { 0 };
        let behind = if draw.one_in(4) { draw.random.below(4) as i32 } else { 0 };
        let op = CopyStrided {
            output: Slot::default(),
            input: Slot::default(),
            element,
            input_len: (stride + before + behind) as u32,
            from: (from + before) as u32,
            loops,
        };
        let data = Data::integers(draw.seed());
        Some((op, Data { gaps, ..data }))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::strided_copy::any
    }
}

impl Generated for Gather {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 60;
        let shape = [
            draw.share(5, &mut left),
            draw.share(9, &mut left),
            draw.share(9, &mut left),
        ];
        let op = Gather {
            output: Slot::default(),
            input: Slot::default(),
            indices: Slot::default(),
            element: draw.pick(&[1, 2, 4, 8])?,
            shape,
            count: draw.extent(9),
        };
        // Some indices lie outside the axis.
        let [_, extent, _] = shape.map(|extent| extent as i32);
        let indices = draw.pick(&[
            Numbers::Words([0, extent - 1]),
            Numbers::Words([-2, extent + 1]),
            Numbers::Bytes,
        ])?;
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Bytes, indices])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::gather::any
    }
}

impl Generated for ArgMax {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::F32, DType::I8])?;
        let mut left = 200;
        let shape = [
            draw.share(6, &mut left),
            draw.share(50, &mut left),
            draw.share(9, &mut left),
        ];
        let op = ArgMax {
            output: Slot::default(),
            input: Slot::default(),
            dtype,
            shape,
        };
        let numbers = if dtype == DType::F32 {
            draw.pick(&[Numbers::Floats(1.0), Numbers::Steps])?
        } else {
            draw.pick(&[Numbers::Bytes, Numbers::Truths])?
        };
        let data = Data::integers(draw.seed()).of(&[numbers]);
        Some((
            op,
            Data {
                exact: dtype != DType::F32,
                ..data
            },
        ))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::arg_max::any
    }
}

impl Generated for Resize {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::F32, DType::I8])?;
        let float = dtype == DType::F32;
        let (mut left, mut room) = (120, 120);
        let (batch, channels) = (draw.share(2, &mut left), draw.share(5, &mut left));
        room /= batch * channels;
        let from = [draw.share(7, &mut left), draw.share(9, &mut left)];
        let to = [draw.share(9, &mut room), draw.share(11, &mut room)];
        // Two indices and the weight of the second, for each row and column of the output.
        let mut number = 0;
        let [rows, _] = to;
        let table = draw.constants((to[0] + to[1]) * 3, |random| {
            let (line, field) = (number / 3, number % 3);
            number += 1;
            let extent = if line < rows { from[0] } else { from[1] };
            let index = random.below(extent) as i32;
            let beyond = random.one_of([-1, extent as i32, i32::MAX, i32::MIN]);
            let word = match field {
                0 | 1 if random.below(16) == 0 => beyond,
                0 | 1 => index,
                _ if float => random.float().abs().to_bits() as i32,
                _ => random.one_of([0, 1024, 512, random.last() as i32 & 1023]),
            };
            word.to_le_bytes()
        })?;
        let op = Resize {
            output: Slot::default(),
            input: Slot::default(),
            dtype,
            interpolation: draw.pick(&[Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bilinear])?,
            batch,
            from,
            to,
            channels,
            table,
        };
        let data = if float {
            Data::floats(draw.seed(), Alike::NEAR_FLOATS)
        } else {
            Data::integers(draw.seed())
        };
        Some((op, data))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::resize::any
    }
}
