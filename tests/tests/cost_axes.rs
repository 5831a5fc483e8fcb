//! Instructions of steps against `Model::cost`, where every axis of every operator is scaled alone, on a board of each family.

use arenite::KernelId;
use arenite_host::board::{Board, ready};
use arenite_tests::skip;
use arenite_xtask::most::scale::{Base, Count, Origin, bases, count};

/// A board of each family.
const FAMILIES: [&str; 7] = [
    "mps2-an385:thumbv6m",
    "mps2-an385",
    "mps2-an386",
    "mps3-an547",
    "riscv32-virt",
    "riscv64-virt:v128",
    "aarch64-virt",
];

#[test]
#[ignore = "long: every axis of every kernel on seven boards"]
fn survey() {
    let only = std::env::var("AXES_BOARD").ok();
    let kernels = std::env::var("AXES_KERNELS").unwrap_or_default();
    let each: usize = std::env::var("AXES_BASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    for name in FAMILIES.into_iter().filter(|name| only.as_deref().is_none_or(|only| only == *name)) {
        let board = Board::find(name).expect("a board");
        if let Err(reason) = ready(board) {
            skip("survey", &reason.to_string());
            continue;
        }
        for &kernel in KernelId::ALL.iter().filter(|&&kernel| board.has(kernel)) {
            if !kernels.is_empty() && !kernels.split(',').any(|name| name == kernel.name()) {
                continue;
            }
            let bases = bases(kernel, each);
            if bases.is_empty() {
                println!("{name} {} NO BASES", kernel.name());
            }
            let origins: Vec<Origin> = bases.iter().flat_map(|base: &Base| std::iter::once(base.origin).chain(base.axes.iter().flat_map(|axis| axis.scaled))).collect();
            let counts = match count(board, &origins, 1) {
                Ok(counts) => counts,
                Err(error) => { println!("{name} {} ERROR {error}", kernel.name()); continue }
            };
            let mut counts = counts.into_iter();
            for base in &bases {
                let plain: Count = counts.next().unwrap();
                println!("{name} {} {} base {:.2} cost {}", kernel.name(), base.origin.seed, plain.quotient(), plain.cost);
                for axis in &base.axes {
                    let [four, sixteen] = [0; 2].map(|_| counts.next().unwrap());
                    println!("{name} {} {} {} {:.2} {:.2} {:.2} growth {:.2}", kernel.name(), base.origin.seed, axis.name, plain.quotient(), four.quotient(), sixteen.quotient(),
                        four.quotient().max(sixteen.quotient()) / plain.quotient());
                }
            }
        }
    }
}
