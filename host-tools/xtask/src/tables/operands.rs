//! How many kernels run with each operand between bytes that nothing may touch, and are compared with the reference, by backend.

use arenite::KernelId;
use arenite::kernels::Backend;

use super::table::Table;

/// A row for each backend, and one of all. The test kit has cases of every kernel but an NPU's commands, which no core computes.
pub(super) fn operands() -> String {
    let mut table = Table::new(
        &["backend", "kernels with generated cases, on the host and on boards"],
        1,
    );
    let kernels = || KernelId::ALL.iter().filter(|&&kernel| kernel != KernelId::EthosU);
    let mut backends: Vec<Backend> = Vec::new();
    for kernel in kernels() {
        if !backends.contains(&kernel.backend()) {
            backends.push(kernel.backend());
        }
    }
    for backend in backends {
        let of_it = kernels().filter(|kernel| kernel.backend() == backend).count();
        table.row([format!("`{}`", backend.name()), of_it.to_string()]);
    }
    table.row(["all".to_owned(), kernels().count().to_string()]);
    table.text
}
