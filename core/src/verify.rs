//! Signed files: a signature over all of a file is verified before anything else in it is believed. Feature `verify`.
//!
//! Ed25519 (RFC 8032), verified strictly: no key of small order, no second encoding of a point or a scalar.

#[cfg(feature = "error-text")]
use core::fmt;

use ed25519_dalek::{Signature, VerifyingKey};

use crate::blob::Model;
use crate::bundle::Bundle;
use crate::error::LoadError;
use crate::kernels::table::Kernels;
use crate::signed::{Envelope, SIGNED_HEADER, SIGNED_VERSION, bytes_at, field};

/// An Ed25519 public key with the number by which files name it; `arenite keygen` prints both.
pub type TrustedKey = (u64, [u8; 32]);

/// Keys that a device trusts, and the least counter.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Trust<'k> {
    /// Keys whose signatures count.
    pub keys: &'k [TrustedKey],
    /// Files of a smaller counter are refused. A device that keeps the counter of the file that it last accepted, where no attacker can write, cannot be
    /// given an older one.
    pub at_least: u64,
}

/// A file whose signature is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Verified<'a> {
    /// The model or the bundle.
    pub content: &'a [u8],
    /// The key that signed it.
    pub key: u64,
    /// Its counter, to be kept for [`Trust::at_least`].
    pub counter: u64,
}

/// Why a file is not believed.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum VerifyError {
    /// The file has no signature.
    NotSigned,
    /// Fewer bytes than the envelope states, or than an envelope has.
    Truncated {
        /// Bytes needed.
        expected: u32,
        /// Bytes given.
        found: u32,
    },
    /// A version of the envelope that this runtime does not read.
    Version {
        /// The file's version.
        found: u16,
        /// The only version that this runtime reads.
        supported: u16,
    },
    /// The envelope contradicts itself.
    Envelope,
    /// Signed by a key that is not among those trusted.
    UnknownKey {
        /// The key that the file names.
        key: u64,
    },
    /// The signature is not that of this key over these bytes: the file was changed after it was signed, or never signed by that key.
    Signature {
        /// The key that the file names.
        key: u64,
    },
    /// Signed, and older than what is asked for.
    OldCounter {
        /// The file's counter.
        found: u64,
        /// The least that is accepted.
        at_least: u64,
    },
    /// Signed, and refused by load.
    Load(LoadError),
}

/// Verifies a signed file. Before its signature is, nothing of it is read but magic, version, lengths, key and signature; bytes behind the file's own length
/// are ignored, so that a flash partition can be passed whole.
///
/// # Errors
/// See [`VerifyError`]; never [`VerifyError::Load`].
pub fn verify<'a>(bytes: &'a [u8], trust: &Trust<'_>) -> Result<Verified<'a>, VerifyError> {
    let short = |expected| VerifyError::Truncated {
        expected,
        found: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
    };
    let Some(envelope) = Envelope::of(bytes) else {
        return Err(if bytes.len() < SIGNED_HEADER {
            short(SIGNED_HEADER as u32)
        } else {
            VerifyError::NotSigned
        });
    };
    let Envelope {
        key, counter, total, ..
    } = envelope;
    if envelope.version != SIGNED_VERSION {
        return Err(VerifyError::Version {
            found: envelope.version,
            supported: SIGNED_VERSION,
        });
    }
    if usize::from(envelope.header_len) != SIGNED_HEADER || (total as usize) < SIGNED_HEADER {
        return Err(VerifyError::Envelope);
    }
    let file = bytes.get(..total as usize).ok_or(short(total))?;
    let known = trust.keys.iter().find(|(id, _)| *id == key);
    let Some((_, public)) = known else {
        return Err(VerifyError::UnknownKey { key });
    };
    let signature = bytes_at(file, field::SIGNATURE).ok_or(VerifyError::Envelope)?;
    let message = file.get(field::SIGNED..).ok_or(VerifyError::Envelope)?;
    if !signed_by(public, message, &signature) {
        return Err(VerifyError::Signature { key });
    }

    // From here on the file is what the key's owner wrote.
    let at_least = trust.at_least;
    if counter < at_least {
        let found = counter;
        return Err(VerifyError::OldCounter { found, at_least });
    }
    match file.get(SIGNED_HEADER..) {
        Some(content) if envelope.rest_is_zero => Ok(Verified { content, key, counter }),
        _ => Err(VerifyError::Envelope),
    }
}

/// Whether this is the signature of the key's owner over the message. A function of its own, so that its stack is free again when a model is loaded.
#[inline(never)]
pub fn signed_by(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let signature = Signature::from_bytes(signature);
    VerifyingKey::from_bytes(public).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

impl<'a> Model<'a> {
    /// Verifies a signed file and checks all of the model in it, with every kernel of this build linked; see [`verify()`] and [`Model::load`].
    ///
    /// # Errors
    /// See [`VerifyError`].
    pub fn load_verified(bytes: &'a [u8], trust: &Trust<'_>) -> Result<Self, VerifyError> {
        Self::load_verified_with(bytes, trust)
    }
}

impl<'a, K: Kernels> Model<'a, K> {
    /// Verifies a signed file and checks all of the model in it; see [`verify()`] and [`Model::load_with`].
    ///
    /// # Errors
    /// See [`VerifyError`].
    pub fn load_verified_with(bytes: &'a [u8], trust: &Trust<'_>) -> Result<Self, VerifyError> {
        let verified = verify(bytes, trust)?;
        Self::load_with(verified.content).map_err(VerifyError::Load)
    }
}

impl<'a> Bundle<'a> {
    /// Verifies a signed file and checks the directory of the bundle in it. The signature covers the models, too.
    ///
    /// # Errors
    /// See [`VerifyError`].
    pub fn open_verified(bytes: &'a [u8], trust: &Trust<'_>) -> Result<Self, VerifyError> {
        let verified = verify(bytes, trust)?;
        Self::open(verified.content).map_err(VerifyError::Load)
    }
}

#[cfg(feature = "error-text")]
impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::NotSigned => write!(f, "the file is not signed"),
            VerifyError::Truncated { expected, found } => write!(f, "the signed file has {found} bytes of {expected}"),
            VerifyError::Version { found, supported } => write!(
                f,
                "the signature's envelope has version {found}, this runtime reads version {supported}"
            ),
            VerifyError::Envelope => write!(f, "the signature's envelope contradicts itself"),
            VerifyError::UnknownKey { key } => {
                write!(f, "the file is signed by the key {key:016x}, which is not trusted")
            }
            VerifyError::Signature { key } => {
                write!(
                    f,
                    "the signature of the key {key:016x} does not match: the file was changed"
                )
            }
            VerifyError::OldCounter { found, at_least } => {
                write!(f, "the file's counter is {found}, older than {at_least}")
            }
            VerifyError::Load(error) => write!(f, "the signature is right, and {error}"),
        }
    }
}

impl core::error::Error for VerifyError {}
