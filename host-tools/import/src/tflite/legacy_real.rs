//! Operators that TensorFlow Lite computes in f32 for legacy uint8: resizes, and operands of a concatenation that have another scale.

use arenite::quant::{Multiplier, requantize};

use super::importer::{Importer, View};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, DType, Data, Op, Quant, Tensor, TensorId, TensorKind};

impl Importer<'_, '_> {
    /// A bilinear resize of stored numbers in f32, as TensorFlow Lite computes that of uint8.
    pub(super) fn legacy_resize(&mut self, view: View<'_, '_>, op: Op) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let (before, after) = (self.shape(x)?, self.shape(y)?);
        let bytes = Quant::per_tensor(1.0, -128);
        let (real, narrow) = (
            Tensor::activation("", &before, DType::F32),
            Tensor {
                quant: Some(bytes.clone()),
                ..Tensor::activation("", &after, DType::I8)
            },
        );
        let mut from = self.operand(x)?;
        from = self.read_as(view, "/bytes", from, bytes);
        from = self.made(view, "/real", Op::Dequantize, from, 1, (&real, &before));
        from = self.made(view, "/resized", op, from, 1, (&real, &after));
        from = self.made(view, "/narrow", Op::Quantize, from, 1, (&narrow, &after));
        let y = self.output(y)?;
        self.node(view, "", Op::Reshape, vec![Some(from)], vec![y]);
        Ok(())
    }

    /// Operand `x` of a concatenation into `y` of another scale. The reference rescales in f32: integer arithmetic where it gives the same 256 numbers, else
    /// the same operations on f32.
    pub(super) fn legacy_part(&mut self, view: View<'_, '_>, position: usize, x: usize, y: usize) -> Result<TensorId> {
        let (qx, qy) = (self.scale_of(x)?, self.scale_of(y)?);
        let ([scale_x, scale_y], [zero_x, zero_y]) = ([qx.scale[0], qy.scale[0]], [qx.zero_point[0], qy.zero_point[0]]);
        let real = f64::from(scale_x) / f64::from(scale_y);
        let multiplier = Multiplier::from_real(real)
            .ok_or_else(|| Error::input(format!("the scales {scale_x} and {scale_y} give the factor {real}")))?;
        let factor = scale_x * (1.0 / scale_y);
        let offset = -((zero_x + 128) as f32) * factor;
        let same = (0..=255_u8).all(|byte| {
            let rounded = (f32::from(byte) * factor + offset).round() as i32;
            let wanted = rounded.saturating_add(zero_y).clamp(-128, 127);
            wanted == requantize(i32::from(byte) - 128, zero_x, multiplier, zero_y, -128, 127)
        });
        let (mut from, shape) = (self.operand(x)?, self.shape(x)?);
        let like = Tensor {
            quant: Some(qy.clone()),
            ..Tensor::activation("", &shape, DType::I8)
        };
        let suffix = format!("/{position}");
        if same {
            return Ok(self.made(view, &suffix, Op::Quantize, from, 1, (&like, &shape)));
        }
        let real = Tensor::activation("", &shape, DType::F32);
        from = self.read_as(view, &format!("{suffix}/bytes"), from, Quant::per_tensor(1.0, -128));
        from = self.made(
            view,
            &format!("{suffix}/real"),
            Op::Dequantize,
            from,
            1,
            (&real, &shape),
        );
        for (kind, what, value) in [(BinaryOp::Mul, "factor", factor), (BinaryOp::Add, "offset", offset)] {
            let place = format!("{}#{}{suffix}/{what}", view.kind, view.index);
            let value = self.add_const(Tensor {
                kind: TensorKind::Const(Data::from_f32(&[value])),
                ..Tensor::activation(format!("{place}/value"), &[1], DType::F32)
            });
            let to = self.add_const(Tensor::activation(place, &shape, DType::F32));
            let activation = Activation::None;
            let operands = vec![Some(from), Some(value)];
            self.node(
                view,
                &format!("{suffix}/{what}"),
                Op::Binary { kind, activation },
                operands,
                vec![to],
            );
            from = to;
        }
        let whole = Tensor {
            quant: Some(Quant::per_tensor(1.0, zero_y)),
            ..like
        };
        from = self.made(
            view,
            &format!("{suffix}/narrow"),
            Op::Quantize,
            from,
            1,
            (&whole, &shape),
        );
        Ok(self.read_as(view, &suffix, from, qy))
    }
}
