//! Pieces of the code of [`super::conv2d_s8`], a bit each.

/// Records that load has not checked.
pub(super) const RECORDS: u32 = 1;
/// Limits of the outputs.
pub(super) const LIMITED: u32 = 2;
/// Pixels without a window.
pub(super) const POINTS: u32 = 4;
/// Windows.
pub(super) const WINDOWS: u32 = 8;
/// Two or three pixels at the end.
pub(super) const SOME: u32 = 16;
/// Channels at which the loop stops.
pub(super) const OTHERS: u32 = 32;
/// Windows that lie inside the image.
pub(super) const WHOLE: u32 = 64;
/// Rows of windows that do.
pub(super) const ROWS: u32 = 128;
/// Rows of windows that are copied with the border.
pub(super) const COPIES: u32 = 256;
/// Rows of windows tap by tap.
pub(super) const TAPS: u32 = 512;
