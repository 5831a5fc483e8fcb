//! The choice of a token among logits, in integers: the same on every core.

/// The logits of a run.
#[derive(Debug, Clone, Copy)]
pub enum Logits<'l> {
    /// f32.
    F32(&'l [f32]),
    /// int8 of this scale; the zero point moves all alike.
    I8(&'l [i8], f32),
}

/// 1 in the fixed point of probabilities, temperatures and logits.
const ONE: u32 = 1 << 16;

/// The weight of the likeliest token, in the fixed point of weights.
const WHOLE: u64 = 1 << 30;

/// 2^16 times the logarithm of e to the base 2.
const LOG2_E: u64 = 94_548;

/// 2^31 times 2^-(2^-k), for k from 1: the factors of a fraction's bits.
const ROOTS: [u64; 16] = [
    1_518_500_249,
    1_805_811_301,
    1_969_251_187,
    2_056_437_386,
    2_101_467_501,
    2_124_350_982,
    2_135_885_998,
    2_141_676_972,
    2_144_578_345,
    2_146_030_504,
    2_146_756_953,
    2_147_120_269,
    2_147_301_951,
    2_147_392_797,
    2_147_438_222,
    2_147_460_935,
];

/// Chooses tokens: the likeliest one, or one by chance with a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sampler {
    /// 2^16 over the temperature; `None` takes the likeliest token.
    inverse: Option<u64>,
    top_k: u32,
    /// In [`ONE`]ths.
    top_p: u32,
    state: u64,
}

/// The likeliest tokens: all whose key is above a limit, and the first of those whose key is the limit.
#[derive(Debug, Clone, Copy)]
struct Likeliest {
    limit: i64,
    at_limit: u64,
}

impl Likeliest {
    const ALL: Self = Self {
        limit: i64::MIN,
        at_limit: 0,
    };
}

impl Sampler {
    /// Takes the likeliest token, the first of equal ones.
    pub fn greedy() -> Self {
        Self {
            inverse: None,
            top_k: 0,
            top_p: ONE,
            state: 0,
        }
    }

    /// Takes a token by chance: logits are divided by `temperature` first, 0 and what is no number above it being [`Sampler::greedy`].
    pub fn seeded(temperature: f32, seed: u64) -> Self {
        // Saturates, and is 0 for what is no number. From 2^-16 to 2^16.
        let temperature = (temperature * ONE as f32) as u32;
        Self {
            inverse: u64::from(ONE).pow(2).checked_div(temperature.into()),
            state: seed,
            ..Self::greedy()
        }
    }

    /// Chooses among the `count` likeliest tokens alone; 0: among all.
    #[must_use]
    pub fn top_k(self, count: u32) -> Self {
        Self { top_k: count, ..self }
    }

    /// Chooses among the likeliest tokens alone that together have this share of the probability, behind [`Sampler::top_k`]; from 1 on: among all.
    #[must_use]
    pub fn top_p(self, share: f32) -> Self {
        // Saturates.
        let top_p = ((share * ONE as f32) as u32).min(ONE);
        Self { top_p, ..self }
    }

    /// A token; `None` where there are no logits, or one is no number.
    pub fn pick(&mut self, logits: Logits<'_>) -> Option<u32> {
        let (mut best, mut largest) = (None, i64::MIN);
        for index in 0..logits.len() {
            let key = logits.key(index)?;
            if key > largest {
                (best, largest) = (Some(index as u32), key);
            }
        }
        let likeliest = best?;
        let Some(inverse) = self.inverse else {
            return Some(likeliest);
        };
        let weights = Weights {
            logits,
            largest: logits.fixed(likeliest as usize)?,
            inverse,
        };
        let mut set = Likeliest::ALL;
        if self.top_k > 0 && (self.top_k as usize) < logits.len() {
            set = weights.reaching(set, self.top_k.into(), |_| 1);
        }
        let mut all = weights.sum(set);
        if self.top_p < ONE {
            // At most 2^46 times 2^16.
            let share = (all.saturating_mul(self.top_p.into()) >> 16).max(1);
            set = weights.reaching(set, share, |index| weights.of(index));
            all = weights.sum(set);
        }
        let mut left = self.next().checked_rem(all)?;
        let mut chosen = likeliest;
        weights.each(set, &mut |index, _| {
            let weight = weights.of(index);
            if left < weight {
                chosen = index as u32;
                return false;
            }
            left -= weight;
            true
        });
        Some(chosen)
    }

    /// The next number of splitmix64 (Steele, Lea and Flood, 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Logits<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Logits::F32(values) => values.len(),
            Logits::I8(values, _) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A number in the order of the logits, exact; `None` for what is no number.
    fn key(&self, index: usize) -> Option<i64> {
        match self {
            Logits::F32(values) => {
                let value = values.get(index)?;
                let bits = value.to_bits();
                let size = i64::from(bits & (u32::MAX >> 1));
                // Both zeros are 0.
                (!value.is_nan()).then_some(if bits == size as u32 { size } else { -size })
            }
            Logits::I8(values, _) => values.get(index).copied().map(i64::from),
        }
    }

    /// The logit in fixed point, saturated.
    fn fixed(&self, index: usize) -> Option<i32> {
        let value = match self {
            Logits::F32(values) => *values.get(index)?,
            Logits::I8(values, scale) => f32::from(*values.get(index)?) * scale,
        };
        Some((value * ONE as f32) as i32)
    }
}

/// Logits as weights of a choice.
struct Weights<'l> {
    logits: Logits<'l>,
    largest: i32,
    inverse: u64,
}

impl Weights<'_> {
    /// [`WHOLE`] times e^((logit - largest) / temperature), rounded down.
    fn of(&self, index: usize) -> u64 {
        let below = self
            .logits
            .fixed(index)
            .map_or(u32::MAX, |value| self.largest.abs_diff(value));
        // 32 bits times at most 32: what is beyond the range is nothing.
        let exponent = (u64::from(below).saturating_mul(self.inverse) >> 16).saturating_mul(LOG2_E) >> 16;
        let whole = exponent >> 16;
        if whole >= 31 {
            return 0;
        }
        let mut weight = WHOLE;
        for (bit, root) in ROOTS.iter().enumerate() {
            if exponent & (u64::from(ONE >> 1) >> bit) != 0 {
                weight = (weight * root) >> 31;
            }
        }
        weight >> whole
    }

    /// Calls `visit` with each token of a set in order, and its key, until it says false.
    fn each(&self, set: Likeliest, visit: &mut dyn FnMut(usize, i64) -> bool) {
        let mut left = set.at_limit;
        for index in 0..self.logits.len() {
            let key = self.logits.key(index).unwrap_or(i64::MIN);
            let within = key > set.limit || (key == set.limit && left > 0);
            left = left.saturating_sub(u64::from(key == set.limit));
            if within && !visit(index, key) {
                return;
            }
        }
    }

    /// The sum of a set's weights.
    fn sum(&self, set: Likeliest) -> u64 {
        let mut sum = 0_u64;
        self.each(set, &mut |index, _| {
            sum = sum.saturating_add(self.of(index));
            true
        });
        sum
    }

    /// The fewest of a set's likeliest tokens whose measures reach `wanted` together.
    fn reaching(&self, set: Likeliest, wanted: u64, measure: impl Fn(usize) -> u64) -> Likeliest {
        let reached = |limit: i64| {
            let mut sum = 0_u64;
            self.each(set, &mut |index, key| {
                sum = sum.saturating_add(if key >= limit { measure(index) } else { 0 });
                true
            });
            sum
        };
        // Keys have 33 bits. The largest limit that reaches it.
        let (mut low, mut high) = (-(1_i64 << 32), 1_i64 << 32);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            if reached(middle) >= wanted {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let mut missing = wanted.saturating_sub(reached(low.saturating_add(1)));
        let mut at_limit = 0;
        self.each(set, &mut |index, key| {
            if key == low && missing > 0 {
                missing = missing.saturating_sub(measure(index));
                at_limit += 1;
            }
            true
        });
        Likeliest { limit: low, at_limit }
    }
}
