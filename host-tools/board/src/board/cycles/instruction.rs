//! An instruction as the pipelines see it: what it is, how large, what it reads and writes.

/// Class of an instruction, on which its time depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// Arithmetic, moves, hints, and the instructions of the DSP extension that do not multiply.
    Alu,
    /// `IT`: the instructions behind it have conditions.
    IfThen,
    Multiply,
    MultiplyAccumulate,
    MultiplyLong,
    MultiplyAccumulateLong,
    Divide,
    /// Of a word or less.
    Load,
    Store,
    /// `LDRD`, `STRD`.
    LoadTwo,
    StoreTwo,
    /// Of so many words.
    LoadMultiple(u32),
    StoreMultiple(u32),
    /// A load of so many words with the program counter among them.
    Return(u32),
    /// To an address in the instruction.
    Branch,
    /// The same, or the next instruction.
    ConditionalBranch,
    /// To an address in the instruction, with a link.
    Call,
    /// To an address in a register, with a link or without.
    IndirectBranch,
    /// `TBB`, `TBH`.
    TableBranch,
    /// `DLS`, `WLS` and their tail-predicated forms.
    LoopStart,
    /// `LE`, `LETP`.
    LoopEnd,
    Float,
    FloatMultiplyAccumulate,
    FloatDivide,
    /// Of so many words to or from floating-point registers.
    FloatLoad(u32),
    FloatStore(u32),
    /// Between floating-point and other registers.
    FloatMove,
    /// A vector instruction, and the pipe that it takes.
    Vector(Pipe),
}

/// The pipes of a vector unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pipe {
    Memory,
    /// A memory access with an address for each element.
    Scattered,
    Integer,
    /// Multiplications, comparisons and floating point.
    Multiplier,
    /// Predicates.
    Control,
}

/// A set of registers: bit 0 to 31 the integer ones and what goes with them, 32 to 63 the floating-point ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(super) struct Registers(pub(super) u64);

impl Registers {
    pub(super) const NONE: Self = Self(0);
    pub(super) const LINK: Self = Self(1 << 14);
    pub(super) const COUNTER: Self = Self(1 << 15);
    /// The condition flags of a Cortex-M.
    pub(super) const FLAGS: Self = Self(1 << 16);
    /// The floating-point flags of a Cortex-M.
    pub(super) const FPSCR: Self = Self(1 << 18);
    /// The vector predicate of a Cortex-M.
    pub(super) const PREDICATE: Self = Self(1 << 17);

    /// Integer register `number`.
    pub(super) fn integer(number: u32) -> Self {
        Self(1 << (number & 31))
    }

    /// `count` single-precision registers from `first` on.
    pub(super) fn float(first: u32, count: u32) -> Self {
        Self((first..first + count).map(|at| 1 << (32 + (at & 31))).sum())
    }

    /// Vector register `number` of a Cortex-M, which is four single-precision ones.
    pub(super) fn vector(number: u32) -> Self {
        Self::float(4 * (number & 7), 4)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Bit numbers.
    pub(super) fn each(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |at| self.0 >> at & 1 == 1)
    }
}

/// A decoded instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) address: u64,
    /// Bytes.
    pub(super) size: u64,
    pub(super) kind: Kind,
    /// The mnemonic without condition, width and type.
    pub(super) name: String,
    /// All that it reads but the addends.
    pub(super) reads: Registers,
    /// Those of them that an address is made of.
    pub(super) addresses: Registers,
    /// Registers that a multiply-accumulate adds to.
    pub(super) addends: Registers,
    pub(super) writes: Registers,
    /// Those of them that are addresses written back.
    pub(super) updates: Registers,
    /// Whether an operand is shifted, or an address has two registers.
    pub(super) shifted: bool,
    /// Whether its values are of 64 bits.
    pub(super) double: bool,
}

impl Instruction {
    pub(super) fn new(address: u64, size: u64, kind: Kind, name: &str) -> Self {
        Self {
            address,
            size,
            kind,
            name: name.to_owned(),
            reads: Registers::NONE,
            addresses: Registers::NONE,
            addends: Registers::NONE,
            writes: Registers::NONE,
            updates: Registers::NONE,
            shifted: false,
            double: false,
        }
    }

    /// Where the next one in memory is.
    pub(super) fn end(&self) -> u64 {
        self.address + self.size
    }

    /// Whether it takes two halfwords that do not lie in one word.
    pub(super) fn straddles(&self) -> bool {
        self.size == 4 && !self.address.is_multiple_of(4)
    }

    /// Whether it is one load or store of a word or less.
    pub(super) fn is_single_access(&self) -> bool {
        matches!(
            self.kind,
            Kind::Load | Kind::Store | Kind::FloatLoad(1) | Kind::FloatStore(1)
        )
    }

    pub(super) fn is_load(&self) -> bool {
        matches!(self.kind, Kind::Load | Kind::FloatLoad(_))
    }
}

/// How a branch finds where it goes, from the earliest to the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// The address is in the instruction.
    Known,
    /// In a register.
    Register,
    /// In memory.
    Loaded,
}

impl Target {
    pub(super) fn of(branch: &Instruction) -> Self {
        match branch.kind {
            Kind::IndirectBranch => Self::Register,
            Kind::Return(_) | Kind::TableBranch => Self::Loaded,
            _ => Self::Known,
        }
    }
}
