//! Codes of errors, as a user meets them.

use std::process::Command;

use crate::common::{ARENITE, Bench, done, json, refused, run};

#[test]
fn a_code_is_explained() {
    let bench = Bench::new();
    let text = done(run(ARENITE, &["explain-code", "0x33ff0001"]));
    assert!(text.contains("RunError::Corrupt") && text.contains("step 1"), "{text}");
    let mut command = Command::new(ARENITE);
    command
        .args(["explain-code", "0x33ff0001", "--json"])
        .arg(bench.packed("mlp"));
    let report = json(&done(command.output().expect("it starts")));
    assert_eq!(report["index"].as_u64(), Some(1));
    assert_eq!(report["kernel"].as_str(), Some("UnaryF32"), "{report}");
    assert!(report["step_name"].is_string(), "{report}");
    // A kernel that the code states itself, and a decimal number.
    let text = done(run(ARENITE, &["explain-code", &0x0840_0002_u32.to_string()]));
    assert!(
        text.contains("LoadError::UnknownKernel") && text.contains("DspConv2dS8"),
        "{text}"
    );
    let text = done(run(ARENITE, &["explain-code", "0x05ffffff"]));
    assert!(text.contains("damaged") && !text.contains("step"), "{text}");
    assert!(refused(run(ARENITE, &["explain-code", "0xff000000"]), 1).contains("no cause 0xff"));
    refused(run(ARENITE, &["explain-code", "0x123456789"]), 2);
    refused(run(ARENITE, &["explain-code", "code"]), 2);
}
