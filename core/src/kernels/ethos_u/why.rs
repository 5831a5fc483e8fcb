//! Why command streams are refused.

use core::fmt;

/// Why a payload is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is no payload as the driver takes it.
    Payload,
    /// It is for no Ethos-U55 or U65.
    Product,
    /// No command that is known.
    Command,
    /// An operation goes by a register that is not set, or holds what it cannot.
    Parameter,
    /// A region that is none of the step's.
    Region,
    /// An operation reaches beyond the end of its region.
    Outside,
    /// An operation writes constants.
    Constants,
    /// The stream does not end with its only stop.
    Stop,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Payload => "this is no payload of a custom operator",
            Why::Product => "it is for another NPU than an Ethos-U55 or U65",
            Why::Command => "this command is not known",
            Why::Parameter => "the operation goes by a register that is not set, or that holds what it cannot",
            Why::Region => "the operation goes to a region that is none of its own",
            Why::Outside => "the operation reaches beyond its region",
            Why::Constants => "the operation writes constants",
            Why::Stop => "the stream does not end with its only stop",
        })
    }
}
