//! `--preprocess`: from a camera's picture to a network's input, as steps in front of the first layer.
//!
//! A network trained on `(pixel - mean) * scale` takes bytes: `scale * (byte - zero point)` with a whole zero point is the affine quantisation that
//! every core converts, so what is left to compute is the difference to it. That goes into the first convolution's weights and bias where this is exact.

mod fold;
mod spec;
mod steps;

pub use fold::fold;
pub use spec::{Geometry, Preprocess};
pub use steps::{Inserted, insert};
