//! Pointers from C as slices, and a session in C's memory.

use core::slice;

use arenite::Session;

use super::code::{ARENITE_MISALIGNED, ARENITE_NOT_OPEN, ARENITE_NULL, ARENITE_OK, arenite_code};
use super::kernels::Linked;

/// A session in the program's own memory; its words are the library's. It may be moved, and needs no closing.
#[repr(C)]
pub struct arenite_session {
    words: [usize; 24],
}

/// Contents of an [`arenite_session`].
pub(super) struct Held {
    /// [`Held::OPEN`] where the session is one.
    mark: usize,
    session: Session<'static, 'static, Linked>,
}

const _: () = assert!(size_of::<Held>() <= size_of::<arenite_session>());
const _: () = assert!(align_of::<Held>() <= align_of::<arenite_session>());

impl Held {
    /// Mark that memory which was never opened hardly holds.
    const OPEN: usize = 0x5E55_1034;

    /// # Safety
    /// `place` is writable and aligned.
    pub(super) unsafe fn open(place: *mut arenite_session, session: Session<'static, 'static, Linked>) {
        let mark = Self::OPEN;
        // SAFETY: `place` is writable and aligned (fn docs); a session fits, which the assertions above hold, and needs no drop.
        unsafe { place.cast::<Self>().write(Self { mark, session }) };
    }

    /// # Safety
    /// `place` is writable and aligned.
    pub(super) unsafe fn close(place: *mut arenite_session) {
        // SAFETY: `place` is writable and aligned (fn docs).
        unsafe { (&raw mut (*place.cast::<Self>()).mark).write(0) };
    }
}

/// # Safety
/// `session` is null, or points to an `arenite_session` whose words are initialised and that nothing else uses for `'a`.
pub(super) unsafe fn held_mut<'a>(
    session: *mut arenite_session,
) -> Result<&'a mut Session<'static, 'static, Linked>, arenite_code> {
    // SAFETY: `session` is null or points to initialised words that nothing else uses (fn docs).
    unsafe { held(session) }?;
    // SAFETY: the mark says that a session was written behind it; nothing else uses it for `'a` (fn docs).
    Ok(unsafe { &mut (*session.cast::<Held>()).session })
}

/// # Safety
/// `session` is null, or points to an `arenite_session` whose words are initialised and that nothing writes for `'a`.
pub(super) unsafe fn held<'a>(
    session: *const arenite_session,
) -> Result<&'a Session<'static, 'static, Linked>, arenite_code> {
    if session.is_null() {
        return Err(ARENITE_NULL);
    }
    if !session.is_aligned() {
        return Err(ARENITE_MISALIGNED);
    }
    let held = session.cast::<Held>();
    // SAFETY: not null and aligned, as just checked; the words are initialised, and nothing writes them (fn docs).
    if unsafe { (&raw const (*held).mark).read() } != Held::OPEN {
        return Err(ARENITE_NOT_OPEN);
    }
    // SAFETY: the mark says that a session was written behind it; nothing writes it for `'a` (fn docs).
    Ok(unsafe { &(*held).session })
}

/// `None` for null with a length.
///
/// # Safety
/// `start` is null, or points to `len` bytes that nothing writes for `'a`.
pub(super) unsafe fn bytes<'a>(start: *const u8, len: usize) -> Option<&'a [u8]> {
    match (start.is_null(), len) {
        (true, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: not null: `len` bytes that nothing writes for `'a` (fn docs).
        (false, _) => Some(unsafe { slice::from_raw_parts(start, len) }),
    }
}

/// `None` for null with a length.
///
/// # Safety
/// `start` is null, or points to `len` bytes that nothing else uses for `'a`.
pub(super) unsafe fn bytes_mut<'a>(start: *mut u8, len: usize) -> Option<&'a mut [u8]> {
    match (start.is_null(), len) {
        (true, 0) => Some(&mut []),
        (true, _) => None,
        // SAFETY: not null: `len` bytes that nothing else uses for `'a` (fn docs).
        (false, _) => Some(unsafe { slice::from_raw_parts_mut(start, len) }),
    }
}

/// Says where something is and how long.
///
/// # Safety
/// `place` and `len` are null or writable.
pub(super) unsafe fn give<T: Copy>(found: T, bytes: usize, place: *mut T, len: *mut usize) -> arenite_code {
    if place.is_null() || len.is_null() {
        return ARENITE_NULL;
    }
    if !place.is_aligned() || !len.is_aligned() {
        return ARENITE_MISALIGNED;
    }
    // SAFETY: not null and aligned, as just checked, and writable (fn docs).
    unsafe {
        place.write(found);
        len.write(bytes);
    }
    ARENITE_OK
}
