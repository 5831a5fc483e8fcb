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
/// Blocks of two channels: of 2 inputs, which are those of unlike channels too, of 3, 4 and 8.
#[cfg(any(test, packing, kernel_isa = "rv32im"))]
pub(super) const BY_2: u32 = 1024;
/// See [`BY_2`].
#[cfg(any(test, packing, kernel_isa = "rv32im"))]
pub(super) const BY_3: u32 = 2048;
/// See [`BY_2`].
#[cfg(any(test, packing, kernel_isa = "rv32im"))]
pub(super) const BY_4: u32 = 4096;
/// See [`BY_2`].
#[cfg(any(test, packing, kernel_isa = "rv32im"))]
pub(super) const BY_8: u32 = 8192;
/// All of them.
#[cfg(kernel_isa = "rv32im")]
pub(super) const BLOCKS: u32 = BY_2 | BY_3 | BY_4 | BY_8;
