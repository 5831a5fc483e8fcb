//! RV32: neighbouring words and bytes in memory, and the frames that functions save registers in.

/// Words from an address on, each with a register: `$op` is LW or SW, `$first` what the first one's offset is written before.
#[allow(unused_macros, reason = "builds for other cores have no assembly of RISC-V")]
macro_rules! words {
    ($op:literal $at:literal: $($register:literal)+) => {
        neighbours!($op "" $at ["0" "4" "8" "12" "16" "20" "24" "28" "32" "36" "40" "44" "48"] $($register)+)
    };
    ($op:literal $first:literal $at:literal: $($register:literal)+) => {
        neighbours!($op $first $at ["+0" "+4" "+8" "+12" "+16" "+20" "+24" "+28"] $($register)+)
    };
}

/// Bytes from an address on, each with a register.
#[allow(unused_macros, reason = "builds for other cores have no assembly of RISC-V")]
macro_rules! bytes {
    ($op:literal $at:literal: $($register:literal)+) => {
        neighbours!($op "" $at ["0" "1" "2" "3" "4" "5" "6" "7" "8"] $($register)+)
    };
}

/// Both: as many of the offsets as there are registers.
#[allow(unused_macros, reason = "builds for other cores have no assembly of RISC-V")]
macro_rules! neighbours {
    ($op:literal $first:literal $at:literal [$offset:literal $($offsets:literal)*] $register:literal $($registers:literal)*) => {
        concat!(
            $op, " ", $register, ", ", $first, $offset, "(", $at, ")\n",
            neighbours!($op $first $at [$($offsets)*] $($registers)*)
        )
    };
    ($op:literal $first:literal $at:literal [$($offsets:literal)*]) => { "" };
}

/// A new frame, which holds these registers from the stack pointer on.
#[allow(unused_macros, reason = "builds for other cores have no assembly of RISC-V")]
macro_rules! save {
    ($($register:literal)+) => {
        concat!("addi sp, sp, -", frame_bytes!($($register)+), "\n", words!("sw" "sp": $($register)+))
    };
}

/// Restores the registers of [`save`] and frees the frame.
#[allow(unused_macros, reason = "builds for other cores have no assembly of RISC-V")]
macro_rules! restore {
    ($($register:literal)+) => {
        concat!(words!("lw" "sp": $($register)+), "addi sp, sp, ", frame_bytes!($($register)+), "\n")
    };
}

/// Bytes of a frame of so many words: whole sixteens.
#[allow(unused_macros, reason = "builds for other cores have no assembly of RISC-V")]
macro_rules! frame_bytes {
    (one $register:literal) => { "+4" };
    ($($register:literal)+) => { concat!("((15", $(frame_bytes!(one $register),)+ ")/16*16)") };
}
