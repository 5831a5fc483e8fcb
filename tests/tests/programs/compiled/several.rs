//! Programs with more than one plain network: a state, a front end before a network, two networks of the same kernels.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arenite_host::board::{Board, CompiledFootprint, compiled_footprint, compiled_footprint_of_two, ready};
use arenite_tests::golden::packed;
use arenite_tests::{shared, skip, turns};

use super::table::Table;
use super::{CORES, TURNS, short, weights};

const SHARING: &str = "two networks of the same kernels";

/// Contents of each program: a network, and another one in the same program.
const PROGRAMS: [(&str, &str, Option<&str>); 3] = [
    ("a state", "models/esphome_v2_vad", None),
    (
        "a front end for audio, a network",
        "frontend/tflm_audio_preprocessor_int8",
        Some("models/tflm_micro_speech_quantized"),
    ),
    (SHARING, "models/kws_ref_model", Some("models/vww_96_int8")),
];

/// How often each function is in a program: names are without types, of which one function may have several forms.
fn functions(program: &CompiledFootprint) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    let names = program.symbols.iter().map(|(name, _)| short(name));
    // Constants of the program's own have no names but numbers.
    for name in names.filter(|name| name.contains("::")) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Functions that are in a program more often than in that of the network which has most of them.
fn twice<'a>(program: &'a CompiledFootprint, each: &[&CompiledFootprint]) -> Vec<&'a str> {
    let alone: Vec<_> = each.iter().map(|one| functions(one)).collect();
    let most = |name: &str| alone.iter().filter_map(|one| one.get(name)).max().copied().unwrap_or(1);
    let all = functions(program).into_iter();
    all.filter(|(name, count)| *count > most(name))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn programs_with_more_take_what_the_documents_say_and_no_kernel_twice() {
    const TEST: &str = "programs_with_more_take_what_the_documents_say_and_no_kernel_twice";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let mut table = Table::new(
        "several",
        "| program | core | weights | compiled | each by itself |\n| --- | --- | ---: | ---: | ---: |\n",
    );
    let all = PROGRAMS
        .iter()
        .flat_map(|program| CORES.iter().map(move |core| (program, core)));
    for (&(about, first, second), &(name, core, target)) in turns(TEST, TURNS, all) {
        let board = Board::find(name).expect("a known board");
        if let Err(reason) = ready(board) {
            return skip(TEST, &reason.to_string());
        }
        let folder = tempfile::tempdir().expect("a folder");
        let model = |network: &str| {
            let path = shared.join(format!("data/{network}.tflite"));
            let file = packed(&path, folder.path(), target).unwrap_or_else(|error| panic!("{network}: {error}"));
            let alone = compiled_footprint(board, file.path(), weights(&file));
            let alone = alone.unwrap_or_else(|error| panic!("{network} on {name}: {error}"));
            (file, alone)
        };
        let (file, alone) = model(first);
        let label = |file: &str| {
            Path::new(file)
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        };
        let (mut program, mut each, mut names) = (alone.clone(), alone.code_bytes, label(first));
        let mut alone = vec![alone];
        if let Some(second) = second {
            let (other, other_alone) = model(second);
            each += other_alone.code_bytes;
            alone.push(other_alone);
            names += &format!(", {}", label(second));
            let mut beside = file.path().as_os_str().to_owned();
            beside.push(".second");
            fs::copy(other.path(), &beside).expect("a copy");
            let both = compiled_footprint_of_two(board, file.path(), weights(&file) + weights(&other));
            program = both.unwrap_or_else(|error| panic!("{names} on {name}: {error}"));
            // Models that share nothing lie beside each other, with their padding.
            let most = if about == SHARING { each / 10 * 9 } else { each + 64 };
            let bytes = program.code_bytes;
            assert!(bytes <= most, "{names} on {name}: {bytes} bytes, each by itself {each}");
        }
        assert_eq!(program.panics, Vec::<String>::new(), "{names} on {name}");
        let alone: Vec<&CompiledFootprint> = alone.iter().collect();
        assert_eq!(twice(&program, &alone), [""; 0], "{names} on {name}");
        table.row(
            &format!("{about}: {names} | {core} | {}", program.weights_bytes),
            &[program.code_bytes, each],
            None,
        );
    }
    table.compare();
}
