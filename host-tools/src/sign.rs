//! Signed files: key files, and the envelope that [`arenite::verify()`] reads on a device.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use arenite::signed::{Envelope, SIGNED_HEADER, signature_place};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::files::{self, Draft, Output};

/// Bytes that a signature adds to a file.
pub const ENVELOPE_BYTES: u64 = SIGNED_HEADER as u64;

const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";

/// Who signs a file, and the counter that it gets.
#[derive(Debug, Clone)]
pub struct Signer {
    key: SigningKey,
    counter: u64,
}

impl Signer {
    /// Reads a key file.
    ///
    /// # Errors
    /// As [`read_private`].
    pub fn read(path: &Path, counter: u64) -> Result<Self> {
        let key = read_private(path)?;
        Ok(Self { key, counter })
    }

    /// Signs by `key`.
    pub fn new(key: SigningKey, counter: u64) -> Self {
        Self { key, counter }
    }

    /// The name of its key in files.
    pub fn key_id(&self) -> u64 {
        key_id(&self.key.verifying_key())
    }

    /// Its counter.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// The signed file that holds `content`, a model or a bundle.
    ///
    /// # Errors
    /// [`ErrorKind::DoesNotFit`] beyond 4 GiB.
    pub fn sign(&self, content: &[u8]) -> Result<Vec<u8>> {
        let head = u32::try_from(content.len())
            .ok()
            .and_then(|len| Envelope::unsigned(len, self.key_id(), self.counter));
        let head = head.ok_or_else(|| Error::new(ErrorKind::DoesNotFit, "the signed file needs more than 4 GiB"))?;
        let mut file = [&head[..], content].concat();
        let place = signature_place();
        let signature = self.key.sign(&file[place.end..]);
        file[place].copy_from_slice(&signature.to_bytes());
        Ok(file)
    }

    /// The signed file in place of a draft of its content.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and as [`Signer::sign`].
    pub fn sign_draft(&self, draft: Draft, output: &Output) -> Result<Draft> {
        let io = |e: std::io::Error| Error::io(output.path(), "sign the model", &e);
        let content = draft.bytes().map_err(io)?;
        output.draft_of(&self.sign(&content)?).map_err(io)
    }
}

/// The number by which files name a key: the first eight bytes of the SHA-256 of the public key.
pub fn key_id(public: &VerifyingKey) -> u64 {
    let digest = Sha256::digest(public.as_bytes());
    digest[..8].iter().fold(0, |id, &byte| id << 8 | u64::from(byte))
}

/// A new key from the system's source of randomness.
///
/// # Errors
/// [`ErrorKind::Io`] where the system has none.
#[cfg(feature = "tools")]
pub fn generate() -> Result<SigningKey> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|e| Error::new(ErrorKind::Io, format!("the system gives no random bytes: {e}")))?;
    Ok(SigningKey::from_bytes(&seed))
}

/// A private key as PKCS#8 in PEM, the form that OpenSSL reads: without the public key, which follows from it.
///
/// # Errors
/// Never in practice; [`ErrorKind::Internal`].
pub fn private_pem(key: &SigningKey) -> Result<String> {
    let pair = KeypairBytes {
        secret_key: key.to_bytes(),
        public_key: None,
    };
    let pem = pair.to_pkcs8_pem(LineEnding::LF);
    pem.map(|pem| pem.to_string())
        .map_err(|e| Error::internal(format!("a key does not encode: {e}")))
}

/// A public key as SubjectPublicKeyInfo in PEM.
///
/// # Errors
/// Never in practice; [`ErrorKind::Internal`].
pub fn public_pem(key: &VerifyingKey) -> Result<String> {
    key.to_public_key_pem(LineEnding::LF)
        .map_err(|e| Error::internal(format!("a key does not encode: {e}")))
}

/// Writes a key file that nobody else may read. It never replaces a file.
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Usage`] where the file exists.
pub fn write_private(path: &Path, key: &SigningKey) -> Result<()> {
    let pem = private_pem(key)?;
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::new(ErrorKind::Usage, "it exists, and a key is never replaced")
            .in_file(path)
            .help("choose another name, or move the file away: what it signed can be updated by it alone"),
        _ => Error::io(path, "write the key", &e),
    })?;
    let written = file.write_all(pem.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|e| {
        // A part of a key is none.
        let _ = std::fs::remove_file(path);
        Error::io(path, "write the key", &e)
    })
}

/// The private key in a key file.
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Input`] for what is no such key.
pub fn read_private(path: &Path) -> Result<SigningKey> {
    let text = files::read_text(path, "read the key")?;
    if text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        return Err(Error::input("the key is encrypted")
            .in_file(path)
            .expected("a private key without a pass phrase")
            .help("`openssl pkey -in KEYFILE` decrypts it; `--sign -` reads it from a pipe"));
    }
    let wrong = |what: String| {
        Error::input(what)
            .in_file(path)
            .expected("an Ed25519 private key, PKCS#8 in PEM")
            .help("`arenite keygen -o KEYFILE` makes one, `openssl genpkey -algorithm ed25519` as well")
    };
    let pem = block(&text, PRIVATE).ok_or_else(|| wrong("there is no private key in it".into()))?;
    SigningKey::from_pkcs8_pem(pem).map_err(|_| wrong("what stands between BEGIN and END is no such key".into()))
}

/// The public key in a file that holds it, or the private key that it follows from.
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Input`] for what is no such key.
pub fn read_public(path: &Path) -> Result<VerifyingKey> {
    let text = files::read_text(path, "read the key")?;
    let wrong = |what: String| {
        Error::input(what)
            .in_file(path)
            .expected("an Ed25519 key, public or private, in PEM")
            .help("`arenite keygen` prints the public key, `openssl pkey -in KEYFILE -pubout` as well")
    };
    let decoded = match (block(&text, PUBLIC), block(&text, PRIVATE)) {
        (Some(pem), _) => VerifyingKey::from_public_key_pem(pem).map_err(|e| e.to_string()),
        (None, Some(pem)) => SigningKey::from_pkcs8_pem(pem)
            .map(|key| key.verifying_key())
            .map_err(|e| e.to_string()),
        (None, None) => return Err(wrong("there is no key in it".into())),
    };
    decoded.map_err(|e| wrong(format!("the key does not decode: {e}")))
}

/// The block of this label in a PEM file, whatever stands around it.
fn block<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let from = text.find(&begin)?;
    let len = text[from..].find(&end)? + end.len();
    Some(&text[from..from + len])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, 7.1, test 1: secret and public key.
    const SECRET: [u8; 32] = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49,
        0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
    ];

    #[test]
    fn keys_survive_their_files() {
        let key = SigningKey::from_bytes(&SECRET);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_private(&path, &key).unwrap();
        assert_eq!(read_private(&path).unwrap().to_bytes(), SECRET);
        assert_eq!(read_public(&path).unwrap(), key.verifying_key());
        let public = folder.path().join("public");
        std::fs::write(&public, format!("key 1\n{}", public_pem(&key.verifying_key()).unwrap())).unwrap();
        assert_eq!(read_public(&public).unwrap(), key.verifying_key());
        assert!(
            read_private(&public)
                .unwrap_err()
                .to_string()
                .contains("no private key")
        );
        let again = write_private(&path, &key).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Usage);
        assert_eq!(read_private(&path).unwrap().to_bytes(), SECRET);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    /// The envelope stands before the content and changes nothing of it.
    #[test]
    fn a_signed_file_holds_its_content() {
        let signer = Signer::new(SigningKey::from_bytes(&SECRET), 7);
        let file = signer.sign(b"content").unwrap();
        assert_eq!(arenite::content(&file), b"content");
        let envelope = Envelope::of(&file).unwrap();
        assert_eq!((envelope.key, envelope.counter), (signer.key_id(), 7));
        assert_eq!(envelope.total as usize, file.len());
    }
}
