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
    // What the last window needs behind the input has the limit of what the first one needs before it.
    for (axis, (extent, outputs, before)) in [(h, oh, padding.top), (w, ow, padding.left)].into_iter().enumerate() {
        let last = outputs.saturating_sub(1).saturating_mul(stride[axis]);
        let reach = kernel[axis].saturating_sub(1).saturating_mul(dilation[axis]);
        let end = last.saturating_add(reach).saturating_add(1);
        fit::<u8>(end.saturating_sub(extent.saturating_add(before)), "the padding")?;
    }
    Ok(Window2d {
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
    })
}
