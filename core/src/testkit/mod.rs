//! For tests and measurements on hosts and boards (feature `testkit`): one kernel on memory of the caller's, without a blob, every kernel
//! against the scalar one on generated cases ([`compare`](compare())), and every kernel on such cases with bits changed ([`mutate`]).

mod cases;
mod compare;
mod memory;
mod mutate;
mod run;

pub use compare::{Packed, mutate, packed};
pub use compare::{Verdict, compare};
pub use memory::{Difference, Workspace};
pub use mutate::{Attack, Mutations};
pub use run::run;
