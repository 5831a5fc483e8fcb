//! Windows of convolutions and poolings.

use arenite::ops::window::Window2d;

use super::context::fit;
use crate::error::{Error, Result};
use crate::graph::infer::nhwc;
use crate::graph::{Layout, Padding2d, Tensor};

/// The device's window of a convolution or pooling.
pub(super) fn window(
    x: &Tensor,
    y: &Tensor,
    layout: Layout,
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: Padding2d,
) -> Result<Window2d> {
    if layout != Layout::Nhwc {
        return Err(Error::internal("a spatial operator in NCHW order reached lowering"));
    }
    let [n, h, w, c] = nhwc(layout, &x.shape)?;
    let [_, oh, ow, oc] = nhwc(layout, &y.shape)?;
    // The last window's elements behind the input have the limit of the first window's before it.
    for (axis, (extent, outputs, before)) in [(h, oh, padding.top), (w, ow, padding.left)].into_iter().enumerate() {
        let last = outputs.saturating_sub(1).saturating_mul(stride[axis]);
        let reach = kernel[axis].saturating_sub(1).saturating_mul(dilation[axis]);
        let end = last.saturating_add(reach).saturating_add(1);
        fit::<u8>(end.saturating_sub(extent.saturating_add(before)), "the padding")?;
    }
    Ok(of_one_row(Window2d {
        batch: fit(n, "the batch")?,
        input: [
            fit(h, "the height")?,
            fit(w, "the width")?,
            fit(c, "the number of input channels")?,
        ],
        output: [
            fit(oh, "the height")?,
            fit(ow, "the width")?,
            fit(oc, "the number of output channels")?,
        ],
        kernel: [fit(kernel[0], "the kernel")?, fit(kernel[1], "the kernel")?],
        stride: [fit(stride[0], "the stride")?, fit(stride[1], "the stride")?],
        dilation: [fit(dilation[0], "the dilation")?, fit(dilation[1], "the dilation")?],
        padding: [fit(padding.top, "the padding")?, fit(padding.left, "the padding")?],
    }))
}

/// Windows of one column over one column as the same of one row over one row: all elements lie where they were, and kernels take neighbours of a row together.
fn of_one_row(window: Window2d) -> Window2d {
    let turned = |[rows, columns]: [u8; 2]| [columns, rows];
    let ([height, width, channels], [rows, columns, depth]) = (window.input, window.output);
    if [width, columns] != [1, 1] || window.kernel[1] != 1 || window.padding[1] != 0 {
        return window;
    }
    Window2d {
        input: [width, height, channels],
        output: [columns, rows, depth],
        kernel: [window.kernel[1], window.kernel[0]],
        stride: turned(window.stride),
        dilation: turned(window.dilation),
        padding: turned(window.padding),
        ..window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_rows_and_nothing_else_is() {
        let column = Window2d {
            batch: 2,
            input: [40, 1, 6],
            output: [19, 1, 5],
            kernel: [7, 1],
            stride: [2, 3],
            dilation: [1, 4],
            padding: [2, 0],
        };
        let row = Window2d {
            batch: 2,
            input: [1, 40, 6],
            output: [1, 19, 5],
            kernel: [1, 7],
            stride: [3, 2],
            dilation: [4, 1],
            padding: [0, 2],
        };
        assert_eq!(of_one_row(column), row);
        assert_eq!(of_one_row(row), row);
        for other in [
            Window2d {
                input: [40, 2, 6],
                ..column
            },
            Window2d {
                output: [19, 2, 5],
                ..column
            },
            Window2d {
                kernel: [7, 2],
                ..column
            },
            Window2d {
                padding: [2, 1],
                ..column
            },
        ] {
            assert_eq!(of_one_row(other), other);
        }
    }
}
