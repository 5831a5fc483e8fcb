//! Faults of a step.

use core::fmt;

/// The first check of a step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Fault {
    /// The parameters do not decode, or bytes are left over.
    Encoding,
    /// Shapes, strides or attributes contradict each other.
    Shape,
    /// An operand lies outside its region, the state or the weights.
    Bounds,
    /// An operand's offset is not a multiple of its element's size.
    Alignment,
    /// The output overlaps an operand in a way that the kernel does not allow.
    Overlap,
    /// A quantisation parameter is out of its range.
    Quantisation,
    /// The kernel does not compute the operator with these parameters.
    Unsupported,
    /// A record among the weights names a place outside the operands.
    Weights,
    /// Weights that load has to check are shared by so many steps that checking them for each would take time out of proportion to the file.
    Shared,
    /// It runs on a core that the file does not have.
    Core,
    /// Between two barriers it touches what another core writes, or writes what another core reads.
    Race,
    /// The steps between two barriers have more operands than load compares.
    Group,
    /// It is handed to an accelerator that does not reach one of its operands, by region or alignment, as the file declares it.
    Reach,
    /// It is handed to an accelerator whose layout has not its kernel, or its kernel is none that can be handed over.
    Handed,
    /// Commands for an NPU among its constants are not known, or touch what is not the step's.
    Commands,
    /// A turn of a rolled step reads a row that is not made yet, or makes another row than its tensor's next one, or its kernel does not read the rows.
    Rows,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Encoding => "its parameters do not decode",
            Fault::Shape => "its shapes contradict each other",
            Fault::Bounds => "an operand lies outside its memory",
            Fault::Alignment => "an operand is misaligned",
            Fault::Overlap => "its output overlaps an operand",
            Fault::Quantisation => "a quantisation parameter is out of range",
            Fault::Unsupported => "its kernel does not compute these parameters",
            Fault::Weights => "a record among its weights is wrong",
            Fault::Shared => "its weights are shared by too many steps",
            Fault::Core => "it runs on a core that the file does not have",
            Fault::Race => "another core writes what it touches, or reads what it writes, between the same barriers",
            Fault::Group => "the steps between its barriers have too many operands",
            Fault::Reach => "an operand lies where its accelerator does not reach, or is not aligned as that wants it",
            Fault::Handed => "its accelerator has not its kernel",
            Fault::Commands => "its commands for an NPU are not known, or touch what is not the step's",
            Fault::Rows => "a row that it reads is not made yet, or not its to make, or its kernel does not read rows that lie apart",
        })
    }
}
