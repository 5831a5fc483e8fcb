//! Letters, as regular expressions have them (`\p{L}`).

/// Whether a character is a letter: Unicode's general categories Lu, Ll, Lt, Lm and Lo. The standard library knows what is alphabetic, which marks and numbers
/// written as letters are too.
pub(super) fn is_letter(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphabetic();
    }
    character.is_alphabetic() && !character.is_numeric() && !is_other(u32::from(character))
}

/// Whether one of [`OTHERS`] has this character.
fn is_other(character: u32) -> bool {
    let behind = OTHERS.partition_point(|run| run >> 8 <= character);
    let run = behind.checked_sub(1).and_then(|at| OTHERS.get(at));
    run.is_some_and(|run| character - (run >> 8) <= run & 0xFF)
}

/// Runs of characters that are alphabetic, and neither letters nor numbers: the first of each, times 256, and how many follow it. Unicode 17,
/// `Other_Alphabetic` without numbers.
static OTHERS: [u32; 255] = [
    0x00034500, 0x0003630C, 0x0005B00D, 0x0005BF00, 0x0005C101, 0x0005C401, 0x0005C700, 0x0006100A, 0x00064B0C,
    0x00065906, 0x00067000, 0x0006D606, 0x0006E103, 0x0006E701, 0x0006ED00, 0x00071100, 0x0007300F, 0x0007A60A,
    0x00081601, 0x00081B08, 0x00082502, 0x00082903, 0x00089700, 0x0008D40B, 0x0008E306, 0x0008F013, 0x00093A01,
    0x00093E0E, 0x00094E01, 0x00095502, 0x00096201, 0x00098102, 0x0009BE06, 0x0009C701, 0x0009CB01, 0x0009D700,
    0x0009E201, 0x000A0102, 0x000A3E04, 0x000A4701, 0x000A4B01, 0x000A5100, 0x000A7001, 0x000A7500, 0x000A8102,
    0x000ABE07, 0x000AC702, 0x000ACB01, 0x000AE201, 0x000AFA02, 0x000B0102, 0x000B3E06, 0x000B4701, 0x000B4B01,
    0x000B5601, 0x000B6201, 0x000B8200, 0x000BBE04, 0x000BC602, 0x000BCA02, 0x000BD700, 0x000C0004, 0x000C3E06,
    0x000C4602, 0x000C4A02, 0x000C5501, 0x000C6201, 0x000C8102, 0x000CBE06, 0x000CC602, 0x000CCA02, 0x000CD501,
    0x000CE201, 0x000CF300, 0x000D0003, 0x000D3E06, 0x000D4602, 0x000D4A02, 0x000D5700, 0x000D6201, 0x000D8102,
    0x000DCF05, 0x000DD600, 0x000DD807, 0x000DF201, 0x000E3100, 0x000E3406, 0x000E4D00, 0x000EB100, 0x000EB405,
    0x000EBB01, 0x000ECD00, 0x000F7112, 0x000F8D0A, 0x000F9923, 0x00102B0B, 0x00103800, 0x00103B03, 0x00105603,
    0x00105E02, 0x00106202, 0x00106706, 0x00107103, 0x0010820B, 0x00108F00, 0x00109A03, 0x00171201, 0x00173201,
    0x00175201, 0x00177201, 0x0017B612, 0x00188501, 0x0018A900, 0x0019200B, 0x00193008, 0x001A1704, 0x001A5509,
    0x001A6113, 0x001ABF01, 0x001ACC02, 0x001B0004, 0x001B350E, 0x001B8002, 0x001BA108, 0x001BAC01, 0x001BE70A,
    0x001C2412, 0x001DD321, 0x0024B633, 0x002DE01F, 0x00A67407, 0x00A69E01, 0x00A80200, 0x00A80B00, 0x00A82304,
    0x00A88001, 0x00A8B40F, 0x00A8C500, 0x00A8FF00, 0x00A92604, 0x00A9470B, 0x00A98003, 0x00A9B40B, 0x00A9E500,
    0x00AA290D, 0x00AA4300, 0x00AA4C01, 0x00AA7B02, 0x00AAB000, 0x00AAB202, 0x00AAB701, 0x00AABE00, 0x00AAEB04,
    0x00AAF500, 0x00ABE307, 0x00FB1E00, 0x01037604, 0x010A0102, 0x010A0501, 0x010A0C03, 0x010D2403, 0x010D6900,
    0x010EAB01, 0x010EFA02, 0x01100002, 0x0110380D, 0x01107301, 0x01108002, 0x0110B008, 0x0110C200, 0x01110002,
    0x0111270B, 0x01114501, 0x01118002, 0x0111B30C, 0x0111CE01, 0x01122C08, 0x01123700, 0x01123E00, 0x01124100,
    0x0112DF09, 0x01130003, 0x01133E06, 0x01134701, 0x01134B01, 0x01135700, 0x01136201, 0x0113B808, 0x0113C200,
    0x0113C500, 0x0113C703, 0x0113CC01, 0x0114350C, 0x01144302, 0x0114B011, 0x0115AF06, 0x0115B806, 0x0115DC01,
    0x0116300E, 0x01164000, 0x0116AB0A, 0x01171D0D, 0x01182C0C, 0x01193005, 0x01193701, 0x01193B01, 0x01194000,
    0x01194200, 0x0119D106, 0x0119DA05, 0x0119E400, 0x011A0109, 0x011A3504, 0x011A3B03, 0x011A510A, 0x011A8A0D,
    0x011B6007, 0x011C2F07, 0x011C3806, 0x011C9215, 0x011CA90D, 0x011D3105, 0x011D3A00, 0x011D3C01, 0x011D3F02,
    0x011D4300, 0x011D4700, 0x011D8A04, 0x011D9001, 0x011D9303, 0x011EF303, 0x011F0001, 0x011F0300, 0x011F3406,
    0x011F3E02, 0x01611E10, 0x016F4F00, 0x016F5136, 0x016F8F03, 0x016FF001, 0x01BC9E00, 0x01E00006, 0x01E00810,
    0x01E01B06, 0x01E02301, 0x01E02604, 0x01E08F00, 0x01E6E300, 0x01E6E600, 0x01E6EE01, 0x01E6F500, 0x01E94700,
    0x01F13019, 0x01F15019, 0x01F17019,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_unicode() {
        // A letter of each category, then marks, numbers and symbols that are alphabetic, and what is nothing of that.
        for letter in [
            'A',
            'z',
            '\u{1C5}',
            '\u{2B0}',
            '\u{5D0}',
            '\u{4E00}',
            '\u{1E900}',
            '\u{AA}',
        ] {
            assert!(is_letter(letter), "{letter:?}");
        }
        for other in [
            '\u{345}',
            '\u{93E}',
            '\u{2160}',
            '\u{24B6}',
            '\u{1F189}',
            '7',
            ' ',
            '-',
            '\u{301}',
            '\u{1F600}',
        ] {
            assert!(!is_letter(other), "{other:?}");
        }
        // The same as the categories of Unicode 17 have, counted and hashed by another library.
        let letters = ('\0'..=char::MAX).filter(|character| is_letter(*character));
        let hashed = letters.fold((0_u32, 0_u32), |(count, hash), letter| {
            (count + 1, hash.wrapping_mul(31).wrapping_add(letter.into()))
        });
        assert_eq!(
            hashed,
            (145_672, 0x9256_CD8A),
            "the standard library has another Unicode: make `OTHERS` anew"
        );
        let behind_each_other = OTHERS
            .windows(2)
            .all(|pair| (pair[0] >> 8) + (pair[0] & 0xFF) < pair[1] >> 8);
        assert!(behind_each_other);
    }
}
