//! Random numbers.

/// A fixed sequence (xorshift), so that a failure repeats.
#[derive(Debug, Clone)]
pub(super) struct Random(u32);

impl Random {
    pub(super) fn new(seed: u32) -> Self {
        // Neighbouring seeds start far apart; zero is the one state that stays.
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9) | 1)
    }

    pub(super) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// `0..n`; multiplied and not divided, for cores without a division.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(n)) >> 32) as u32
    }

    /// `from..=to`.
    pub(super) fn between(&mut self, from: u16, to: u16) -> u16 {
        from + self.below(u32::from(to - from) + 1) as u16
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One of four.
    pub(super) fn one_of<T: Copy>(&mut self, choices: [T; 4]) -> T {
        let [a, b, c, d] = choices;
        match self.below(4) {
            0 => a,
            1 => b,
            2 => c,
            _ => d,
        }
    }

    pub(super) fn byte(&mut self) -> i8 {
        (self.next() >> 24) as i8
    }

    /// The last number again, for choices that depend on it.
    pub(super) fn last(&self) -> u32 {
        self.0
    }

    /// Numbers of any size, each as often as its neighbours: some bits of a random one.
    pub(super) fn scaled(&mut self) -> u32 {
        let word = self.next();
        word >> self.below(32)
    }

    /// One of a list; the first where it is empty is none.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let at = self.below(choices.len() as u32) as usize;
        choices.get(at).copied()
    }

    /// -1 to 1.
    pub(super) fn float(&mut self) -> f32 {
        (self.next() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}
