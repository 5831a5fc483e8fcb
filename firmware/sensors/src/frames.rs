//! Frames that overlap.

/// Makes frames of `FRAME` samples, one every `HOP`, of blocks of `BLOCK`; both are multiples of a block, which the compiler checks.
///
/// ```compile_fail,E0080
/// let frames = arenite_sensors::Frames::<480, 320, 128>::new();
/// ```
#[derive(Debug, Clone)]
pub struct Frames<const FRAME: usize, const HOP: usize, const BLOCK: usize> {
    frame: [i16; FRAME],
    filled: usize,
}

impl<const FRAME: usize, const HOP: usize, const BLOCK: usize> Frames<FRAME, HOP, BLOCK> {
    /// Without a sample.
    pub const fn new() -> Self {
        const {
            assert!(
                HOP > 0 && HOP <= FRAME && FRAME.is_multiple_of(BLOCK) && HOP.is_multiple_of(BLOCK),
                "a frame and a hop are whole blocks, and a hop is no longer than a frame"
            );
        }
        Self {
            frame: [0; FRAME],
            filled: 0,
        }
    }

    /// Takes a block; the frame that it completes.
    pub fn push(&mut self, block: &[i16; BLOCK]) -> Option<&[i16; FRAME]> {
        if self.filled == FRAME {
            self.frame.rotate_left(HOP);
            self.filled = FRAME - HOP;
        }
        let free = self.frame.iter_mut().skip(self.filled);
        free.zip(block).for_each(|(to, from)| *to = *from);
        self.filled += BLOCK;
        (self.filled == FRAME).then_some(&self.frame)
    }

    /// Forgets the samples so far, as behind a gap.
    pub fn restart(&mut self) {
        self.filled = 0;
    }
}

impl<const FRAME: usize, const HOP: usize, const BLOCK: usize> Default for Frames<FRAME, HOP, BLOCK> {
    fn default() -> Self {
        Self::new()
    }
}
