//! Foreign decoders on files of anybody: a panic within one is an error, and prints nothing.

use std::cell::Cell;
use std::panic::{self, UnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `decode`; returns its result, or `None` where it panics. Other threads' panics, and those of other code, are printed as before.
pub(super) fn caught<T>(decode: impl FnOnce() -> T + UnwindSafe) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let result = panic::catch_unwind(decode);
    QUIET.set(false);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_a_result_is_itself() {
        assert_eq!(caught(|| 3), Some(3));
        assert_eq!(caught(|| [1, 2].get(7).copied().expect("a third")), None::<i32>);
        assert!(!QUIET.get());
    }
}
