//! How many kernels run with each operand between bytes that nothing may touch, by backend.

use std::path::Path;

use arenite::KernelId;
use arenite::kernels::Backend;
use arenite_host::{Error, Result};

use super::table::Table;

/// The kernels without generated cases, which networks guard: from the list beside the test that holds it.
pub(super) fn unreached(results: &Path) -> Result<Vec<String>> {
    let path = results.join("../tests/operands/unreached.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the list of kernels", &e))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// A row for each backend, and one of all.
pub(super) fn operands(unreached: &[String]) -> String {
    let mut table = Table::new(
        &[
            "backend",
            "kernels",
            "generated cases, on the host and on boards",
            "the tests' networks, on the host",
        ],
        1,
    );
    let kernels = || {
        KernelId::ALL
            .iter()
            .filter(|kernel| kernel.backend() != Backend::EthosU)
    };
    let row = |name: String, of: &dyn Fn(&KernelId) -> bool| {
        let all = kernels().filter(|kernel| of(kernel)).count();
        let in_networks = kernels()
            .filter(|k| of(k) && unreached.iter().any(|name| name == k.name()))
            .count();
        let counts = [all, all - in_networks, in_networks];
        [name].into_iter().chain(counts.map(|count| count.to_string()))
    };
    let mut backends: Vec<Backend> = Vec::new();
    for kernel in kernels() {
        if !backends.contains(&kernel.backend()) {
            backends.push(kernel.backend());
        }
    }
    for backend in backends {
        table.row(row(format!("`{}`", backend.name()), &|kernel| {
            kernel.backend() == backend
        }));
    }
    table.row(row("all".to_owned(), &|_| true));
    table.text
}
