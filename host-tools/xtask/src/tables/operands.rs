//! How many kernels run with each operand between bytes that nothing may touch, by backend.

use std::path::Path;

use arenite::KernelId;
use arenite::kernels::Backend;
use arenite_host::{Error, Result};

use super::table::Table;

/// The kernels without generated cases, and those of them that no network guards either.
pub(super) struct Lists {
    unreached: Vec<String>,
    unguarded: Vec<String>,
}

impl Lists {
    /// From the lists beside the tests, which these hold.
    pub(super) fn read(results: &Path) -> Result<Self> {
        let lines = |name: &str| {
            let path = results.join("../tests/operands").join(name);
            let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the list of kernels", &e))?;
            Ok::<_, Error>(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            unreached: lines("unreached.txt")?,
            unguarded: lines("unguarded.txt")?,
        })
    }
}

/// A row for each backend, and one of all.
pub(super) fn operands(lists: &Lists) -> String {
    let mut table = Table::new(
        &[
            "backend",
            "kernels",
            "generated cases, on the host and on boards",
            "the tests' networks, on the host",
            "neither yet",
        ],
        1,
    );
    let kernels = || {
        KernelId::ALL
            .iter()
            .filter(|kernel| kernel.backend() != Backend::EthosU)
    };
    let row = |name: String, of: &dyn Fn(&KernelId) -> bool| {
        let listed = |list: &[String]| {
            kernels()
                .filter(|k| of(k) && list.iter().any(|name| name == k.name()))
                .count()
        };
        let all = kernels().filter(|kernel| of(kernel)).count();
        let (unreached, unguarded) = (listed(&lists.unreached), listed(&lists.unguarded));
        let counts = [all, all - unreached, unreached - unguarded, unguarded];
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
