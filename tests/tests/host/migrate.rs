//! The policy for versions of the format: what is of another version is refused by name, and converted where a way leads to today's.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::blob::seal;
use arenite::{Bundle, FORMAT_VERSION, LoadError, Model, OLDEST_VERSION};
use arenite_host::ErrorKind;
use arenite_host::bundle::bundle;
use arenite_host::metadata::Origin;
use arenite_host::migrate::{UPGRADES, Upgrade, migrate};
use arenite_host::model::Aligned;
use arenite_host::pack::Options;
use arenite_host::sign::Signer;
use arenite_tests::digits_options;
use ed25519_dalek::SigningKey;

const VERSION: usize = 8;

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// The tracked file of a version.
fn golden(version: u16) -> Vec<u8> {
    let path = models().join(format!("compat/mlp-v{version}.bin"));
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A file that claims another version, with a right checksum.
fn forged(version: u16) -> Vec<u8> {
    let mut file = golden(FORMAT_VERSION);
    file[VERSION..VERSION + 2].copy_from_slice(&version.to_le_bytes());
    seal(&mut file);
    file
}

fn load(file: &[u8]) -> Result<(), LoadError> {
    let mut aligned = Aligned::new(file.len());
    aligned.bytes().copy_from_slice(file);
    Model::load(aligned.bytes()).map(drop)
}

/// The version before today's, in the tests of conversions that differ in their number alone.
const BEFORE: u16 = FORMAT_VERSION - 1;

/// From a forged file of the version before to today's.
fn renumbered(file: &[u8]) -> arenite_host::Result<Vec<u8>> {
    let mut file = file.to_vec();
    file[VERSION] = FORMAT_VERSION as u8;
    seal(&mut file);
    Ok(file)
}

/// Version 1 as version 2 was converted from it: what both say is equal.
#[test]
fn version_1_becomes_2_with_all_that_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("two.bin");
    let mut options = digits_options("digits", &path);
    options.cores = 2;
    options.labels = (0..10).map(|class| format!("class {class}")).collect();
    let packed = arenite_host::pack::pack(&options, &mut |_, _, _| {});
    assert!(packed.is_ok(), "{packed:?}");
    let today = fs::read(&path).expect("the model");
    let old = as_version_1(&today);
    assert!(matches!(load(&old), Err(LoadError::Version { found: 1, .. })));
    let migrated = migrate(&old, UPGRADES).expect("a way");
    assert!(migrated.bytes == today && migrated.versions == [1]);
    for damage in [44, 48, 52, 60, 92, 112, 120] {
        let mut wrong = old.clone();
        wrong[damage + 3] = 0x7F;
        seal(&mut wrong);
        let error = migrate(&wrong, UPGRADES).expect_err("a section outside").to_string();
        assert!(
            error.contains("a section lies outside of the file"),
            "{damage}: {error}"
        );
    }
}

/// A file of version 1 that ends within its header, with a right checksum.
#[test]
fn a_header_of_version_1_that_is_cut_is_refused() {
    let mut file = golden(1)[..90].to_vec();
    file[16..20].copy_from_slice(&90_u32.to_le_bytes());
    seal(&mut file);
    let error = migrate(&file, UPGRADES).expect_err("a cut header").to_string();
    assert!(error.contains("the header is cut"), "{error}");
}

/// A file of today's as version 1 had it, by docs/format.md: 128 bytes of header, the cores in a field, the kernel set in half as many bytes.
fn as_version_1(today: &[u8]) -> Vec<u8> {
    let header = arenite::Header::parse(today).expect("a header");
    let long = u32::from(u16::from_le_bytes([today[10], today[11]]));
    let mut head = today[..128].to_vec();
    head[8..12].copy_from_slice(&[1, 0, 128, 0]);
    let mut put = |at: usize, value: u32| head[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let moved = |offset: u32| if offset == 0 { 0 } else { offset - (long - 128) };
    let weights = moved(header.weights.offset).next_multiple_of(64);
    let behind = header.weights.offset - weights;
    for (at, section) in [
        (24, header.ports),
        (32, header.steps),
        (44, header.meta),
        (60, header.state_init),
    ] {
        put(at, moved(section.offset));
    }
    put(52, weights);
    put(16, header.total - behind);
    put(92, moved(header.cores.offset));
    put(112, 0);
    put(116, 0);
    put(120, moved(header.labels.offset));
    put(124, header.labels.len);
    let plan = &today[long as usize..header.weights.offset as usize];
    let mut old = [&head, plan].concat();
    old.resize(weights as usize, 0);
    old.extend(&today[header.weights.offset as usize..]);
    seal(&mut old);
    old
}

#[test]
fn every_version_has_its_golden_files_and_a_way_to_todays() {
    for version in 1..=FORMAT_VERSION {
        assert!(
            models().join(format!("format/v{version}.txt")).is_file(),
            "version {version}"
        );
        let file = golden(version);
        let migrated = migrate(&file, UPGRADES).unwrap_or_else(|e| panic!("version {version}: {e}"));
        assert_eq!(migrated.versions, [version]);
        assert_eq!(load(&migrated.bytes), Ok(()));
        // Beyond the oldest reader a device refuses the old file itself.
        assert_eq!(
            load(&file).is_ok(),
            (OLDEST_VERSION..=FORMAT_VERSION).contains(&version)
        );
    }
    for upgrade in UPGRADES {
        assert!((1..FORMAT_VERSION).contains(&upgrade.from), "{upgrade:?}");
    }
}

#[test]
fn devices_refuse_another_version_by_its_number() {
    for found in [0, FORMAT_VERSION + 1, u16::MAX] {
        let supported = FORMAT_VERSION;
        let error = load(&forged(found)).expect_err("another version");
        assert_eq!(error, LoadError::Version { found, supported });
        // A newer file wants a newer runtime; no tool makes an older one of it.
        let remedy = if found > FORMAT_VERSION {
            "update the runtime"
        } else {
            "arenite migrate"
        };
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn a_version_without_a_way_names_the_command_that_packs_again() {
    for (version, cause) in [
        (0, "nothing is left that converts version 0"),
        (FORMAT_VERSION + 1, "newer than these tools"),
    ] {
        let error = migrate(&forged(version), UPGRADES).expect_err("no way");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        let command = "pack INPUT -o MODEL --target portable --name 'mlp'";
        for part in [
            cause,
            &format!("format version {version}"),
            command,
            "INPUT is the native file of sha256 ",
        ] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

#[test]
fn an_older_version_is_converted_where_a_way_leads_to_todays() {
    let ways = [Upgrade {
        from: BEFORE,
        convert: renumbered,
    }];
    let migrated = migrate(&forged(BEFORE), &ways).expect("a way");
    assert_eq!(
        (migrated.bytes, migrated.versions),
        (golden(FORMAT_VERSION), vec![BEFORE])
    );
    let lost = [Upgrade {
        from: BEFORE,
        convert: |_| {
            Err(arenite_host::Error::unsupported(
                "step 3 uses kernel 200, which is retired",
            ))
        },
    }];
    let error = migrate(&forged(BEFORE), &lost)
        .expect_err("a kernel that nobody knows")
        .to_string();
    assert!(
        error.contains("kernel 200, which is retired") && error.contains("pack INPUT"),
        "{error}"
    );
    let idle = [Upgrade {
        from: BEFORE,
        convert: |file| Ok(file.to_vec()),
    }];
    assert_eq!(
        migrate(&forged(BEFORE), &idle).expect_err("no conversion").kind(),
        ErrorKind::Internal
    );
}

#[test]
fn a_damaged_file_is_not_converted() {
    let ways = [Upgrade {
        from: BEFORE,
        convert: renumbered,
    }];
    let file = forged(BEFORE);
    for damaged in [
        file[..file.len() - 1].to_vec(),
        [&file[..500], &[file[500] ^ 1], &file[501..]].concat(),
        vec![7; 300],
    ] {
        assert_eq!(migrate(&damaged, &ways).expect_err("damaged").kind(), ErrorKind::Input);
    }
}

#[test]
fn every_model_of_a_bundle_is_converted_and_a_signature_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("both.bin");
    let networks = ["digits", "mlp"].map(|name| Options {
        plan_nodes: 2000,
        ..digits_options(name, &path)
    });
    bundle(&networks, &path, &mut |_, _, _| {}).expect("a bundle");
    let today = fs::read(&path).expect("the bundle");
    // The second model becomes one of the version before.
    let mut old = today.clone();
    let from = u32::from_le_bytes(old[64..68].try_into().expect("four bytes")) as usize;
    let len = u32::from_le_bytes(old[68..72].try_into().expect("four bytes")) as usize;
    old[from + VERSION] = BEFORE as u8;
    seal(&mut old[from..from + len]);
    let mut aligned = Aligned::new(old.len());
    aligned.bytes().copy_from_slice(&old);
    assert_eq!(
        Bundle::open(aligned.bytes()).map(drop).expect_err("an old model"),
        LoadError::Header
    );

    let signed = Signer::new(SigningKey::from_bytes(&[1; 32]), 5)
        .sign(&old)
        .expect("a signed file");
    let migrated = migrate(
        &signed,
        &[Upgrade {
            from: BEFORE,
            convert: renumbered,
        }],
    )
    .expect("a way");
    assert_eq!(migrated.versions, [FORMAT_VERSION, BEFORE]);
    assert_eq!(migrated.dropped.expect("a signature").counter, 5);
    assert!(migrated.bytes == today, "the bundle as it is packed today");
    let error = migrate(&old, &[]).expect_err("no way").to_string();
    assert!(
        error.contains("model `mlp`") && error.contains("--name 'mlp'"),
        "{error}"
    );
}

/// The first fields of the metadata stay where they are, whatever a later version puts behind them.
#[test]
fn metadata_of_another_version_says_what_packed_the_file() {
    use std::io::Write;
    let fields = (
        "pack 7.8.9",
        "abcd",
        r#"{"name":"later","batch":4,"of_the_future":[1]}"#,
    );
    let mut plain = postcard::to_stdvec(&fields).expect("it encodes");
    plain.extend([0xFF; 9]);
    let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    deflated.write_all(&plain).expect("into memory");
    let origin = Origin::read(&deflated.finish().expect("into memory")).expect("the first fields");
    assert_eq!(
        (origin.tool.as_str(), origin.input_sha256.as_str()),
        ("pack 7.8.9", "abcd")
    );
    assert_eq!(
        (origin.text("name").as_deref(), origin.number("batch")),
        (Some("later"), Some(4))
    );
    assert_eq!(origin.text("dialect"), None);
}
