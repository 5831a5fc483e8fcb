//! Fates of a tensor's channels, and the traced tensor from the one in memory.

use arenite::DType;
use serde::{Deserialize, Serialize};

/// Fate of a channel of a traced tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// It is in memory.
    Kept,
    /// One is in memory in its place, but nobody reads it, and it holds something else.
    Filler,
    /// It is this stored value for every input, and not in memory.
    Constant(i32),
    /// It depends on the input, nobody reads it, and it is not in memory.
    Unread,
}

/// The channels of a traced tensor, along its innermost axis.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Channels {
    /// So many neighbours, and what became of each of them.
    runs: Vec<(u32, Channel)>,
}

/// A traced tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Its bytes; zeros where a channel is not known.
    pub bytes: Vec<u8>,
    /// Of each channel, whether its elements are the traced network's; one for all where all channels are in memory.
    pub known: Vec<bool>,
}

impl Restored {
    /// Whether element `index` is the traced network's.
    pub fn is_known(&self, index: usize) -> bool {
        self.known
            .get(index % self.known.len().max(1))
            .is_some_and(|&known| known)
    }
}

/// More than any tensor of a device has; forged numbers of channels restore nothing.
const MOST_BYTES: usize = 64 << 20;

impl Channels {
    /// Of these, in order.
    pub fn new(each: impl Iterator<Item = Channel>) -> Self {
        let mut runs: Vec<(u32, Channel)> = Vec::new();
        for channel in each {
            match runs.last_mut() {
                Some((count, last)) if *last == channel => *count += 1,
                _ => runs.push((1, channel)),
            }
        }
        Self { runs }
    }

    /// Each, in order.
    pub fn each(&self) -> impl Iterator<Item = Channel> {
        let run = |&(count, channel): &(u32, Channel)| std::iter::repeat_n(channel, count as usize);
        self.runs.iter().flat_map(run)
    }

    /// How many the traced tensor has.
    pub fn traced(&self) -> usize {
        self.runs.iter().map(|(count, _)| *count as usize).sum()
    }

    /// How many are in memory.
    pub fn in_memory(&self) -> usize {
        let runs = self.runs.iter().filter(|(_, channel)| channel.in_memory());
        runs.map(|(count, _)| *count as usize).sum()
    }

    /// The traced tensor from what is in memory: constants put back. `None` where these channels are not those of such a tensor.
    pub fn restore(&self, dtype: DType, memory: &[u8]) -> Option<Restored> {
        let (element, kept) = (dtype.bytes(), self.in_memory());
        let row = kept
            .checked_mul(element)
            .filter(|&row| row > 0 && memory.len().is_multiple_of(row))?;
        let bytes = self.traced().checked_mul(element)?.checked_mul(memory.len() / row)?;
        if bytes > MOST_BYTES {
            return None;
        }
        let mut restored = Vec::with_capacity(bytes);
        for row in memory.chunks_exact(row) {
            let mut held = row.chunks_exact(element);
            for channel in self.each() {
                match channel {
                    Channel::Kept | Channel::Filler => restored.extend_from_slice(held.next()?),
                    Channel::Constant(value) => restored.extend_from_slice(value.to_le_bytes().get(..element)?),
                    Channel::Unread => restored.resize(restored.len() + element, 0),
                }
            }
        }
        let known = |channel: Channel| matches!(channel, Channel::Kept | Channel::Constant(_));
        Some(Restored {
            bytes: restored,
            known: self.each().map(known).collect(),
        })
    }
}

impl Channel {
    /// Whether an element of it is in memory.
    pub fn in_memory(self) -> bool {
        matches!(self, Self::Kept | Self::Filler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> Channels {
        use Channel::{Constant, Filler, Kept, Unread};
        Channels::new([Kept, Constant(-128), Constant(-128), Unread, Kept, Filler, Constant(7)].into_iter())
    }

    #[test]
    fn constants_are_put_back() {
        let channels = mixed();
        assert_eq!((channels.traced(), channels.in_memory()), (7, 3));
        let restored = channels.restore(DType::I8, &[1, 2, 3, 4, 5, 6]).expect("two rows");
        let rows = [[1, 128, 128, 0, 2, 3, 7], [4, 128, 128, 0, 5, 6, 7]];
        assert_eq!(restored.bytes, rows.concat());
        assert_eq!(restored.known, [true, true, true, false, true, false, true]);
    }

    #[test]
    fn channels_of_another_tensor_restore_nothing() {
        assert_eq!(mixed().restore(DType::I8, &[1, 2, 3, 4]), None);
        let none = Channels::new([Channel::Constant(1)].into_iter());
        assert_eq!(none.restore(DType::I8, &[]), None);
        let forged = Channels {
            runs: vec![(1, Channel::Kept), (u32::MAX, Channel::Unread)],
        };
        assert_eq!(forged.restore(DType::I8, &[1]), None);
        let wide = Channels {
            runs: vec![(1, Channel::Kept), (1, Channel::Constant(1))],
        };
        assert_eq!(wide.restore(DType::I64, &[1; 8]), None);
    }
}
