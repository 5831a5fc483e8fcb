//! Instructions and estimated cycles of a program that was built elsewhere, for comparing the estimate with published measurements.
//!
//! `cargo run -p arenite-host --example estimate -- ELF BOARD [CHIP]`
//!
//! The program has two functions, `arenite_count_begin` and `arenite_count_end`, that do nothing, and calls them around what is to be counted. The first three
//! times it counts nothing between them: what counting itself takes is subtracted. It ends by semihosting with status 0. `tests/reference/cmsis_nn` has one.

use std::path::Path;
use std::time::Duration;

use arenite_host::board::{Board, Firmware, Flash, trace_program};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(elf), Some(board)) = (arguments.first(), arguments.get(1).and_then(|name| Board::find(name))) else {
        eprintln!("usage: estimate ELF BOARD [CHIP]");
        std::process::exit(2);
    };
    let flash = arguments.get(2).and_then(|name| Flash::find(name));
    let traced = Firmware::open(board, Path::new(elf))
        .and_then(|firmware| trace_program(&firmware, flash, Duration::from_secs(600)));
    match traced {
        Ok(trace) => {
            println!("| interval | instructions | cycles | with flash |\n| --: | --: | --: | --: |");
            for (number, interval) in trace.runs.iter().enumerate() {
                let cycles = interval.cycles(board.timings).map_or(0, |estimate| estimate.cycles);
                let stalls = flash.and_then(|flash| flash.stalls(interval, cycles));
                let with = stalls.map_or("-".to_owned(), |stalls| (cycles + stalls).to_string());
                println!("| {number} | {} | {cycles} | {with} |", interval.instructions);
            }
        }
        Err(error) => {
            eprintln!("estimate: {error}");
            std::process::exit(1);
        }
    }
}
