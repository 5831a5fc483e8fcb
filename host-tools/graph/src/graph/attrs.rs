//! Attributes that operators of inference and of training share: axis order, padding, clamps, and what convolution and pooling have.

/// Axis order of the activations of a spatial operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Batch, channels, rows, columns.
    Nchw,
    /// Batch, rows, columns, channels.
    Nhwc,
}

/// Rows and columns added on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Padding2d {
    /// Rows above.
    pub top: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns to the left.
    pub left: usize,
    /// Columns to the right.
    pub right: usize,
}

/// A clamp applied to an operator's result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// Identity.
    #[default]
    None,
    /// max(x, 0)
    Relu,
    /// min(max(x, 0), 6)
    Relu6,
    /// min(max(x, -1), 1)
    ReluN1To1,
}

impl Activation {
    /// The least and the largest real number that it lets through.
    pub const fn bounds(self) -> [f32; 2] {
        match self {
            Self::None => [f32::NEG_INFINITY, f32::INFINITY],
            Self::Relu => [0.0, f32::INFINITY],
            Self::Relu6 => [0.0, 6.0],
            Self::ReluN1To1 => [-1.0, 1.0],
        }
    }
}

/// Attributes of a convolution, plain, grouped or depthwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2dAttrs {
    /// Axis order of input and output.
    pub layout: Layout,
    /// Rows, columns.
    pub stride: [usize; 2],
    /// Rows, columns.
    pub dilation: [usize; 2],
    /// Zero (or zero point) padding.
    pub padding: Padding2d,
    /// Input channels / groups = the weights' input channels. Depthwise: groups = input channels.
    pub groups: usize,
    /// Fused clamp.
    pub activation: Activation,
}

/// Attributes of a pooling.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolAttrs {
    /// Axis order of input and output.
    pub layout: Layout,
    /// Rows, columns.
    pub kernel: [usize; 2],
    /// Rows, columns.
    pub stride: [usize; 2],
    /// Padding; ceiling-mode pooling is stated as extra bottom and right padding, which `count_include_pad` never counts.
    pub padding: Padding2d,
    /// Average only: divide by the window's size, padding included.
    pub count_include_pad: bool,
    /// Fused clamp.
    pub activation: Activation,
}
