//! Declaration, in a file, of the accelerator that it is for.

use core::{fmt, str};

use crate::align::ARENA_ALIGN;
use crate::arena::MAX_REGIONS;
use crate::kernels::{Backend, table::KernelId};
use crate::target::Target;

/// The name of an accelerator: at most [`Name::MOST`] small letters, digits and hyphens.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Name([u8; Name::MOST]);

impl Name {
    /// The most letters.
    pub const MOST: usize = 16;

    /// This name; `None` where it is too long, empty, or has other letters.
    pub const fn new(text: &str) -> Option<Self> {
        let mut name = [0; Self::MOST];
        let (mut from, mut to) = (text.as_bytes(), name.as_mut_slice());
        if from.is_empty() {
            return None;
        }
        while let Some((&letter, rest)) = from.split_first() {
            let Some((place, places)) = to.split_first_mut() else {
                return None;
            };
            if !is_letter(letter) {
                return None;
            }
            *place = letter;
            (from, to) = (rest, places);
        }
        Some(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let letters = self.0.split(|&letter| letter == 0).next().unwrap_or_default();
        str::from_utf8(letters).unwrap_or("?")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

const fn is_letter(letter: u8) -> bool {
    matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-')
}

/// An accelerator, as files declare the one that they are for and [`crate::Accelerator`] the one that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Declaration {
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: u16,
    /// The target whose kernels and layouts of weights its steps have.
    pub layout: Target,
    /// Required alignment of operand addresses, in bytes: 1, 2, 4, 8 or 16.
    pub alignment: u8,
    /// The regions of the arena that it reaches: bit `n` for region `n`.
    pub regions: u8,
}

impl Declaration {
    /// Bytes in a file.
    pub const BYTES: usize = Name::MOST + 5;

    /// As a file has it; `None` for what no accelerator can be.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk::<{ Name::MOST }>()?;
        let &[low, high, layout, alignment, regions] = rest.first_chunk()?;
        let name = Name::new(Name(*name).as_str()).filter(|&known| known == Name(*name))?;
        let aligned = alignment.is_power_of_two() && usize::from(alignment) <= ARENA_ALIGN;
        let some = (1..1 << MAX_REGIONS).contains(&regions);
        let layout = Target::ALL.get(usize::from(layout)).copied();
        layout.filter(|_| aligned && some).map(|layout| Self {
            name,
            version: u16::from_le_bytes([low, high]),
            layout,
            alignment,
            regions,
        })
    }

    /// As a file has it.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let [low, high] = self.version.to_le_bytes();
        let rest = [low, high, self.layout as u8, self.alignment, self.regions];
        let all = self.name.0.iter().chain(&rest);
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Whether a step of this kernel may be its: one that only reads and writes, every byte of what it writes, and that is for cores of its layout.
    pub fn takes(&self, kernel: KernelId) -> bool {
        let layout = |size| Backend::order(self.layout, size).any(|backend| backend == kernel.backend());
        writes_all(kernel) && (layout(false) || layout(true))
    }
}

/// Kernels that can be handed over. Others keep state, move elements to places with gaps, or write as many as their data say.
fn writes_all(kernel: KernelId) -> bool {
    // Beyond those of the scalar backend all are convolutions, layers, poolings and sums.
    kernel.backend() != Backend::Scalar
        || matches!(
            kernel,
            KernelId::Conv2dF32
                | KernelId::DepthwiseF32
                | KernelId::LinearF32
                | KernelId::MaxPoolF32
                | KernelId::AvgPoolF32
                | KernelId::BinaryF32
                | KernelId::UnaryF32
                | KernelId::SoftmaxF32
                | KernelId::Conv2dS8
                | KernelId::DepthwiseS8
                | KernelId::Conv2dS16
                | KernelId::MaxPoolInt
                | KernelId::AvgPoolInt
                | KernelId::BinaryInt
                | KernelId::SoftmaxInt
                | KernelId::SoftmaxS8
                | KernelId::MatMulInt
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_letters_and_no_others() {
        for good in ["npu", "a", "second-m33", "0123456789abcdef"] {
            assert_eq!(Name::new(good).map(|name| name.as_str() == good), Some(true), "{good}");
        }
        for bad in ["", "0123456789abcdefg", "NPU", "n p", "n\0u", "ü"] {
            assert_eq!(Name::new(bad), None, "{bad}");
        }
    }

    #[test]
    fn declarations_are_read_as_they_are_written_and_nothing_else_is() {
        let good = Declaration {
            name: Name::new("npu").expect("a name"),
            version: 0x1234,
            layout: Target::CortexM33,
            alignment: 8,
            regions: 5,
        };
        let bytes = good.to_bytes();
        assert_eq!(Declaration::of(&bytes), Some(good));
        assert_eq!(Declaration::of(&bytes[..20]), None);
        for (at, value) in [
            (0, 0),
            (0, b'N'),
            (4, b'x'),
            (18, 200),
            (19, 0),
            (19, 3),
            (19, 32),
            (20, 0),
            (20, 16),
        ] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert_eq!(Declaration::of(&bytes), None, "{at}: {value}");
        }
        let takes = |kernel| good.takes(kernel);
        assert!(takes(KernelId::DspConv2dS8) && takes(KernelId::IntAddS8) && takes(KernelId::MaxPoolInt));
        assert!(!takes(KernelId::MveConv2dS8) && !takes(KernelId::CopyBytes) && !takes(KernelId::SvdfS8));
    }
}
