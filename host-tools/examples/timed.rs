//! Runs a model on this machine, once for each line of stdin, and prints the nanoseconds of each run: for `tests/oracle/host_speed.py`, which runs others
//! in between.
//!
//! `cargo run --release -p arenite-host --example timed -- MODEL`

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use arenite::Session;
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::{Error, Result};

fn main() {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: timed MODEL");
        std::process::exit(2);
    };
    if let Err(error) = answer(Path::new(&path)) {
        eprintln!("timed: {error}");
        std::process::exit(1);
    }
}

fn answer(path: &Path) -> Result<()> {
    let file = ModelFile::open(path)?;
    let model = file.load()?;
    let [mut a, mut b, mut c, mut d] = std::array::from_fn(|region| Aligned::new(model.arena_bytes(region)));
    let mut state = Aligned::new(model.state_bytes());
    let wrong = |e: arenite::RunError| Error::input(e.to_string());
    let arenas = [a.bytes(), b.bytes(), c.bytes(), d.bytes()];
    let mut session = Session::new(model, arenas, state.bytes()).map_err(|e| Error::internal(e.to_string()))?;
    // As `arenite run` has it.
    session.allow_fused();
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        line.map_err(|e| Error::io(Path::new("stdin"), "read", &e))?;
        for port in 0..usize::from(model.header().inputs) {
            session.input_mut(port).map_err(wrong)?.fill(0);
        }
        let begin = Instant::now();
        session.run().map_err(wrong)?;
        let took = begin.elapsed().as_nanos();
        writeln!(stdout, "{took}")
            .and_then(|()| stdout.flush())
            .map_err(|e| Error::io(Path::new("stdout"), "write", &e))?;
    }
    Ok(())
}
