//! Naked functions, their arguments and their stack frames: what assembly of every instruction set has in common.
//!
//! Assembly names a field of its arguments, `{rest}`, and never the field's offset: a field that moves, moves in the assembly. Loads of several registers
//! at once take neighbours, which [`consecutive`] holds at compile time.

#[cfg(feature = "testkit")]
pub(crate) mod registers;
#[macro_use]
mod rv32;

/// A naked function's body, over the fields of `#[repr(C)]` structs where it names any: in the templates `{field}` is the field's offset in bytes. Other
/// operands of `naked_asm!` follow the templates behind a semicolon. A field that no template names does not compile.
#[allow(unused_macros, reason = "builds for hosts have no naked functions")]
macro_rules! naked {
    ($($of:ident { $($field:ident),+ $(,)? }),+ => $($template:expr),+ $(,)? $(; $($operands:tt)*)?) => {
        checked!($($template),+; $($($field = const core::mem::offset_of!($of, $field),)+)+ $($($operands)*)?)
    };
    ($($template:expr),+ $(,)? $(; $($operands:tt)*)?) => { checked!($($template),+; $($($operands)*)?) };
}

/// The body itself.
#[cfg(not(registers))]
#[allow(unused_macros, reason = "builds for hosts have no naked functions")]
macro_rules! checked {
    ($($template:expr),+; $($operands:tt)*) => { core::arch::naked_asm!($($template,)+ $($operands)*) };
}

/// The call that a checked function begins with: where it returns to stays in a register that is free.
#[cfg(all(registers, target_arch = "arm"))]
macro_rules! call_enter {
    () => {
        "mov r12, lr\n bl {enter}"
    };
}
#[cfg(all(registers, target_arch = "aarch64"))]
macro_rules! call_enter {
    () => {
        "mov x16, x30\n bl {enter}"
    };
}
#[cfg(all(registers, any(target_arch = "riscv32", target_arch = "riscv64")))]
macro_rules! call_enter {
    () => {
        "call t0, {enter}"
    };
}

/// The body between [`registers::enter`] and `leave`.
#[cfg(registers)]
macro_rules! checked {
    ($($template:expr),+; $($operands:tt)*) => {
        core::arch::naked_asm!(
            call_enter!(),
            $($template,)+
            enter = sym $crate::kernels::isa::registers::enter,
            $($operands)*
        )
    };
}

/// Holds fields to be neighbouring words in this order: what LDM, LDRD and loads of pairs read at once.
#[allow(unused_macros, reason = "builds for hosts have no naked functions")]
macro_rules! consecutive {
    ($of:ty: $first:ident $(, $next:ident)+ $(,)?) => {
        const _: () = {
            let mut _at = core::mem::offset_of!($of, $first);
            $(
                _at += size_of::<usize>();
                assert!(core::mem::offset_of!($of, $next) == _at, stringify!($next));
            )+
        };
    };
}

/// Words of a naked function's stack frame, from the stack pointer on.
#[allow(unused_macros, reason = "builds for hosts have no naked functions")]
macro_rules! frame {
    ($(#[$about:meta])* $name:ident { $($word:ident),+ $(,)? }) => {
        $(#[$about])*
        #[repr(C)]
        #[allow(dead_code, reason = "the assembly names its words")]
        struct $name { $($word: usize),+ }
    };
}

// Behind the macros, which it uses.
pub(crate) mod dsp;
