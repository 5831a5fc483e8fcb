//! Signed files: what a device believes and what it does not, over files as `pack --sign` writes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::signed::{Envelope, SIGNED_HEADER};
use arenite::verify::signed_by;
use arenite::{Bundle, LoadError, Model, Trust, TrustedKey, VerifyError, verify};
use arenite_host::bundle::bundle;
use arenite_host::model::{Aligned, ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_host::sign::{self, Signer};
use arenite_tests::variants::unprovoked;
use arenite_tests::{digits_options, skip};
use ed25519_dalek::SigningKey;

const COUNTER: u64 = 41;

/// Vectors of RFC 8032, 7.1: secret key, public key, message, signature.
const VECTORS: [[&str; 4]; 4] = [
    [
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ],
    [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
    [
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ],
    [
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        // SHA-512("abc")
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ],
];

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn trusted(key: &SigningKey) -> TrustedKey {
    let public = key.verifying_key();
    (sign::key_id(&public), public.to_bytes())
}

/// A signed model of a few hundred bytes.
fn signed_model(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("signed.bin");
    let options = Options {
        sign: Some(Signer::new(key(1), COUNTER)),
        ..digits_options("mlp", &path)
    };
    pack(&options, &mut |_, _, _| {}).expect("a signed model");
    let file = fs::read(&path).expect("the file");
    (path, file)
}

fn aligned(file: &[u8]) -> Aligned {
    let mut aligned = Aligned::new(file.len());
    aligned.bytes().copy_from_slice(file);
    aligned
}

/// Loads a file on a device that trusts the first key and files from `at_least` on.
fn load(file: &[u8], at_least: u64) -> Result<(), VerifyError> {
    let keys = [trusted(&key(9)), trusted(&key(1))];
    let mut file = aligned(file);
    let trust = Trust { keys: &keys, at_least };
    Model::load_verified(file.bytes(), &trust).map(drop)
}

#[test]
fn signatures_are_those_of_the_standard() {
    use ed25519_dalek::Signer as _;
    for [secret, public, message, signature] in VECTORS {
        let secret = SigningKey::from_bytes(&bytes(secret).try_into().expect("32 bytes"));
        assert_eq!(secret.verifying_key().to_bytes()[..], bytes(public));
        let message = bytes(message);
        assert_eq!(secret.sign(&message).to_bytes()[..], bytes(signature));
        let (public, signature) = (bytes(public), bytes(signature));
        assert!(signed_by(
            public[..].try_into().expect("32 bytes"),
            &message,
            signature[..].try_into().expect("64 bytes")
        ));
    }
}

#[test]
fn a_signed_model_runs_as_the_unsigned_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, file) = signed_model(folder.path());
    let plain = folder.path().join("plain.bin");
    pack(&digits_options("mlp", &plain), &mut |_, _, _| {}).expect("a model");
    assert_eq!(file[SIGNED_HEADER..], fs::read(&plain).expect("the file")[..]);
    let input: Vec<u8> = (0..64).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let outputs = [path, plain].map(|path| {
        let file = ModelFile::open(&path).expect("a file");
        run(
            &file.load().expect("a model"),
            &[vec![input.clone()]],
            false,
            &mut |_, _, _| {},
        )
        .expect("a run")
    });
    assert_eq!(outputs[0], outputs[1]);
}

/// Every variant of the error, each from a file and a trust that provoke it.
#[test]
fn each_cause_has_an_error_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, file) = signed_model(folder.path());
    assert_eq!(load(&file, COUNTER), Ok(()));
    let mut provoked = Vec::new();
    let mut case = |what: &str, file: &[u8], at_least: u64, expected: VerifyError| {
        assert_eq!(load(file, at_least), Err(expected), "{what}");
        provoked.push(format!("{expected:?}"));
    };
    let signed_by_1 = trusted(&key(1)).0;
    let (found, at_least) = (COUNTER, COUNTER + 1);
    case(
        "an older file",
        &file,
        at_least,
        VerifyError::OldCounter { found, at_least },
    );
    case("not signed", &file[SIGNED_HEADER..], 0, VerifyError::NotSigned);
    let expected = file.len() as u32;
    for found in [0, 3, SIGNED_HEADER as u32 - 1] {
        let expected = SIGNED_HEADER as u32;
        case(
            "a cut envelope",
            &file[..found as usize],
            0,
            VerifyError::Truncated { expected, found },
        );
    }
    for found in [SIGNED_HEADER as u32, expected / 2, expected - 1] {
        case(
            "a cut file",
            &file[..found as usize],
            0,
            VerifyError::Truncated { expected, found },
        );
    }
    let signature = VerifyError::Signature { key: signed_by_1 };
    let changed = |at: usize, value: u8| {
        let mut file = file.clone();
        file[at] = value;
        file
    };
    case(
        "a changed byte",
        &changed(file.len() - 1, !file[file.len() - 1]),
        0,
        signature,
    );
    let version = VerifyError::Version { found: 2, supported: 1 };
    case("another version", &changed(72, 2), 0, version);
    case(
        "another length of the envelope",
        &changed(74, 127),
        0,
        VerifyError::Envelope,
    );
    // A counter that was raised by hand is not that of the key's owner.
    case("a raised counter", &changed(88, 99), 0, signature);

    let others = Signer::new(key(2), COUNTER)
        .sign(&file[SIGNED_HEADER..])
        .expect("a file");
    let unknown = trusted(&key(2)).0;
    case(
        "a stranger's file",
        &others,
        0,
        VerifyError::UnknownKey { key: unknown },
    );
    let mut forged = others;
    forged[80..88].copy_from_slice(&signed_by_1.to_le_bytes());
    case("a stranger's file in the owner's name", &forged, 0, signature);
    let nonsense = Signer::new(key(1), COUNTER).sign(&[7; 300]).expect("a file");
    case("signed nonsense", &nonsense, 0, VerifyError::Load(LoadError::NotABlob));
    assert_eq!(unprovoked("core/src/verify.rs", "VerifyError", provoked), [""; 0]);
}

/// No bit of a signed file can be changed: 128 bytes of envelope, and a content as short as it may be.
#[test]
fn every_flipped_bit_is_refused() {
    let content: Vec<u8> = (0..40).collect();
    let file = Signer::new(key(1), COUNTER).sign(&content).expect("a file");
    let keys = [trusted(&key(1))];
    let trust = Trust {
        keys: &keys,
        at_least: 0,
    };
    assert_eq!(
        verify(&file, &trust).map(|verified| verified.content.to_vec()),
        Ok(content)
    );
    for bit in 0..8 * file.len() {
        let mut changed = file.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&changed, &trust).is_err(), "bit {bit}");
    }
}

/// Bytes behind the file in its partition are none of it, and nothing can be appended by a longer length.
#[test]
fn bytes_behind_the_file_are_ignored() {
    let file = Signer::new(key(1), COUNTER).sign(b"content").expect("a file");
    let keys = [trusted(&key(1))];
    let trust = Trust {
        keys: &keys,
        at_least: 0,
    };
    let mut longer = file.clone();
    longer.extend([0xFF; 50]);
    assert_eq!(
        verify(&longer, &trust).map(|verified| verified.content),
        Ok(&b"content"[..])
    );
    assert_eq!(arenite::content(&longer), b"content");
    let total = file.len() as u32 + 50;
    longer[76..80].copy_from_slice(&total.to_le_bytes());
    assert!(matches!(verify(&longer, &trust), Err(VerifyError::Signature { .. })));
}

/// A public key of small order signs anything for anybody where verification is lax.
#[test]
fn a_key_of_small_order_verifies_nothing() {
    let mut identity = [0; 32];
    identity[0] = 1;
    let mut file = Signer::new(key(1), COUNTER).sign(b"content").expect("a file");
    // R the identity and S zero satisfy the plain equation for the identity as a key.
    file[8..72].fill(0);
    file[8] = 1;
    let id = Envelope::of(&file).expect("signed").key;
    let trust = Trust {
        keys: &[(id, identity)],
        at_least: 0,
    };
    assert_eq!(verify(&file, &trust), Err(VerifyError::Signature { key: id }));
}

#[test]
fn a_bundle_is_signed_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("both.bin");
    let networks = ["digits", "mlp"].map(|name| Options {
        sign: Some(Signer::new(key(1), COUNTER)),
        plan_nodes: 2000,
        ..digits_options(name, &path)
    });
    let (summary, _) = bundle(&networks, &path, &mut |_, _, _| {}).expect("a bundle");
    let file = fs::read(&path).expect("the file");
    assert_eq!(summary.model_bytes, file.len() as u64);
    let keys = [trusted(&key(1))];
    let trust = Trust {
        keys: &keys,
        at_least: COUNTER,
    };
    let open = |file: &[u8]| {
        let mut file = aligned(file);
        Bundle::open_verified(file.bytes(), &trust)
            .map(|bundle| (0..bundle.len()).filter(|&i| bundle.load(i).is_ok()).count())
    };
    assert_eq!(open(&file), Ok(2));
    // Weights of the second model, far from the directory.
    let mut changed = file.clone();
    *changed.last_mut().expect("bytes") ^= 1;
    assert!(matches!(open(&changed), Err(VerifyError::Signature { .. })));
    for name in ["digits", "mlp"] {
        let file = ModelFile::open(Path::new(&format!("{}#{name}", path.display()))).expect("a model of the bundle");
        file.load().expect("it loads");
    }
}

fn openssl(arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .output()
        .ok()?;
    Some(if output.status.success() {
        "good".to_owned()
    } else {
        String::from_utf8_lossy(&output.stderr).into_owned()
    })
}

/// Keys and signatures of an independent implementation, and ours for it.
#[test]
fn openssl_agrees() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    match openssl(&["genpkey", "-algorithm", "ed25519", "-out", "theirs.pem"], folder) {
        Some(made) if made == "good" => {}
        _ => return skip("openssl_agrees", "no openssl with Ed25519"),
    }
    sign::write_private(&folder.join("ours.pem"), &key(3)).expect("a key file");
    for name in ["ours.pem", "theirs.pem"] {
        let private = sign::read_private(&folder.join(name)).expect("a private key");
        let public = openssl(&["pkey", "-in", name, "-pubout", "-out", "public.pem"], folder);
        assert_eq!(public.as_deref(), Some("good"));
        assert_eq!(
            sign::read_public(&folder.join("public.pem")).expect("a public key"),
            private.verifying_key()
        );

        let file = Signer::new(private.clone(), COUNTER).sign(&[5; 1000]).expect("a file");
        fs::write(folder.join("message"), &file[72..]).expect("written");
        fs::write(folder.join("signature"), &file[8..72]).expect("written");
        let verify = [
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            "public.pem",
            "-rawin",
            "-in",
            "message",
            "-sigfile",
            "signature",
        ];
        assert_eq!(openssl(&verify, folder).as_deref(), Some("good"), "{name}");
        fs::write(folder.join("message"), &file[71..]).expect("written");
        assert_ne!(openssl(&verify, folder).as_deref(), Some("good"), "{name}");

        // A file that OpenSSL signs is believed.
        let mut theirs = file.clone();
        theirs[8..72].fill(0);
        fs::write(folder.join("message"), &theirs[72..]).expect("written");
        let sign = [
            "pkeyutl",
            "-sign",
            "-inkey",
            name,
            "-rawin",
            "-in",
            "message",
            "-out",
            "signature",
        ];
        assert_eq!(openssl(&sign, folder).as_deref(), Some("good"), "{name}");
        theirs[8..72].copy_from_slice(&fs::read(folder.join("signature")).expect("a signature"));
        let keys = [trusted(&private)];
        let trust = Trust {
            keys: &keys,
            at_least: COUNTER,
        };
        assert_eq!(verify_content(&theirs, &trust), Ok(vec![5; 1000]));
    }
}

fn verify_content(file: &[u8], trust: &Trust<'_>) -> Result<Vec<u8>, VerifyError> {
    arenite::verify(file, trust).map(|verified| verified.content.to_vec())
}
