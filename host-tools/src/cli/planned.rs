//! Options, values and commands that the plan has and these programs do not have yet: refused by name with exit status 1, never taken and ignored.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::Error;

/// Something that is planned.
struct Planned {
    /// The program that gets it.
    program: &'static str,
    /// The option or command.
    name: &'static str,
    /// The value of the option, where the option itself exists.
    value: Option<&'static str>,
    /// The capability that it belongs to.
    comes_with: &'static str,
    /// A way to do without.
    instead: &'static str,
}

const fn option(name: &'static str, comes_with: &'static str, instead: &'static str) -> Planned {
    Planned {
        program: "pack",
        name,
        value: None,
        comes_with,
        instead,
    }
}

const fn value(name: &'static str, value: &'static str, comes_with: &'static str, instead: &'static str) -> Planned {
    Planned {
        value: Some(value),
        ..option(name, comes_with, instead)
    }
}

const STREAM: &str = "set the whole input before a run; --fit and --region lower the arena";

/// All of it. Whoever builds one takes its row away.
const PLANNED: &[Planned] = &[
    value(
        "--stream-input",
        "again",
        "inputs whose rows are read more than once",
        "feed each row once: --stream-input",
    ),
    option("--stream-output", "outputs that are handed out by rows", STREAM),
    value(
        "--weight-bits",
        "16",
        "weights of sixteen bits",
        "pass 8 or 4, or leave it out: f32 weights stay f32",
    ),
];

/// The refusal of what a command line of `program` asks for and what is planned; `None` where the command line is wrong in another way.
pub(super) fn refusal(program: &str, error: &clap::Error) -> Option<Error> {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (name, value) = match error.kind() {
        ErrorKind::UnknownArgument => (told(ContextKind::InvalidArg)?, None),
        ErrorKind::InvalidSubcommand => (told(ContextKind::InvalidSubcommand)?, None),
        ErrorKind::InvalidValue | ErrorKind::TooManyValues => {
            (told(ContextKind::InvalidArg)?, told(ContextKind::InvalidValue))
        }
        _ => return None,
    };
    // An option is told with the name of its value.
    let name = name.split([' ', '=']).next()?;
    refused(program, name, value)
}

/// The refusal of a value that only the work behind the command line can know.
pub(super) fn refused_value(name: &str, given: &str) -> crate::Result<()> {
    refused("pack", name, Some(given)).map_or(Ok(()), Err)
}

fn refused(program: &str, name: &str, value: Option<&str>) -> Option<Error> {
    let mut rows = PLANNED.iter();
    let row = rows.find(|row| row.program == program && row.name == name && row.value == value)?;
    let what = match (row.program, row.value) {
        ("arenite", _) => format!("arenite {name}"),
        (_, Some(value)) => format!("{name} {value}"),
        _ => name.to_string(),
    };
    let message = format!("{what} is not built yet: it comes with {}", row.comes_with);
    Some(Error::unsupported(message).help(row.instead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands;

    #[test]
    fn what_is_planned_is_refused_by_name_and_does_not_exist() {
        let [pack, arenite] = commands();
        for row in PLANNED {
            let words: Vec<&str> = match (row.program, row.value) {
                ("arenite", _) => vec!["arenite", row.name, "x", "--y"],
                (_, Some(value)) => vec!["pack", "t.json", "-o", "m", row.name, value],
                _ => vec!["pack", "t.json", "-o", "m", row.name, "8"],
            };
            let program = if row.program == "pack" { &pack } else { &arenite };
            let error = match program.clone().try_get_matches_from(words) {
                Err(wrong) => refusal(row.program, &wrong).expect(row.name),
                Ok(_) => refused_value(row.name, row.value.expect("an option of any value")).expect_err(row.name),
            };
            let text = error.to_string();
            assert!(
                text.contains(row.name) && text.contains("is not built yet: it comes with"),
                "{text}"
            );
        }
        let unknown = pack
            .clone()
            .try_get_matches_from(["pack", "t.json", "-o", "m", "--nonsense"]);
        assert!(refusal("pack", &unknown.expect_err("no such option")).is_none());
        assert!(refused_value("--dialect", "onnx").is_ok());
    }
}
