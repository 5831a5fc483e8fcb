//! `--signature`: of a file of several networks the named one is packed, and what is left out is said.

use std::path::{Path, PathBuf};

use arenite_host::bundle::bundle;
use arenite_host::import::{ImportOptions, Imported, import};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::golden::Archive;
use arenite_tests::{shared, skip, tflite_made};

use super::onnx_file::stored;

type Function = fn(f32) -> f32;
type Product = fn(f32, f32) -> f32;

/// The committed file of this name.
fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_made/{name}.tflite"))
}

fn named(signature: &str) -> ImportOptions {
    ImportOptions {
        signature: Some(signature.to_owned()),
        ..ImportOptions::default()
    }
}

fn read(path: &Path, options: &ImportOptions) -> Result<Imported, String> {
    import(path, None, options)
        .map(|(_, imported)| imported)
        .map_err(|e| e.to_string())
}

/// The first output of the packed network.
fn computed(path: &Path, import: ImportOptions, inputs: Vec<Vec<u8>>) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        import,
        ..Options::new(path, folder.path().join("m.bin"))
    };
    pack(&options, &mut |_, _, _| {}).expect("packs");
    let file = ModelFile::open(&options.output).expect("a model");
    let model = file.load().expect("it loads");
    run(&model, &[inputs], true, &mut |_, _, _| {})
        .expect("it runs")
        .swap_remove(0)
        .swap_remove(0)
}

#[test]
fn the_made_files_are_those_on_record() {
    for (name, file) in tflite_made::files() {
        let path = made(name);
        let mut found = std::fs::read(&path).unwrap_or_default();
        // Other tests read them at the same time.
        if std::env::var_os("ARENITE_BLESS").is_some() && found != file.bytes() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, file.bytes()).expect("written");
            found = file.bytes();
        }
        assert!(
            found == file.bytes(),
            "{name}: ARENITE_BLESS=1 cargo test -p arenite-tests --test host importer_limits::signatures writes it"
        );
    }
}

#[test]
fn each_signature_is_a_network_of_its_own() {
    let path = made("named_networks");
    let x = [1.0, -2.0, 3.5, 0.25, 8.0];
    let twice: [(&str, usize, Function); 3] = [
        ("double", 3, |x| x * 4.0),
        ("shift", 5, |x| x + 6.0),
        ("halve", 4, |x| x * 0.25),
    ];
    for (name, extent, f) in twice {
        let expected: Vec<f32> = x[..extent].iter().map(|&x| f(x)).collect();
        let found = computed(&path, named(name), vec![stored(&x[..extent])]);
        assert_eq!(found, stored(&expected), "{name}");
        assert_eq!(read(&path, &named(name)).expect("reads").warnings, Vec::<String>::new());
    }
    // Without the option the first, and a word about the others.
    let found = computed(&path, ImportOptions::default(), vec![stored(&x[..3])]);
    assert_eq!(found, stored(&[4.0, -8.0, 14.0]));
    let warnings = read(&path, &ImportOptions::default()).expect("reads").warnings;
    assert!(
        warnings.len() == 1
            && ["`double`", "`shift`", "`halve`"]
                .iter()
                .all(|name| warnings[0].contains(name)),
        "{warnings:?}"
    );
    // Tensors are those of the signature.
    let part = ImportOptions {
        until: vec!["between".to_owned()],
        ..named("shift")
    };
    assert_eq!(
        computed(&path, part, vec![stored(&x)]),
        stored(&[4.0, 1.0, 6.5, 3.25, 11.0])
    );
}

#[test]
fn signatures_that_are_not_there_are_refused_with_the_nearest_first() {
    for (file, signature, part) in [
        ("named_networks", "shif", "one of `shift`, `halve`, `double`"),
        ("named_networks", "Halve", "one of `halve`, `"),
        ("signature_none", "main", "the file has none"),
        ("signature_beyond", "beyond", "names subgraph 9; expected 0 to 2"),
    ] {
        let text = read(&made(file), &named(signature)).map(drop).expect_err(part);
        assert!(text.contains(part) && text.contains(signature), "{text}");
    }
    // Nobody asks for it: interpreters do not look.
    let imported = read(&made("signature_beyond"), &ImportOptions::default()).expect("the first");
    assert!(imported.warnings[0].contains("`beyond`"), "{:?}", imported.warnings);
    assert!(
        read(&made("signature_none"), &ImportOptions::default())
            .expect("reads")
            .warnings
            .is_empty()
    );
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/digits.trace.json");
    let text = read(&digits, &named("main")).map(drop).expect_err("no .tflite");
    assert!(text.contains("--signature main") && text.contains("native"), "{text}");
}

/// The file of LiteRT's own tests. The oracle ran `add`; the others follow from its inputs.
#[test]
fn the_signatures_of_litert_compute_what_their_names_say() {
    let Some(shared) = shared() else {
        return skip(
            "the_signatures_of_litert_compute_what_their_names_say",
            "no shared data",
        );
    };
    let folder = shared.join("data/defects");
    let path = folder.join("litert_multi_signature_model.tflite");
    let mut archive = Archive::open(&folder.join("litert_multi_signature_model.golden.npz"));
    let [b, a, sums] = ["in_rand_0", "in_rand_1", "out_rand_tflm_0"].map(|key| archive.runs(key).0);
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    };
    let two: [(&str, Product); 2] = [("mul", |a, b| a * b), ("sub", |a, b| a - b)];
    for run in 0..a.len() {
        let inputs = vec![b[run].clone(), a[run].clone()];
        assert_eq!(computed(&path, named("add"), inputs.clone()), sums[run]);
        assert_eq!(computed(&path, ImportOptions::default(), inputs.clone()), sums[run]);
        for (name, f) in two {
            let (a, b) = (numbers(&a[run]), numbers(&b[run]));
            let expected: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
            assert_eq!(
                computed(&path, named(name), inputs.clone()),
                stored(&expected),
                "{name}"
            );
        }
    }
    let output = tempfile::tempdir().expect("a folder");
    let output = output.path().join("all.bin");
    let networks: Vec<Options> = ["sub", "add"]
        .map(|name| Options {
            import: named(name),
            name: Some(name.to_owned()),
            ..Options::new(&path, &output)
        })
        .into();
    let (summary, _) = bundle(&networks, &output, &mut |_, _, _| {}).expect("a bundle");
    let names: Vec<&str> = summary.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["sub", "add"]);
}
