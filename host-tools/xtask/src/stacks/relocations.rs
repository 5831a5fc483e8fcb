//! References of a linked program's code and data, by its relocations (`--emit-relocs`).

use std::collections::BTreeMap;

use object::elf::{R_ARM_ABS32, R_ARM_THM_MOVT_ABS, R_ARM_THM_MOVW_ABS_NC, SHF_ALLOC};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, SymbolKind};

/// By the address of a reference in what is loaded, the address that it refers to.
///
/// # Errors
/// Where a symbol or a section is missing.
pub fn relocations(file: &object::File<'_>) -> Result<BTreeMap<u64, u64>, object::Error> {
    let mut all = BTreeMap::<u64, u64>::new();
    let loaded = |section: &object::Section<'_, '_>| match section.flags() {
        SectionFlags::Elf { sh_flags } => sh_flags & u64::from(SHF_ALLOC) != 0,
        _ => false,
    };
    for section in file.sections().filter(loaded) {
        let bytes = section.data().unwrap_or_default();
        let at = |place: u64| bytes.get(place.checked_sub(section.address())? as usize..);
        // Lower halves of addresses whose upper ones are still to come, by symbol.
        let mut lower = BTreeMap::new();
        for (place, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(index)?;
            // Linked, an offset counts from the section's start, whichever of several symbols of one section the linker names.
            let from = match (symbol.kind(), symbol.section_index()) {
                (SymbolKind::Section, Some(index)) => file.section_by_index(index)?.address(),
                _ => symbol.address(),
            };
            let mut to = from.wrapping_add_signed(relocation.addend());
            let r_type = match relocation.flags() {
                RelocationFlags::Elf { r_type } if relocation.has_implicit_addend() => Some(r_type),
                _ => None,
            };
            // A whole address is there as it was linked, in a word or in two halves; of others there is that of their symbol.
            match r_type {
                Some(R_ARM_ABS32) => {
                    let word = at(place).and_then(|bytes| bytes.first_chunk());
                    to = word.map_or(to, |&word| u32::from_le_bytes(word).into());
                }
                Some(R_ARM_THM_MOVW_ABS_NC) => {
                    if let Some(half) = at(place).and_then(immediate) {
                        lower.insert(index.0, (place, half));
                    }
                    // Half of an address refers to nothing yet.
                    continue;
                }
                Some(R_ARM_THM_MOVT_ABS) => {
                    if let (Some(upper), Some(&(first, lower))) = (at(place).and_then(immediate), lower.get(&index.0)) {
                        to = u64::from(upper) << 16 | u64::from(lower);
                        all.insert(first, to);
                    }
                }
                _ => {}
            }
            all.insert(place, to);
        }
    }
    Ok(all)
}

/// The immediate of Thumb's MOVW and MOVT: imm4, i, imm3, imm8 (Arm Architecture Reference Manual, T3).
fn immediate(bytes: &[u8]) -> Option<u16> {
    let &[a, b, c, d] = bytes.first_chunk()?;
    let [first, second] = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
    Some((first & 15) << 12 | (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 255)
}

#[cfg(test)]
mod tests {
    use super::immediate;

    /// `movw r0, #0xa5c3` and `movt r1, #0x2000`, as an assembler writes them.
    #[test]
    fn immediates_are_those_of_the_assembler() {
        assert_eq!(immediate(&[0x4A, 0xF2, 0xC3, 0x50]), Some(0xA5C3));
        assert_eq!(immediate(&[0xC2, 0xF2, 0x00, 0x01]), Some(0x2000));
        assert_eq!(immediate(&[0; 3]), None);
    }
}
