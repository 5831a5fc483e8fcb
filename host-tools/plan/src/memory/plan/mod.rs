//! The arena planner: places buffers with known lifetimes at offsets in one arena, as low as possible, with a proof.
//!
//! [`solve`] first computes a lower bound ([`lower_bound`]: max-live, with alignment and relations), then places greedily in several
//! orders ([`estimate`]), and where these two differ searches exactly within a budget of nodes. The [`Plan`] says
//! how much of it is proven; [`check()`] verifies it again without any code of the solver.
//!
//! Everything here is deterministic: the same problem and options give the same plan on every machine.

pub mod check;
pub mod csv;
pub mod generate;

mod bound;
#[cfg(feature = "tools")]
mod command;
mod failures;
mod greedy;
mod instance;
mod live_set;
mod problem;
mod random;
mod search;
mod skyline;
mod solve;
mod state;
#[cfg(test)]
mod tests;
mod units;

pub use check::{CheckError, check};
#[cfg(feature = "tools")]
pub use command::{CommandError, PlanArgs, Report, command};
pub use problem::{Buffer, Options, Part, Plan, PlanError, Problem, Proof, Relation};
pub use solve::{estimate, lower_bound, profile, solve, solve_watched};
