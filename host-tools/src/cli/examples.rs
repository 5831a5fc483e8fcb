//! Text below the options in `--help`: examples, which a test parses, and the names that an option takes.

use arenite::Target;

use crate::board::{BOARDS, FLASHES};
use crate::chips;

/// Examples of a command, by its name.
const EXAMPLES: [(&str, &[&str]); 24] = [
    (
        "pack",
        &[
            "pack net.tflite -o net.bin --target cortex-m4",
            "pack net.trace.json --weights net.safetensors -o net.bin --report net.html",
            "pack net.onnx -o net.bin --dtype int8 --calibrate samples.npz",
            "pack trace.txt --weights seeded:1 -o net.bin --region sram=256K --max-flash 1M",
            "pack wake.tflite words.tflite -o both.bin",
        ],
    ),
    (
        "inspect",
        &[
            "arenite inspect net.bin --steps",
            "arenite inspect both.bin#words --json",
        ],
    ),
    (
        "verify",
        &["arenite verify net.bin", "arenite verify net.bin --trust key.pub.pem"],
    ),
    (
        "run",
        &[
            "arenite run net.bin --input x.npy --output y.npy",
            "arenite run net.bin --input x.npy --on qemu:mps2-an386",
            "arenite run net.bin --input x.npy --on serial:/dev/ttyACM0:115200",
        ],
    ),
    (
        "bench",
        &[
            "arenite bench net.bin --on qemu:mps2-an386",
            "arenite bench net.bin --all --json",
        ],
    ),
    (
        "trace",
        &["arenite trace net.bin --on qemu:mps2-an386 --perfetto net.json"],
    ),
    (
        "eval",
        &["arenite eval net.bin --inputs images.npy --labels labels.npy"],
    ),
    (
        "train",
        &[
            "arenite train net.bin --inputs images.npy --labels labels.npy --rate 0.01 --state-out net.state",
            "arenite train net.bin --inputs x.npy --labels y.npy --rate 0.01 --on qemu:mps2-an386 --state-out s",
        ],
    ),
    (
        "diff",
        &[
            "arenite diff net.bin reference.npz",
            "arenite diff int8.bin --float f32.bin --inputs images.npy",
        ],
    ),
    (
        "generate",
        &[
            "arenite generate story.bin --prompt 'Once upon a time' --tokens 100",
            "arenite generate story.bin --prompt Lily --tokens 100 --temperature 0.8 --top-p 0.9 --seed 7 --on qemu:mps2-an386",
        ],
    ),
    ("plan", &["arenite plan buffers.csv --capacity 65536"]),
    (
        "weights",
        &[
            "arenite weights net.trace.json --list",
            "arenite weights net.trace.json --seed 1 -o net.safetensors",
        ],
    ),
    ("migrate", &["arenite migrate old.bin -o new.bin"]),
    ("keygen", &["arenite keygen -o key.pem"]),
    ("explain-code", &["arenite explain-code 0x12ff0003"]),
    ("doctor", &["arenite doctor", "arenite doctor --fix"]),
    (
        "report",
        &[
            "arenite report net.bin -o net.html",
            "arenite report net.bin --trace net.tflite --on qemu:mps2-an386 -o net.html",
        ],
    ),
    ("compare", &["arenite compare old.bin new.bin"]),
    ("size", &["arenite size net.bin --chip nrf52840"]),
    (
        "limits",
        &[
            "arenite limits net.bin --bench bench.json --limits limits.json",
            "arenite limits net.bin --bench bench.json --limits limits.json --record",
        ],
    ),
    ("new", &["arenite new --chip rp2040 blinking"]),
    (
        "flash",
        &[
            "arenite flash target/thumbv6m-none-eabi/release/blinking --chip rp2040",
            "arenite flash net.bin --chip nrf52840 --address 0x80000",
        ],
    ),
    ("watch", &["arenite watch net.tflite --on qemu:mps2-an386"]),
    ("update", &["arenite update net.bin --serial /dev/ttyACM0"]),
];

/// How wide a line of help is at most, whatever the terminal.
pub(super) const COLUMNS: usize = 100;

/// The command with what `--help` says below its options.
pub(super) fn helped(mut command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, helped);
    }
    let mut parts = Vec::new();
    if let Some((name, examples)) = EXAMPLES.iter().find(|(name, _)| *name == command.get_name()) {
        parts.push(format!("Examples:\n  {}", examples.join("\n  ")));
        let takes = |option: &str| {
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(option))
        };
        if takes("target") {
            parts.push(listed("Targets", Target::ALL.iter().map(|target| target.name())));
        }
        if takes("on") {
            parts.push(listed("Boards of qemu", BOARDS.iter().map(|board| board.name)));
        }
        if takes("chip") {
            parts.push(match *name {
                "bench" | "trace" => listed("Chips whose flash is known", FLASHES.iter().map(|flash| flash.name)),
                _ => listed("Chips", chips::all().iter().map(|chip| chip.name)),
            });
        }
    }
    if parts.is_empty() {
        return command;
    }
    command.after_help(parts.join("\n\n"))
}

/// A list, in lines of at most [`COLUMNS`].
fn listed<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut text = format!("{what}:");
    let mut column = text.len();
    let mut names = names.peekable();
    while let Some(name) = names.next() {
        let comma = if names.peek().is_some() { "," } else { "" };
        let wide = 1 + name.len() + comma.len();
        if column + wide > COLUMNS {
            text += "\n ";
            column = 1;
        }
        column += wide;
        text = text + " " + name + comma;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Flash;
    use crate::cli::commands;

    #[test]
    fn help_lists_the_chips_that_the_command_takes() {
        let [_, mut arenite] = commands();
        let mut listed_for = Vec::new();
        for command in arenite.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            let Some((_, chips)) = help.split_once("\nChips") else {
                continue;
            };
            let (_, chips) = chips.split_once(':').expect("a list");
            let name = command.get_name();
            listed_for.push(name.to_owned());
            for chip in chips.split("\n\n").next().unwrap_or_default().split([',', '\n']) {
                let chip = chip.trim();
                let taken = match name {
                    "bench" | "trace" => Flash::find(chip).is_some(),
                    _ => chips::named(chip).is_ok(),
                };
                assert!(chip.is_empty() || taken, "{name} does not take {chip}");
            }
        }
        assert_eq!(listed_for, ["bench", "trace", "size", "new", "flash"]);
    }

    #[test]
    fn every_command_has_examples_and_takes_them() {
        let [pack, arenite] = commands();
        let mut named: Vec<String> = arenite.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        named.push("pack".to_owned());
        named.sort();
        let mut known: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        assert_eq!(named, known);
        for (name, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "{name}");
            for example in examples {
                let command = if example.starts_with("pack ") { &pack } else { &arenite };
                // Between quotes is one word.
                let parts = example.split('\'').enumerate();
                let words: Vec<&str> = parts
                    .flat_map(|(at, part)| match at % 2 {
                        0 => part.split_whitespace().collect(),
                        _ => vec![part],
                    })
                    .collect();
                assert!(words.first() == Some(&name) || words.get(1) == Some(&name), "{example}");
                let taken = command.clone().try_get_matches_from(words);
                assert!(taken.is_ok(), "{example}: {}", taken.expect_err("refused"));
            }
        }
    }
}
