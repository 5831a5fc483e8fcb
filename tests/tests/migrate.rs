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

/// From the forged version 0 to 1, which differ in their number.
fn from_0(file: &[u8]) -> arenite_host::Result<Vec<u8>> {
    let mut file = file.to_vec();
    file[VERSION] = 1;
    seal(&mut file);
    Ok(file)
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
        assert!(error.to_string().contains("arenite migrate"), "{error}");
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
        from: 0,
        convert: from_0,
    }];
    let migrated = migrate(&forged(0), &ways).expect("a way");
    assert_eq!((migrated.bytes, migrated.versions), (golden(1), vec![0]));
    let lost = [Upgrade {
        from: 0,
        convert: |_| {
            Err(arenite_host::Error::unsupported(
                "step 3 uses kernel 200, which is retired",
            ))
        },
    }];
    let error = migrate(&forged(0), &lost)
        .expect_err("a kernel that nobody knows")
        .to_string();
    assert!(
        error.contains("kernel 200, which is retired") && error.contains("pack INPUT"),
        "{error}"
    );
    let idle = [Upgrade {
        from: 0,
        convert: |file| Ok(file.to_vec()),
    }];
    assert_eq!(
        migrate(&forged(0), &idle).expect_err("no conversion").kind(),
        ErrorKind::Internal
    );
}

#[test]
fn a_damaged_file_is_not_converted() {
    let ways = [Upgrade {
        from: 0,
        convert: from_0,
    }];
    let file = forged(0);
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
    // The second model becomes one of version 0.
    let mut old = today.clone();
    let from = u32::from_le_bytes(old[64..68].try_into().expect("four bytes")) as usize;
    let len = u32::from_le_bytes(old[68..72].try_into().expect("four bytes")) as usize;
    old[from + VERSION] = 0;
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
            from: 0,
            convert: from_0,
        }],
    )
    .expect("a way");
    assert_eq!(migrated.versions, [1, 0]);
    assert_eq!(migrated.dropped.expect("a signature").counter, 5);
    assert!(migrated.bytes == today, "the bundle as it is packed today");
    let error = migrate(&old, UPGRADES).expect_err("no way").to_string();
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
