//! `arenite`: looks into model files, runs them, compares them. See [`arenite_host::cli`].

fn main() -> std::process::ExitCode {
    arenite_host::cli::main()
}
