//! `arenite keygen`: a key to sign files with.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::program::{Verdict, print_json};
use crate::files::output::STDOUT;
use crate::files::{Output, Print, print};
use crate::{Error, Result, sign};

/// Arguments of `arenite keygen`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file to write the private key to, PKCS#8 in PEM; it must not exist. `-` is standard output.
    #[arg(short, long, value_name = "KEYFILE")]
    output: PathBuf,
    /// Prints the public key as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    /// The number by which files name the key.
    key: String,
    /// The public key, 32 bytes in hexadecimal.
    public_key: String,
    /// The same as SubjectPublicKeyInfo.
    public_pem: String,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let output = Output::to(&args.output)?;
    let report = Print::beside([&output], args.json)?;
    let key = sign::generate()?;
    let public = key.verifying_key();
    let to_stdout = args.output.as_os_str() == STDOUT;
    if to_stdout {
        print::out(&sign::private_pem(&key)?)?
    } else {
        sign::write_private(&args.output, &key)?
    }
    let hex = |text: &mut String, separator: &str, prefix: &str| {
        public.as_bytes().iter().enumerate().try_for_each(|(index, byte)| {
            let between = if index == 0 { "" } else { separator };
            write!(text, "{between}{prefix}{byte:02x}")
        })
    };
    let (mut plain, mut rust) = (String::new(), String::new());
    hex(&mut plain, "", "")
        .and_then(|()| hex(&mut rust, ", ", "0x"))
        .map_err(|e| Error::internal(e.to_string()))?;
    let (id, public_pem) = (sign::key_id(&public), sign::public_pem(&public)?);
    let printed = if args.json {
        print_json(&Report {
            key: format!("{id:016x}"),
            public_key: plain,
            public_pem,
        })
    } else {
        report.text(&format!(
            "key {id:016x}; the private key is in {}: whoever has it can sign\nfor firmware:\n    \
         const KEY: arenite::TrustedKey = (0x{id:016x}, [{rust}]);\n{public_pem}",
            output.path().display(),
        ))
    };
    // Where the public key could not be told there is no key either.
    printed.inspect_err(|_| {
        if !to_stdout {
            let _ = std::fs::remove_file(&args.output);
        }
    })?;
    Ok(Verdict::Good)
}
