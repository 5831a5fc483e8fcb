//! `pack`: a traced network in, a model file out. See [`arenite_host::cli`].

fn main() -> std::process::ExitCode {
    arenite_host::cli::pack()
}
