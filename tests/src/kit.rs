//! Kernels of the test kit, all or the one that is asked for.

use arenite::KernelId;

/// The kernel that is asked for alone: `ARENITE_KERNEL` has its name, as `cargo xtask test kernel NAME` says it.
///
/// # Panics
/// Where no kernel has the name.
pub fn only() -> Option<KernelId> {
    let name = std::env::var("ARENITE_KERNEL").ok()?;
    let named = KernelId::ALL.iter().copied().find(|kernel| kernel.name() == name);
    Some(named.unwrap_or_else(|| panic!("no kernel is called `{name}`")))
}

/// The kernels that the kit has cases of, all but an NPU's commands, which no core computes; of them the one that is asked for.
pub fn compared() -> impl Iterator<Item = KernelId> {
    let only = only();
    let all = KernelId::ALL.iter().copied();
    all.filter(move |&kernel| kernel != KernelId::EthosU && only.is_none_or(|only| only == kernel))
}
