//! Several models in one file: packed together, loaded one by one, run in turn in one arena.

use std::path::{Path, PathBuf};

use arenite::{Bundle, LoadError, Session};
use arenite_host::bundle::bundle;
use arenite_host::model::{Aligned, ModelFile, run};
use arenite_host::pack::{Options, pack};

fn options(name: &str) -> Options {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
    Options {
        plan_nodes: 10_000,
        ..Options::new(folder.join(format!("{name}.trace.json")), "")
    }
}

fn bundled(folder: &Path) -> (PathBuf, Vec<u64>) {
    let path = folder.join("both.bin");
    let networks = [options("digits"), options("mlp")];
    let (summary, _) = bundle(&networks, &path, &mut |_, _, _| {}).expect("a bundle");
    let arenas: Vec<u64> = summary.models.iter().map(|m| m.arena_bytes).collect();
    assert_eq!(summary.arena_bytes, arenas.iter().copied().max().expect("two models"));
    assert_eq!(summary.model_bytes, std::fs::metadata(&path).expect("the bundle").len());
    (path, arenas)
}

#[test]
fn models_of_a_bundle_run_in_turn_in_one_arena_as_they_do_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = bundled(folder.path());
    let file = std::fs::read(&path).expect("the bundle");
    let mut aligned = Aligned::new(file.len());
    aligned.bytes().copy_from_slice(&file);
    let bytes: &[u8] = aligned.bytes();
    let bundle = Bundle::open(bytes).expect("a bundle");
    assert_eq!(bundle.len(), 2);

    let mut arena = Aligned::new(bundle.arena_bytes(0));
    for (index, name) in ["digits", "mlp"].into_iter().enumerate() {
        assert_eq!(bundle.entry(index).map(|e| e.name), Some(name));
        let model = bundle.load(index).expect("a model");
        let input: Vec<u8> = (0..64).flat_map(|i| (i as f32 / 4.0).to_le_bytes()).collect();
        let mut session = Session::new(model, arena.bytes(), &mut []).expect("the shared arena serves every model");
        session.set_input(0, &input).expect("64 pixels");
        session.run().expect("a run");
        let together = session.output(0).expect("an output").to_vec();

        let alone = folder.path().join(format!("{name}.bin"));
        pack(
            &Options {
                output: alone.clone(),
                ..options(name)
            },
            &mut |_, _, _| {},
        )
        .expect("a model");
        for path in [alone, PathBuf::from(format!("{}#{name}", path.display()))] {
            let file = ModelFile::open(&path).expect("the model");
            let outputs = run(
                &file.load().expect("it loads"),
                &[vec![input.clone()]],
                true,
                &mut |_, _, _| {},
            );
            assert_eq!(outputs.expect("a run"), [[together.clone()]], "{}", path.display());
        }
    }
}

#[test]
fn the_largest_model_decides_the_arena_wherever_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut found = Vec::new();
    for names in [["digits", "mlp"], ["mlp", "digits"]] {
        let path = folder.path().join(format!("{}.bin", names[0]));
        let (summary, _) = bundle(&names.map(options), &path, &mut |_, _, _| {}).expect("a bundle");
        let file = std::fs::read(&path).expect("the bundle");
        let mut aligned = Aligned::new(file.len());
        aligned.bytes().copy_from_slice(&file);
        let bytes: &[u8] = aligned.bytes();
        let opened = Bundle::open(bytes).expect("a bundle");
        let alone: Vec<u64> = summary.models.iter().map(|model| model.arena_bytes).collect();
        assert_ne!(alone[0], alone[1]);
        assert_eq!(opened.arena_bytes(0) as u64, alone[0].max(alone[1]), "{names:?}");
        assert_eq!(summary.arena_bytes, alone[0].max(alone[1]), "{names:?}");
        assert_eq!(opened.arena_bytes(1), 0);
        found.push(alone);
    }
    found[1].reverse();
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_damaged_directory_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = bundled(folder.path());
    let file = std::fs::read(&path).expect("the bundle");
    let open = |bytes: &[u8]| {
        let mut aligned = Aligned::new(bytes.len());
        aligned.bytes().copy_from_slice(bytes);
        Bundle::open(aligned.bytes()).map(|bundle| bundle.len())
    };
    assert_eq!(open(&file), Ok(2));
    for at in 0..96 {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        // Bytes 20 to 31 of the header are covered by the checksum like all others.
        assert!(open(&damaged).is_err(), "byte {at} flipped");
    }
    for len in [0, 7, 31, 95, file.len() - 1] {
        assert!(
            matches!(open(&file[..len]), Err(LoadError::Truncated { .. })),
            "{len} bytes"
        );
    }
}

#[test]
fn a_bundle_is_asked_for_one_of_its_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = bundled(folder.path());
    for wrong in [path.clone(), PathBuf::from(format!("{}#third", path.display()))] {
        let error = ModelFile::open(&wrong).err().expect("no such model").to_string();
        assert!(error.contains("digits") && error.contains("mlp"), "{error}");
    }
}

#[test]
fn two_networks_of_one_name_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("twice.bin");
    let error = bundle(&[options("mlp"), options("mlp")], &path, &mut |_, _, _| {}).expect_err("one name");
    assert_eq!(error.kind(), arenite_host::ErrorKind::Usage);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
