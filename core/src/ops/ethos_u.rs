//! Commands for an Ethos-U: what Vela has compiled, with the memory that they are for. An NPU computes the step; no kernel does.

use serde::{Deserialize, Serialize};

use crate::align::ARENA_ALIGN;
use crate::arena::{Access, Operand, Place};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};

/// The most inputs, and the most outputs, of a step.
pub const MOST_PORTS: usize = 8;

/// Bytes of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Span {
    /// From its start on.
    pub offset: u32,
    /// Length, in bytes.
    pub bytes: u32,
}

operator! {
    /// Inputs that the core has written into the scratch before: the first ones are there.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Inputs<P> {
        /// The first.
        pub first: Option<P>,
        /// The others likewise.
        pub second: Option<P>,
        /// As above.
        pub third: Option<P>,
        /// As above.
        pub fourth: Option<P>,
        /// As above.
        pub fifth: Option<P>,
        /// As above.
        pub sixth: Option<P>,
        /// As above.
        pub seventh: Option<P>,
        /// As above.
        pub eighth: Option<P>;
        /// Bytes of each.
        pub bytes: heapless::Vec<u32, MOST_PORTS>,
    }
}

operator! {
    /// A custom operator payload of Vela's, for `ethosu_invoke` of Arm's driver. Its commands name memory by region and offset: region 0 is the constants, 1
    /// the scratch, 2 the fast scratch.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct EthosU<P> {
        /// Region 1, which the inputs lie in as well, and the outputs afterwards.
        pub scratch: P,
        /// Region 2.
        pub fast: P,
        /// In the scratch.
        pub inputs: Inputs<P>;
        /// Offset of the payload in the weights.
        pub payload: u32,
        /// Bytes of the payload.
        pub payload_bytes: u32,
        /// Offset of region 0 in the weights.
        pub constants: u32,
        /// Bytes of region 0.
        pub constants_bytes: u32,
        /// Bytes of region 1.
        pub scratch_bytes: u32,
        /// Bytes of region 2; 0 where there is none.
        pub fast_bytes: u32,
        /// Positions of the outputs in the scratch.
        pub outputs: heapless::Vec<Span, MOST_PORTS>,
    }
}

impl<P: Place> Inputs<P> {
    /// The inputs, without those that are missing, and their bytes.
    pub fn each(&self) -> impl Iterator<Item = (P, u32)> {
        let places = self.places().into_iter().flatten();
        places.zip(self.bytes.iter().copied())
    }

    fn places(&self) -> [Option<P>; MOST_PORTS] {
        [
            self.first,
            self.second,
            self.third,
            self.fourth,
            self.fifth,
            self.sixth,
            self.seventh,
            self.eighth,
        ]
    }
}

impl<P: Place> Operator for EthosU<P> {
    fn check(&self) -> Result<(), Fault> {
        let places = self.inputs.places();
        let there = places.iter().take_while(|place| place.is_some()).count();
        let all = places.iter().filter(|place| place.is_some()).count();
        let inside = |span: &Span| {
            let end = span.offset.checked_add(span.bytes);
            span.bytes > 0 && end.is_some_and(|end| end <= self.scratch_bytes)
        };
        let complete = there == all && all == self.inputs.bytes.len();
        if complete && !self.outputs.is_empty() && self.outputs.iter().all(inside) {
            Ok(())
        } else {
            Err(Fault::Shape)
        }
    }

    /// The scratch as a whole comes first: what is not an output in it is worthless afterwards.
    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let align = ARENA_ALIGN as u32;
        let of = |access, place, bytes, align| Operand {
            access,
            place,
            bytes,
            align,
        };
        visit(of(Access::Write, self.scratch, self.scratch_bytes, align));
        visit(Operand::scratch(self.fast, needs.scratch));
        for (place, bytes) in self.inputs.each() {
            visit(of(Access::Read, place, bytes, 1));
        }
        let constants = [
            (self.payload, self.payload_bytes),
            (self.constants, self.constants_bytes),
        ];
        for (offset, bytes) in constants {
            visit(of(Access::Read, P::constant(offset), bytes, align));
        }
    }
}
