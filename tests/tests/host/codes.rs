//! Errors as four bytes: each has a cause of its own, whose number it keeps.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use arenite::codes::{CAUSES, Code, Counts, NO_KERNEL};
use arenite::guard::Overrun;
use arenite::slots::SlotError;
use arenite::text::TextError;
use arenite::{
    AcceleratorFault, Fault, KernelId, Lack, LoadError, Model, RunError, SelfTestError, SessionError, VerifyError,
};
use arenite_host::model::Aligned;
use arenite_tests::variants::variants;

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// The numbers of causes are in logs and in fielded devices: none changes its meaning.
#[test]
fn every_cause_keeps_its_number() {
    let path = models().join("format/codes.txt");
    let mut text = String::from(
        "# Causes of error codes: number, error, and what the code's low half counts. A number keeps its meaning for ever.\n",
    );
    for cause in CAUSES {
        let _ = writeln!(text, "{:02x} {} {:?}", cause.number, cause.name, cause.counts);
    }
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&path, text).expect("it can be written");
        return;
    }
    let tracked = fs::read_to_string(&path).expect("a tracked file");
    assert_eq!(
        tracked, text,
        "a new cause takes a new number: ARENITE_BLESS=1 cargo test -p arenite-tests --test host codes::"
    );
}

/// Each error, its code, and the cause of that name.
#[test]
fn every_error_has_its_cause() {
    let (step, expected, found, index) = (3, 4, 5, 2);
    let faults = [
        Fault::Encoding,
        Fault::Shape,
        Fault::Bounds,
        Fault::Alignment,
        Fault::Overlap,
        Fault::Quantisation,
        Fault::Unsupported,
        Fault::Weights,
        Fault::Shared,
        Fault::Core,
        Fault::Race,
        Fault::Group,
        Fault::Reach,
        Fault::Handed,
        Fault::Commands,
        Fault::Rows,
    ];
    let accelerator = [
        AcceleratorFault::Name,
        AcceleratorFault::Version,
        AcceleratorFault::Layout,
        AcceleratorFault::Regions,
        AcceleratorFault::Alignment,
        AcceleratorFault::Reach,
        AcceleratorFault::TimedOut,
        AcceleratorFault::Failed { code: 9 },
        AcceleratorFault::Unwritten,
        AcceleratorFault::Needed,
        AcceleratorFault::Npu,
    ];
    let load = [
        LoadError::Misaligned,
        LoadError::Truncated { expected, found },
        LoadError::NotABlob,
        LoadError::Version { found: 1, supported: 2 },
        LoadError::Checksum { expected, found },
        LoadError::Receipt {
            length: 1,
            crc: 2,
            version: 3,
        },
        LoadError::Header,
        LoadError::Section { kind: 0x1_0009 },
        LoadError::Cores { found: 5 },
        LoadError::Accelerator,
        LoadError::Cpu {
            lack: Lack::Kernel {
                step,
                kernel: KernelId::Table,
            },
        },
        LoadError::Kernel {
            step,
            kernel: KernelId::Table,
            target: "",
        },
        LoadError::UnknownKernel { step, kernel: 200 },
        LoadError::Cost {
            step,
            cost: 2,
            budget: 1,
        },
        LoadError::Port { port: index },
    ];
    let session = [
        SessionError::ArenaTooSmall {
            region: 2,
            needed: 1,
            given: 0,
        },
        SessionError::ArenaMisaligned { region: 2 },
        SessionError::StateSize { needed: 1, given: 0 },
        SessionError::StateMisaligned,
        SessionError::MemoryTaken,
    ];
    let run = [
        RunError::NoSuchPort { index },
        RunError::InputSize {
            input: index,
            needed: 1,
            given: 0,
        },
        RunError::InputMissing { input: index },
        RunError::PortType { port: index },
        RunError::Corrupt { step },
        RunError::OutOfRange {
            step,
            index: -1,
            count: 1,
        },
        RunError::Cores { needed: 2, given: 1 },
        RunError::RowSize {
            input: index,
            needed: 2,
            given: 1,
        },
        RunError::RowsOver {
            input: index,
            left: 1,
            given: 2,
        },
        RunError::RowsMissing {
            input: index,
            fed: 1,
            needed: 2,
        },
        RunError::FedByRows { input: index },
        RunError::NotByRows { input: index },
    ];
    let verify = [
        VerifyError::NotSigned,
        VerifyError::Truncated { expected, found },
        VerifyError::Version { found: 2, supported: 1 },
        VerifyError::Envelope,
        VerifyError::UnknownKey { key: 1 },
        VerifyError::Signature { key: 1 },
        VerifyError::OldCounter { found: 1, at_least: 2 },
    ];
    let test = [
        SelfTestError::Missing,
        SelfTestError::Malformed,
        SelfTestError::Output {
            run: 0,
            output: index,
            expected,
            found,
        },
    ];
    let slot = [
        SlotError::Layout,
        SlotError::Flash(embedded_storage::nor_flash::NorFlashErrorKind::Other),
        SlotError::Empty,
        SlotError::OnTrial,
        SlotError::TooLarge { length: 2, slot: 1 },
        SlotError::Length { stated: 2, written: 1 },
        SlotError::Stale,
    ];
    let text = [
        TextError::NoTokenizer,
        TextError::Tokenizer,
        TextError::NoChat,
        TextError::NoPiece { byte: 9 },
        TextError::TooLong { room: 1 },
        TextError::Empty,
        TextError::Model,
        TextError::Logits,
    ];
    let overrun = [Overrun::Arena { region: 2 }, Overrun::State];
    let mut all: Vec<(u32, &str, String)> = Vec::new();
    all.extend(load.map(|e| (e.code(), "LoadError", format!("{e:?}"))));
    all.extend(faults.map(|fault| (LoadError::Step { step, fault }.code(), "Fault", format!("{fault:?}"))));
    let handed = |fault| RunError::Accelerator { step, fault };
    all.extend(accelerator.map(|fault| (handed(fault).code(), "AcceleratorFault", format!("{fault:?}"))));
    all.extend(session.map(|e| (e.code(), "SessionError", format!("{e:?}"))));
    all.extend(run.map(|e| (e.code(), "RunError", format!("{e:?}"))));
    all.extend(verify.map(|e| (e.code(), "VerifyError", format!("{e:?}"))));
    all.extend(test.map(|e| (e.code(), "SelfTestError", format!("{e:?}"))));
    all.extend(slot.map(|e| (e.code(), "SlotError", format!("{e:?}"))));
    all.extend(text.map(|e| (e.code(), "TextError", format!("{e:?}"))));
    all.extend(overrun.map(|e| (e.code(), "Overrun", format!("{e:?}"))));
    for (code, error, debug) in &all {
        let code = Code::from_u32(*code);
        let cause = CAUSES.iter().find(|cause| cause.number == code.cause).expect("a cause");
        assert_eq!(
            cause.name,
            format!("{error}::{}", arenite_tests::variants::variant(debug))
        );
        let counted = match cause.counts {
            Counts::Nothing => 0xFFFF,
            Counts::Step => 3,
            _ => 2,
        };
        assert_eq!(code.step, counted, "{debug}");
    }
    assert_eq!(all.len(), CAUSES.len());
    // Errors that hold another error have its code.
    let held = [
        "LoadError::Step",
        "RunError::Accelerator",
        "VerifyError::Load",
        "SelfTestError::Session",
        "SelfTestError::Run",
        "SlotError::Load",
        "SlotError::SelfTest",
        "SlotError::Verify",
        "TextError::Run",
    ];
    assert_eq!(SlotError::Load(load[0]).code(), load[0].code());
    assert_eq!(SlotError::SelfTest(test[0]).code(), test[0].code());
    assert_eq!(SlotError::Verify(verify[0]).code(), verify[0].code());
    assert_eq!(SelfTestError::Session(session[0]).code(), session[0].code());
    assert_eq!(SelfTestError::Run(run[3]).code(), run[3].code());
    assert_eq!(TextError::Run(run[3]).code(), run[3].code());
    assert_eq!(VerifyError::Load(LoadError::Header).code(), LoadError::Header.code());
    for (file, error) in [
        ("error.rs", "LoadError"),
        ("error.rs", "SessionError"),
        ("error.rs", "RunError"),
        ("error.rs", "AcceleratorFault"),
        ("ops/fault.rs", "Fault"),
        ("verify.rs", "VerifyError"),
        ("self_test.rs", "SelfTestError"),
        ("guard.rs", "Overrun"),
        ("slots/error.rs", "SlotError"),
        ("text/error.rs", "TextError"),
    ] {
        for variant in variants(&format!("core/src/{file}"), error) {
            let name = format!("{error}::{variant}");
            let numbered = CAUSES.iter().any(|cause| cause.name == name);
            assert!(numbered != held.contains(&name.as_str()), "{name}");
        }
    }
}

#[test]
fn a_code_has_the_kernel_of_its_step() {
    let file = fs::read(models().join("compat/mlp-v2.bin")).expect("a tracked file");
    let error = RunError::Corrupt { step: 1 };
    assert_eq!(Code::from_u32(error.code()).kernel, NO_KERNEL);
    let mut aligned = Aligned::new(file.len());
    aligned.bytes().copy_from_slice(&file);
    let model = Model::load(aligned.bytes()).expect("it loads");
    let (kernel, _) = model.steps().nth(1).flatten().expect("a step");
    assert_eq!(Code::from_u32(error.code_in(&file)).kernel, kernel);
    // Whatever the file is, nothing goes wrong.
    for bytes in [&file[..200], &file[..50], &[], &[7; 300]] {
        assert_eq!(error.code_in(bytes), error.code());
    }
    assert_eq!(
        RunError::Corrupt { step: 60_000 }.code_in(&file),
        RunError::Corrupt { step: 60_000 }.code()
    );
    assert_eq!(
        RunError::InputMissing { input: 0 }.code_in(&file),
        RunError::InputMissing { input: 0 }.code()
    );
}
