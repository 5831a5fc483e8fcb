//! How every command writes its files: whole or not at all, and never over what it reads.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, done, refused, run};

/// A command that writes a file: how it is called with the place to write to, and what it reads.
pub(crate) struct Writer {
    pub(crate) name: &'static str,
    arguments: Box<dyn Fn(&Path) -> Command>,
    inputs: Vec<PathBuf>,
}

impl Writer {
    pub(crate) fn to(&self, output: &Path) -> Command {
        (self.arguments)(output)
    }
}

/// Every command that writes a file, on copies of what it reads.
pub(crate) fn writers(bench: &Bench) -> Vec<Writer> {
    let copy = |file: &str| {
        fs::copy(digits(file), bench.path(file)).expect("copied");
        bench.path(file)
    };
    let beside = |network: &str| {
        let files = ["trace.json", "safetensors", "samples.safetensors"];
        files.map(|kind| copy(&format!("{network}.{kind}")))
    };
    let [mlp, mlp_weights, mlp_samples] = beside("mlp");
    let [residual, residual_weights, residual_samples] = beside("residual");
    let (labels, buffers, model, x) = (
        bench.path("labels.txt"),
        bench.path("b.csv"),
        bench.path("ready.bin"),
        copy("test_images.npy"),
    );
    fs::write(&labels, "zero\none\n").expect("written");
    fs::write(&buffers, "id,lower,upper,size\na,0,2,100\nb,1,3,50\n").expect("written");
    done(run(PACK, &[&mlp, Path::new("-o"), &model]));

    let writer = |name, inputs: Vec<PathBuf>, program: &'static str, before: Vec<OsString>| Writer {
        name,
        inputs,
        arguments: Box::new(move |output| {
            let mut command = Command::new(program);
            command.args(&before).arg(output);
            command
        }),
    };
    let mlp_weights2 = mlp_weights.clone();
    let words = |words: &[&dyn AsRef<std::ffi::OsStr>]| words.iter().map(|word| word.as_ref().into()).collect();
    vec![
        writer(
            "pack",
            vec![mlp.clone(), mlp_weights.clone(), mlp_samples.clone(), labels.clone()],
            PACK,
            words(&[&mlp, &"--labels", &labels, &"-o"]),
        ),
        writer(
            "pack",
            vec![mlp.clone(), mlp_weights.clone()],
            PACK,
            words(&[&mlp, &"--weights", &mlp_weights, &"-o"]),
        ),
        writer(
            "pack",
            vec![
                mlp.clone(),
                residual.clone(),
                residual_weights,
                residual_samples,
                mlp_samples,
            ],
            PACK,
            words(&[&mlp, &residual, &"-o"]),
        ),
        writer(
            "weights",
            vec![mlp.clone(), mlp_weights],
            ARENITE,
            words(&[&"weights", &mlp, &"--seed", &"7", &"-o"]),
        ),
        writer(
            "plan",
            vec![buffers.clone()],
            ARENITE,
            words(&[&"plan", &buffers, &"-o"]),
        ),
        writer(
            "migrate",
            vec![model.clone()],
            ARENITE,
            words(&[&"migrate", &model, &"-o"]),
        ),
        writer(
            "report",
            vec![model.clone(), mlp.clone(), mlp_weights2],
            ARENITE,
            words(&[&"report", &model, &"--trace", &mlp, &"-o"]),
        ),
        writer(
            "run",
            vec![model.clone(), x.clone()],
            ARENITE,
            words(&[&"run", &model, &"--input", &x, &"--output"]),
        ),
    ]
}

/// `pack`'s second output.
fn page_writer(bench: &Bench) -> Writer {
    let files = ["mlp.trace.json", "mlp.safetensors", "mlp.samples.safetensors"].map(|file| bench.path(file));
    let (trace, model) = (files[0].clone(), bench.path("ready.bin"));
    Writer {
        name: "pack --report",
        inputs: files.to_vec(),
        arguments: Box::new(move |page| {
            let mut command = Command::new(PACK);
            command.arg(&trace).arg("-o").arg(&model).arg("--report").arg(page);
            command
        }),
    }
}

#[test]
fn every_command_with_an_output_is_among_them() {
    let bench = Bench::new();
    let known: Vec<_> = writers(&bench).iter().map(|writer| writer.name).collect();
    let help = done(run(ARENITE, &["--help"]));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // Lines that go on with a description begin further to the right.
    let commands: Vec<_> = commands
        .map_while(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"inspect") && commands.len() > 8, "{commands:?}");
    for command in commands.into_iter().filter(|&command| command != "help") {
        let help = done(run(ARENITE, &[command, "--help"]));
        let writes = help.contains("--output");
        // `keygen` has no input, and never replaces a file.
        let wanted = writes && command != "keygen";
        assert_eq!(wanted, known.contains(&command), "{command}");
    }
}

#[test]
fn lines_of_help_are_within_a_hundred_columns() {
    let arenite = done(run(ARENITE, &["--help"]));
    let commands = arenite.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.map_while(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let of = |command| done(run(ARENITE, &["help", command]));
    // The first words of lines that go on with a description are no commands.
    let known = commands.filter(|command| run(ARENITE, &["help", command]).status.success());
    let all: Vec<String> = known
        .map(of)
        .chain([arenite.clone(), done(run(PACK, &["--help"]))])
        .collect();
    assert!(all.len() > 15, "{}", all.len());
    let wide = all
        .iter()
        .flat_map(|help| help.lines())
        .find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn an_output_is_never_one_of_the_inputs() {
    let bench = Bench::new();
    for writer in writers(&bench).into_iter().chain([page_writer(&bench)]) {
        for input in &writer.inputs {
            let before = fs::read(input).expect("readable");
            let (hard, soft) = (bench.path("hard link"), bench.path("soft link"));
            let _ = (fs::remove_file(&hard), fs::remove_file(&soft));
            fs::hard_link(input, &hard).expect("linked");
            #[cfg(unix)]
            std::os::unix::fs::symlink(input, &soft).expect("linked");
            let names = bench.names();
            for output in [input, &hard, &soft] {
                if !output.exists() {
                    continue;
                }
                let message = refused(writer.to(output).output().expect("it starts"), 2);
                let said = message.contains(&*output.to_string_lossy()) && message.contains(&*input.to_string_lossy());
                assert!(said, "{}: {message}", writer.name);
            }
            assert_eq!(
                fs::read(input).expect("still there"),
                before,
                "{}: {input:?}",
                writer.name
            );
            assert_eq!(bench.names(), names, "{}", writer.name);
        }
    }
}

#[test]
fn two_outputs_are_never_one_file() {
    let bench = Bench::new();
    // Two networks in one, so two outputs.
    let trace = bench.path("two.trace.json");
    fs::write(&trace, TWO_OUTPUTS).expect("written");
    let (model, x, y) = (bench.path("two.bin"), bench.path("x.npy"), bench.path("y.npy"));
    done(run(PACK, &[&trace, Path::new("-o"), &model]));
    ndarray_npy::write_npy(&x, &ndarray::arr2(&[[1f32, -2.0, 3.0]])).expect("written");
    let mut command = Command::new(ARENITE);
    command
        .arg("run")
        .arg(&model)
        .arg("--input")
        .arg(&x)
        .arg("--output")
        .args([&y, &y]);
    let message = refused(command.output().expect("it starts"), 2);
    assert!(message.contains("y.npy") && !y.exists(), "{message}");
}

const TWO_OUTPUTS: &str = r#"{
  "arenite_trace": 1, "name": "two", "inputs": ["x"], "outputs": ["a", "b"],
  "tensors": {
    "x": {"dtype": "f32", "shape": [1, 3], "role": "input"},
    "a": {"dtype": "f32", "shape": [1, 3], "role": "activation"},
    "b": {"dtype": "f32", "shape": [1, 3], "role": "activation"}
  },
  "ops": [
    {"name": "one", "op": "tanh", "inputs": ["x"], "outputs": ["a"]},
    {"name": "two", "op": "relu", "inputs": ["x"], "outputs": ["b"]}
  ]
}"#;

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

    #[test]
    fn an_output_that_is_a_link_keeps_it_and_replaces_its_target() {
        let bench = Bench::new();
        fs::create_dir(bench.path("elsewhere")).expect("made");
        for writer in writers(&bench) {
            let (target, link, way) = (bench.path("elsewhere/target"), bench.path("link"), bench.path("way"));
            for before in [Some("the old one"), None] {
                let _ = [&target, &link, &way].map(fs::remove_file);
                before
                    .into_iter()
                    .for_each(|text| fs::write(&target, text).expect("written"));
                // A link to a link, both relative to where they are.
                symlink("elsewhere/target", &way).expect("linked");
                symlink("way", &link).expect("linked");
                done(writer.to(&link).output().expect("it starts"));
                for path in [&link, &way] {
                    assert!(
                        fs::symlink_metadata(path).expect("there").is_symlink(),
                        "{}",
                        writer.name
                    );
                }
                assert!(fs::metadata(&target).expect("there").is_file(), "{}", writer.name);
                assert_ne!(fs::read(&target).expect("readable"), b"the old one", "{}", writer.name);
                assert_eq!(fs::read_dir(bench.path("elsewhere")).expect("a folder").count(), 1);
            }
            symlink("round", bench.path("round")).expect("linked");
            let message = refused(writer.to(&bench.path("round")).output().expect("it starts"), 1);
            assert!(message.contains("round"), "{message}");
            fs::remove_file(bench.path("round")).expect("removed");
        }
    }

    #[test]
    fn an_output_is_no_device_and_no_pipe() {
        let bench = Bench::new();
        let pipe = bench.path("pipe");
        done(run("mkfifo", &[&pipe]));
        let socket = bench.path("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        // A node of its own: were this test to fail as root, the machine's /dev/null would be a file.
        let device = bench.path("null");
        let made = Command::new("mknod").arg(&device).args(["c", "1", "3"]).output();
        let made = made.is_ok_and(|output| output.status.success());
        if !made {
            eprintln!("skipped: a device as output: mknod is not allowed here");
        }
        let places = [Some(pipe), Some(socket), made.then_some(device)];
        for writer in writers(&bench) {
            for place in places.iter().flatten() {
                let kind = fs::metadata(place).expect("there").file_type();
                let message = refused(writer.to(place).output().expect("it starts"), 2);
                assert!(
                    message.contains(&*place.to_string_lossy()) && message.contains("-o -"),
                    "{}: {message}",
                    writer.name
                );
                assert!(!kind.is_file());
                assert_eq!(fs::metadata(place).expect("there").file_type(), kind, "{}", writer.name);
            }
        }
        assert!(
            places[0]
                .as_ref()
                .is_some_and(|p| fs::metadata(p).is_ok_and(|m| m.file_type().is_fifo()))
        );
    }

    #[test]
    fn an_output_has_the_mode_of_a_new_file_or_that_of_the_file_before() {
        let bench = Bench::new();
        let output = bench.path("out");
        for writer in writers(&bench) {
            let _ = fs::remove_file(&output);
            let mode = || fs::metadata(&output).expect("written").mode() & 0o7777;
            let command = writer.to(&output);
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "umask 027; exec \"$@\"", "sh"])
                .arg(command.get_program())
                .args(command.get_args());
            done(shell.output().expect("it starts"));
            assert_eq!(mode(), 0o640, "{}", writer.name);
            fs::set_permissions(&output, fs::Permissions::from_mode(0o604)).expect("changed");
            done(writer.to(&output).output().expect("it starts"));
            assert_eq!(mode(), 0o604, "{}", writer.name);
        }
    }
}
