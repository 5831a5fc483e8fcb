//! Reads of a slow flash behind caches: which instruction fetches and loads the flash itself has to serve.
//!
//! The flash is read in units of a few bytes. The unit that was read last stays at hand, for instructions and for data; caches hold more of them, in
//! lines of which each unit is filled when it is first missed, and lose the line that was used longest ago. Tests: `host-tools/board/src/board/cycles`.

/// A cache.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    line_bytes: u64,
    most: usize,
    lines: Vec<Line>,
    used: u64,
}

#[derive(Debug, Clone)]
struct Line {
    number: u64,
    /// A bit for each unit that it has.
    units: u64,
    used: u64,
}

/// A flash with its caches.
#[derive(Debug, Clone)]
pub(crate) struct Flash {
    ranges: Vec<(u64, u64)>,
    unit: u64,
    code: Cache,
    data: Cache,
    last_code: Option<u64>,
    last_data: Option<u64>,
    /// Reads of the flash.
    pub(crate) reads: Reads,
}

/// How often the flash was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reads {
    /// For an instruction that does not lie behind the one before it.
    pub(crate) jumps: u64,
    /// For the unit behind the last one.
    pub(crate) sequential: u64,
    /// For data.
    pub(crate) data: u64,
}

impl Cache {
    /// A cache of so many lines; none where `lines` is 0.
    pub(crate) fn new(lines: usize, line_bytes: u64) -> Self {
        Self {
            line_bytes,
            most: lines,
            lines: Vec::new(),
            used: 0,
        }
    }

    /// Whether it has the unit at `address`; from now on it does.
    fn has(&mut self, address: u64, unit: u64) -> bool {
        let (number, bit) = (address / self.line_bytes, 1 << (address % self.line_bytes / unit));
        self.used += 1;
        if let Some(line) = self.lines.iter_mut().find(|line| line.number == number) {
            line.used = self.used;
            let has = line.units & bit != 0;
            line.units |= bit;
            return has;
        }
        if self.lines.len() >= self.most {
            let oldest = (0..self.lines.len()).min_by_key(|&at| self.lines[at].used);
            oldest.map(|at| self.lines.swap_remove(at));
        }
        if self.most > 0 {
            let (units, used) = (bit, self.used);
            self.lines.push(Line { number, units, used });
        }
        false
    }
}

impl Flash {
    /// A flash at these addresses, from the first to before the last, that is read by `unit` bytes.
    pub(crate) fn new(ranges: Vec<(u64, u64)>, unit: u64, code: Cache, data: Cache) -> Self {
        Self {
            ranges,
            unit,
            code,
            data,
            last_code: None,
            last_data: None,
            reads: Reads::default(),
        }
    }

    /// Fetches instructions of so many bytes.
    pub(crate) fn fetch(&mut self, address: u64, bytes: u64) {
        if !self.holds(address) {
            return;
        }
        for number in address / self.unit..=(address + bytes.max(1) - 1) / self.unit {
            if self.last_code == Some(number) {
                continue;
            }
            let sequential = self.last_code.is_some_and(|last| last + 1 == number);
            self.last_code = Some(number);
            if !self.code.has(number * self.unit, self.unit) {
                self.reads.sequential += u64::from(sequential);
                self.reads.jumps += u64::from(!sequential);
            }
        }
    }

    /// Loads so many bytes.
    pub(crate) fn load(&mut self, address: u64, bytes: u64) {
        if !self.holds(address) {
            return;
        }
        for number in address / self.unit..=(address + bytes - 1) / self.unit {
            if self.last_data == Some(number) {
                continue;
            }
            self.last_data = Some(number);
            self.reads.data += u64::from(!self.data.has(number * self.unit, self.unit));
        }
    }

    fn holds(&self, address: u64) -> bool {
        self.ranges.iter().any(|&(start, end)| (start..end).contains(&address))
    }
}

/// Reads a flash from text: `START-END[+START-END]/UNIT/LINESxBYTES/LINESxBYTES`, addresses in hexadecimal, the caches of code and of data.
pub(crate) fn parse(text: &str) -> Option<Flash> {
    let mut parts = text.split('/');
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let range = |text: &str| {
        let (start, end) = text.split_once('-')?;
        Some((hexadecimal(start)?, hexadecimal(end)?))
    };
    let ranges = parts.next()?.split('+').map(range).collect::<Option<_>>()?;
    let unit = parts.next()?.parse().ok().filter(|&unit| unit > 0)?;
    let mut cache = || {
        let (lines, bytes) = parts.next()?.split_once('x')?;
        let bytes: u64 = bytes.parse().ok()?;
        let fits = bytes >= unit && bytes <= 64 * unit;
        fits.then_some(Cache::new(lines.parse().ok()?, bytes))
    };
    let (code, data) = (cache()?, cache()?);
    Some(Flash::new(ranges, unit, code, data))
}
