//! Results of functions, as C gets them.

/// Result of a function: `ARENITE_OK`, or an error as four bytes, whose text `arenite_error_text` gives and `arenite explain-code` explains.
pub type arenite_code = u32;

/// Done.
pub const ARENITE_OK: arenite_code = 0;
/// A pointer is null that must not be.
pub const ARENITE_NULL: arenite_code = 0xF0FF_FFFF;
/// No session was opened here, or opening it failed.
pub const ARENITE_NOT_OPEN: arenite_code = 0xF1FF_FFFF;
/// The session, or what is to be written, does not start at a multiple of its alignment.
pub const ARENITE_MISALIGNED: arenite_code = 0xF2FF_FFFF;
/// The model has no steps of training, or the library was built without the feature `training`.
pub const ARENITE_NOT_FOR_TRAINING: arenite_code = 0xF3FF_FFFF;
