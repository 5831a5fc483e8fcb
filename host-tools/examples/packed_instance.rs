//! Buffers packed by construction, as a CSV file for `arenite plan`: no plan is lower than the capacity, and one of that height exists.
//!
//! `cargo run --release -p arenite-host --example packed_instance -- KIND COUNT LIVE SEED > FILE.csv`
//!
//! KIND is `lanes` (LIVE lanes of random heights, cut into buffers at random steps; LIVE buffers are alive at any step) or `perfect` (a rectangle of LIVE
//! times 3 bytes and LIVE steps cut into COUNT pieces, a quarter of the cuts pinwheels). The capacity is printed to standard error.

use std::io::Write;

use arenite_host::memory::plan::{csv, generate};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (Some(kind), Some(count), Some(live), Some(seed)) =
        (arguments.first().map(String::as_str), number(1), number(2), number(3))
    else {
        return Err(std::io::Error::other("expected KIND COUNT LIVE SEED"));
    };
    let (capacity, problem) = match kind {
        "lanes" if live > 1 => {
            let (capacity, steps) = (1 << 30, 16 * count / live + 16);
            let pieces = (count / live).max(1) as usize;
            (capacity, generate::lanes(live as usize, pieces, capacity, steps, seed))
        }
        "perfect" if live > 1 => {
            let (capacity, steps) = (3 * live, live);
            (capacity, generate::perfect(count as usize, capacity, steps, seed))
        }
        _ => {
            return Err(std::io::Error::other(
                "expected KIND lanes or perfect, and LIVE above 1",
            ));
        }
    };
    eprintln!("{} buffers, capacity {capacity}", problem.buffers.len());
    let rows = csv::write(&problem, &vec![0; problem.buffers.len()]);
    // The planner reads no offsets.
    let mut rows = rows.lines().filter_map(|line| Some(line.rsplit_once(',')?.0));
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    rows.try_for_each(|row| writeln!(out, "{row}"))?;
    out.flush()
}
