//! `cargo xtask test kernel NAME`: one kernel on the host and on its boards.

use std::time::Instant;

use arenite::KernelId;
use arenite_xtask::{require, suites};

use super::super::{Result, cargo, root};
use super::watch::watched;

/// Compares one kernel with the reference of its operator, on the host and on one board for each code that the compiler makes of it, and runs it on both
/// between bytes that nothing may touch. # Errors A name that no kernel has, with those alike; what the tests say.
pub(in super::super) fn kernel(name: &str) -> Result<()> {
    // An NPU computes the commands of its streams, no core.
    let compared = || KernelId::ALL.iter().filter(|kernel| **kernel != KernelId::EthosU);
    if compared().all(|kernel| kernel.name() != name) {
        let lower = name.to_lowercase();
        let alike = compared().map(|kernel| kernel.name());
        let alike: Vec<_> = alike.filter(|of| of.to_lowercase().contains(&lower)).collect();
        return Err(match &alike[..] {
            [] => format!("the test kit compares no kernel `{name}`; core/src/kernels/table.rs has their names"),
            alike => format!(
                "the test kit compares no kernel `{name}`; expected one of {}",
                alike.join(", ")
            ),
        }
        .into());
    }
    let required = require::required();
    require::check(&required)?;
    let start = Instant::now();
    let mut command = cargo(&["test", "--package", "arenite-tests"]);
    command.args(suites::targets(&root(), &["kernels", "operands"]));
    command.args(["--no-fail-fast", "--", "--show-output"]);
    command.args([
        "every_kernel_equals_the_reference",
        "no_kernel_touches_a_byte_beside_its_operands_on",
    ]);
    command.env("ARENITE_KERNEL", name);
    watched(command)?.finish(start, &required).map(drop)
}
