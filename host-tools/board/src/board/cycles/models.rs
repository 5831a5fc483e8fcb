//! Tables of LLVM's scheduling models, as `llvm-mca` prints them: latencies and units of the Cortex-M7's and the M55's instructions.
//!
//! Made by Debian's llvm-19 (19.1.7), in the folder `tables`, from `ARMScheduleM7.td` and `ARMScheduleM55.td`:
//!
//! ```text
//! llvm-mca-19 -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m7 -mattr=+fp64 -instruction-tables cortex-m7.s > cortex-m7.txt
//! llvm-mca-19 -mtriple=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55 -instruction-tables cortex-m55.s > cortex-m55.txt
//! ```

use std::collections::HashMap;
use std::sync::OnceLock;

use super::instruction::Instruction;
use super::thumb;
use crate::board::table::Core;
use crate::board::trace::Executed;

/// Entry of the model's table for an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Row {
    /// Cycles until its result can be read, from when its earliest operand is read: llvm-mca adds what that is ahead of the others.
    pub(super) latency: u64,
    /// The units that it takes: any one of a set (a bit each), for so many cycles.
    pub(super) units: Vec<(u32, u64)>,
}

/// The rows of a core.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Model {
    rows: HashMap<(String, bool, bool), Row>,
}

impl Model {
    /// The table of `core`, where there is one.
    pub(super) fn of(core: Core) -> Option<&'static Self> {
        static M7: OnceLock<Model> = OnceLock::new();
        static M55: OnceLock<Model> = OnceLock::new();
        let read = |samples, table| Self::read(samples, table).unwrap_or(Self { rows: HashMap::new() });
        match core {
            Core::M7 => {
                Some(M7.get_or_init(|| read(include_str!("tables/cortex-m7.s"), include_str!("tables/cortex-m7.txt"))))
            }
            Core::M55 => Some(M55.get_or_init(|| {
                read(
                    include_str!("tables/cortex-m55.s"),
                    include_str!("tables/cortex-m55.txt"),
                )
            })),
            _ => None,
        }
    }

    /// The row of an instruction; of one without, that of the same name with other operands.
    pub(super) fn row(&self, instruction: &Instruction) -> Option<&Row> {
        let find = |shifted| self.rows.get(&(instruction.name.clone(), shifted, instruction.double));
        find(instruction.shifted).or_else(|| find(!instruction.shifted))
    }

    /// Reads what `llvm-mca -instruction-tables` printed of `samples`, an instruction a line; `None` where the two do not go together.
    fn read(samples: &str, table: &str) -> Option<Self> {
        let keys = samples
            .lines()
            .filter(|line| !line.starts_with('@') && !line.is_empty())
            .map(key);
        let behind = |head: &str| {
            let (_, rest) = table.split_once(head)?;
            let (_, rows) = rest.split_once("Instructions:\n")?;
            Some(rows.lines().take_while(|line| !line.trim().is_empty()))
        };
        let (mut infos, mut pressures) = (
            behind("Instruction Info:")?,
            behind("Resource pressure by instruction:")?,
        );
        let units = table
            .split_once("Resources:\n")?
            .1
            .lines()
            .take_while(|line| !line.trim().is_empty())
            .count();
        let mut rows = HashMap::new();
        for key in keys {
            // Micro-operations, latency.
            let latency = infos.next()?.split_whitespace().nth(1)?.parse().ok()?;
            let pressure = pressures.next()?;
            let cells: Vec<Option<f64>> = pressure
                .split_whitespace()
                .take(units)
                .map(|cell| match cell {
                    "-" => Some(0.0),
                    _ => cell.parse().ok(),
                })
                .collect();
            rows.insert(
                key,
                Row {
                    latency,
                    units: used(&cells.into_iter().collect::<Option<Vec<_>>>()?),
                },
            );
        }
        (infos.next().is_none() && pressures.next().is_none()).then_some(Self { rows })
    }
}

/// Name, whether an operand is shifted, and whether it is of 64 bits, of a sample such as `add.w r0, r1, r2` or `vldrb.u8 q0, [r0], #16 @ vldr`.
fn key(line: &str) -> (String, bool, bool) {
    if let Some((_, name)) = line.split_once(" @ ") {
        return (name.trim().to_owned(), false, false);
    }
    let executed = Executed {
        size: 4,
        count: 0,
        split: 0,
        crossing: 0,
        encoding: 0,
        text: line.to_owned(),
    };
    let instruction = thumb::decode(0, &executed, false);
    (instruction.name, instruction.shifted, instruction.double)
}

/// Parts of a cycle on several units are one of them.
fn used(cells: &[f64]) -> Vec<(u32, u64)> {
    let mut units = Vec::new();
    let shared = |cell: f64| cell > 0.0 && cell < 1.0;
    let any = cells.iter().enumerate().filter(|(_, cell)| shared(**cell));
    let (mut set, mut cycles) = (0, 0.0);
    for (unit, cell) in any {
        set |= 1 << unit;
        cycles += cell;
    }
    if set != 0 {
        // Where more than one of them is taken for a cycle in the sum, as by halves of three pairs, it is one after the other.
        units.push((set, (cycles as u64).max(1)));
    }
    let whole = cells.iter().enumerate().filter(|(_, cell)| **cell >= 1.0);
    units.extend(whole.map(|(unit, cell)| (1 << unit, *cell as u64)));
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read() {
        for (core, rows) in [(Core::M7, 190), (Core::M55, 220)] {
            let model = Model::of(core).expect("has a table");
            assert!(model.rows.len() > rows, "{core:?}: {}", model.rows.len());
        }
        let row = |core, name: &str, shifted, double| {
            let rows = &Model::of(core).expect("has a table").rows;
            rows[&(name.to_owned(), shifted, double)].clone()
        };
        assert_eq!(row(Core::M7, "smlad", false, false).latency, 2);
        assert_eq!(row(Core::M7, "ldr", false, false).latency, 2);
        assert_eq!(row(Core::M7, "ldrb", true, false).latency, 3);
        // Either of two arithmetic units.
        assert_eq!(row(Core::M7, "add", false, false).units[0].0.count_ones(), 2);
        assert_eq!(
            row(Core::M55, "vldr", false, false),
            Row {
                latency: 1,
                units: vec![(0b10, 2)]
            }
        );
        assert_eq!(
            row(Core::M55, "vmlav", false, false),
            Row {
                latency: 2,
                units: vec![(0b1000, 2)]
            }
        );
        assert_eq!(row(Core::M55, "add", true, false).latency, 2);
    }

    #[test]
    fn what_does_not_go_together_is_no_table() {
        let samples = include_str!("tables/cortex-m7.s");
        let table = include_str!("tables/cortex-m7.txt");
        assert!(Model::read(samples, table).is_some());
        assert_eq!(Model::read(&format!("{samples}nop\n"), table), None);
        assert_eq!(
            Model::read(samples.trim_end().rsplit_once('\n').expect("lines").0, table),
            None
        );
        assert_eq!(Model::read(samples, "nothing"), None);
    }
}
