//! From steps to a memory plan.
//!
//! [`lifetimes`] states when a tensor lives. By it [`schedule`] orders the steps, [`in_place`] merges outputs into inputs, and [`mod@bodies`] says what
//! wants a place and what may overlap. [`place()`] asks the planner ([`plan`]) for offsets; [`fit`] cuts steps until they fit a memory,
//! [`mod@cores`] shares them among several cores, [`accelerate`] with an accelerator, both in `shares.rs`.
//! [`roll`] makes the first steps work row by row. [`prove`] proves the finished file's plan and shares nothing with any of them.

pub mod accelerate;
pub mod bodies;
pub mod cores;
pub mod fit;
pub mod in_place;
pub mod lifetimes;
mod place;
pub mod plan;
pub mod prove;
pub mod roll;
pub mod schedule;
mod shares;

pub use bodies::{Bodies, bodies};
pub use place::{Placed, Region, Request, place, whole_words};
pub use shares::Shares;
