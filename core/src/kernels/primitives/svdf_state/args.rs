//! Arguments of the loops over the state of an SVDF on cores without vectors. `#[repr(C)]`; the assembly reads fields by `offset_of!`.

/// State, constants and outputs of a row.
#[repr(C)]
pub(super) struct SvdfS8Args {
    pub(super) state: *mut i8,
    pub(super) weights: *const i8,
    pub(super) newest: *const i8,
    pub(super) y: *mut i8,
    pub(super) bias: *const i32,
    pub(super) mantissa: i32,
    pub(super) addend: i32,
    pub(super) right: u32,
    /// Past the last output.
    pub(super) end: *mut i8,
    /// Length of a filter's memory without the newest element, in steps of the loop.
    pub(super) less_one: usize,
    pub(super) rank: usize,
}
