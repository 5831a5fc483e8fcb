//! The inputs that samples are for, as messages name them.

use arenite::Port;

/// All of them.
pub(super) fn names(ports: &[Port<'_>]) -> String {
    let names: Vec<_> = ports.iter().map(|port| format!("`{}`", port.name)).collect();
    names.join(", ")
}
