//! The command line: see `permitq --help`.

fn main() -> std::process::ExitCode {
    permitq::cli::main()
}
