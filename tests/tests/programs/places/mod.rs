//! Where firmware is built: the library for C as a CMake package, a Zephyr module, a component of ESP-IDF, an Arduino library; a GitHub Action, a template
//! and a dev container. None of these build systems but CMake is here: their files are held to the published rules, and what they compile is compiled and
//! linked against stand-ins, and runs on a board.

mod action;
mod bare;
mod cmake;
mod glue;
mod metadata;
mod rules;
mod table;
mod yaml;
