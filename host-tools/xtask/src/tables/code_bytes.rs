//! Bytes of each kernel on three cores.

use arenite::KernelId;
use arenite_host::worst::code_bytes::{Code, Kernel, NONE, TABLE};

use super::table::{Table, grouped};

/// The boards with these cores.
const BOARDS: [(&str, &str); 3] = [
    ("mps2-an386", "Cortex-M4F"),
    ("mps2-an385:thumbv6m", "Cortex-M0+"),
    ("riscv32-virt", "RV32IMAC"),
];

/// A row for each kernel that one of the boards has: all that a program with it alone links of it, and of kernels in pieces what no piece takes alone.
pub(super) fn code_bytes() -> String {
    let mut table = Table::new(&["kernel", BOARDS[0].1, BOARDS[1].1, BOARDS[2].1], 1);
    let codes = BOARDS.map(|(board, _)| TABLE.0.get(board));
    for kernel in KernelId::ALL {
        let cells = codes.map(|code| {
            let code = code?;
            Some(cell(code, code.kernels.get(kernel.name())?))
        });
        if cells.iter().any(Option::is_some) {
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            table.row([format!("`{}`", kernel.name())].into_iter().chain(cells));
        }
    }
    table.text
}

fn cell(code: &Code, kernel: &Kernel) -> String {
    let all = grouped(code.bytes(&kernel.whole));
    match kernel.pieces.get(&NONE) {
        Some(least) => format!("{} to {all}", grouped(code.bytes(least))),
        None => all,
    }
}
