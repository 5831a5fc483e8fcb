//! The linker layout of a board, from its row.

use std::fmt::Write;

use super::{AddressRange, Board, KIB, MIB};

impl Board {
    /// The linker layout that the firmware is linked with.
    pub fn memory_x(&self) -> String {
        let mut text = format!(
            "/* {}: from the table in host-tools/board/src/board/table.rs. */\nMEMORY\n{{\n",
            self.feature
        );
        let mut region = |name: &str, at: AddressRange| {
            writeln!(
                text,
                "  {name} : ORIGIN = {:#010x}, LENGTH = {}",
                at.start,
                size(at.size)
            )
            .expect("writes to memory");
        };
        if !self.runs_from_ram() {
            region("FLASH", self.flash);
        }
        region("RAM", self.ram);
        let code = if self.runs_from_ram() { "RAM" } else { "FLASH" };
        let alias = if self.triple.starts_with("thumb") {
            String::new()
        } else {
            format!("REGION_ALIAS(\"CODE\", {code});\n")
        };
        let extra = self.extra.unwrap_or(AddressRange { start: 0, size: 0 });
        write!(
            text,
            "}}\n{alias}\n_stack_size = {};\n_extra_start = {:#x};\n_extra_end = {:#x};\n",
            size(self.stack),
            extra.start,
            extra.end(),
        )
        .expect("writes to memory");
        text
    }
}

/// A size as linker scripts spell it.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(MIB) => format!("{}M", bytes / MIB),
        _ if bytes.is_multiple_of(KIB) => format!("{}K", bytes / KIB),
        _ => bytes.to_string(),
    }
}
