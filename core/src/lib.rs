//! Arenite: the runtime.
#![no_std]
