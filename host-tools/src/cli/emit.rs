//! `pack --emit c FOLDER`: a model as a header and a source file of C, for programs that link the prebuilt library.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use arenite::blob::Section;
use arenite::{DType, MAX_REGIONS, Port};

use crate::files::{Draft, Output};
use crate::model::ModelView;
use crate::pack::Options;
use crate::{Error, ErrorKind, Result};

/// Bytes of the model on a line.
const BYTES_A_LINE: usize = 20;

/// Where the files go.
pub(super) struct Emit {
    folder: PathBuf,
}

/// Parts of a file for C, beside the model.
struct Named<'a> {
    /// Prefix of all names of the files.
    symbol: String,
    /// The network's name.
    network: &'a str,
    labels: &'a [String],
}

impl Emit {
    /// From the values of the option: a language, and a folder.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for another language.
    pub(super) fn of(values: &[PathBuf]) -> Result<Option<Self>> {
        let [language, folder] = values else { return Ok(None) };
        if language.as_os_str() != "c" {
            return Err(Error::new(ErrorKind::Usage, format!("--emit {}", language.display()))
                .expected("c, and a folder")
                .help("Rust programs include the model file itself: include_model!"));
        }
        Ok(Some(Self { folder: folder.clone() }))
    }

    /// Refuses what the library for C does not run.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming the other option.
    pub(super) fn check(&self, networks: &[Options]) -> Result<()> {
        let usage = |other: &str, expected: &str, help: &str| {
            let message = format!("--emit c with {other}");
            Err(Error::new(ErrorKind::Usage, message).expected(expected).help(help))
        };
        let [network] = networks else {
            return usage(
                "several inputs or signatures",
                "one of each",
                "pack each network by itself",
            );
        };
        let wants = [
            (network.stream_input, "--stream-input"),
            (network.stream.is_some(), "--region NAME=SIZE:stream"),
            (network.cores > 1, "--cores"),
            (network.accelerator.is_some(), "--accelerator"),
            (network.sign.is_some(), "--sign"),
        ];
        match wants.into_iter().find(|(wanted, _)| *wanted) {
            Some((_, other)) => {
                let help = "the library for C does not run such a model yet: docs/c.md";
                usage(other, "one of them", help)
            }
            None => Ok(()),
        }
    }

    /// Header and source of a model, written and not yet published; `others` are the other outputs.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for names that cannot be and files that are another's; [`ErrorKind::Io`].
    pub(super) fn drafts(
        &self,
        view: &ModelView<'_>,
        network: &str,
        options: &Options,
        others: &[&Output],
    ) -> Result<Vec<Draft>> {
        let io = |path: &Path, e: std::io::Error| Error::io(path, "write the model as C", &e);
        let named = Named {
            symbol: symbol(&options.output, network)?,
            network,
            labels: &options.labels,
        };
        std::fs::create_dir_all(&self.folder).map_err(|e| io(&self.folder, e))?;
        let to = |extension| Output::to(&self.folder.join(&named.symbol).with_extension(extension));
        let outputs = [to("h")?, to("c")?];
        Output::all_differ(others.iter().copied().chain(&outputs))?;
        let training = view.training()?;
        let training = training.as_ref();
        let mut drafts = Vec::new();
        let texts = [header(view, training, &named), source(view, training, &named)];
        for (output, text) in outputs.iter().zip(texts) {
            options.reads().iter().try_for_each(|read| output.differs_from(read))?;
            may_replace(output.path(), &first_line(&named))?;
            drafts.push(output.draft_of(text.as_bytes()).map_err(|e| io(output.path(), e))?);
        }
        Ok(drafts)
    }
}

/// A name for C: the output file's, else the network's.
fn symbol(output: &Path, network: &str) -> Result<String> {
    let stem = output.file_stem().filter(|stem| *stem != "-");
    let name = stem.map_or_else(|| network.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let in_c = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut symbol: String = name.chars().map(in_c).collect();
    if !symbol.starts_with(|c: char| c.is_ascii_alphabetic()) {
        symbol.insert_str(0, "model_");
    }
    if symbol.eq_ignore_ascii_case("arenite") {
        return Err(
            Error::new(ErrorKind::Usage, format!("--emit c of a model file called {name}"))
                .expected("another name than the library's")
                .help("the functions are named after the model file: give another one with -o"),
        );
    }
    Ok(symbol)
}

/// That a file is not there, or is what `pack` wrote of the same network.
fn may_replace(path: &Path, first: &str) -> Result<()> {
    let Ok(old) = std::fs::read_to_string(path) else {
        return Ok(());
    };
    if old.lines().next() == Some(first) {
        return Ok(());
    }
    let message = "it is there, and is not of this network";
    Err(Error::new(ErrorKind::Usage, message)
        .in_file(path)
        .expected(format!("none, or one that begins with {first}"))
        .help("two models of one name would have the same functions: give the model file another name with -o, or remove that file"))
}

/// The line that says whose files they are.
fn first_line(named: &Named<'_>) -> String {
    format!(
        "/* The network {}: written by `pack --emit c`. */",
        quoted(named.network)
    )
}

fn header(view: &ModelView<'_>, training: Option<&ModelView<'_>>, named: &Named<'_>) -> String {
    let Named { symbol, .. } = named;
    let upper = symbol.to_ascii_uppercase();
    let arenas = arenas(view);
    let header = view.header();
    let mut text = first_line(named);
    let mut line = |args: std::fmt::Arguments<'_>| _ = writeln!(text, "{args}");
    line(format_args!(
        "\n#ifndef {upper}_H\n#define {upper}_H\n\n#include \"arenite.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n"
    ));
    line(format_args!(
        "/* Packed for the target {}. Bytes of the model file, the arena and the state. */",
        view.target_name()
    ));
    line(format_args!("#define {upper}_MODEL_BYTES {}u", view.header().total));
    match arenas[..] {
        [bytes] => line(format_args!("#define {upper}_ARENA_BYTES {bytes}u")),
        _ => arenas
            .iter()
            .enumerate()
            .for_each(|(region, bytes)| line(format_args!("#define {upper}_ARENA_{region}_BYTES {bytes}u"))),
    }
    line(format_args!("#define {upper}_STATE_BYTES {}u", header.state_init.len));
    for (kind, ports) in [("INPUT", &view.inputs), ("OUTPUT", &view.outputs)] {
        for (at, port) in ports.iter().enumerate() {
            line(format_args!(
                "\n/* {} {at}, {}: {} {:?}. */",
                kind.to_lowercase(),
                quoted(port.name),
                element(port.dtype),
                &port.shape[..]
            ));
            line(format_args!("#define {upper}_{kind}_{at}_ELEMENTS {}u", elements(port)));
            if port.scale != 0.0 {
                line(format_args!(
                    "/* A number is the scale times what is stored less the zero point. */"
                ));
                line(format_args!("#define {upper}_{kind}_{at}_SCALE {:e}f", port.scale));
                line(format_args!(
                    "#define {upper}_{kind}_{at}_ZERO_POINT ({})",
                    port.zero_point
                ));
            }
        }
    }
    if !named.labels.is_empty() {
        line(format_args!(
            "\n/* The class labels. */\n#define {upper}_LABELS {}u",
            named.labels.len()
        ));
        line(format_args!(
            "extern const char *const {symbol}_labels[{upper}_LABELS];"
        ));
    }
    line(format_args!(
        "\n/* The model file. */\nextern const uint8_t {symbol}_model[{upper}_MODEL_BYTES];"
    ));
    line(format_args!(
        "\n/* Its session, once it is open, for the functions of arenite.h. */\nextern arenite_session {symbol}_session;"
    ));
    let about = if arenas.len() == 1 {
        "memory of its own"
    } else {
        "memories of at least the bytes above"
    };
    line(format_args!(
        "\n/* Checks the model and opens its session, in {about}. */\n{};",
        memories(symbol, "open", &arenas)
    ));
    line(format_args!(
        "\n/* Runs the network: all elements of each input, row-major, and all of each output. {}*/\n{};",
        if header.state_init.len > 0 {
            "The state stays. "
        } else {
            ""
        },
        call(symbol, "run", &parameters(view))
    ));
    if let Some(training) = training {
        line(format_args!(
            "\n/* What it has learnt. Kept somewhere and put back, it is what {symbol}_resume() goes on with. */\n\
             extern uint8_t {symbol}_state[{upper}_STATE_BYTES];\n\n\
             /* As {symbol}_open(), on what the state holds. */\n{};",
            memories(symbol, "resume", &arenas)
        ));
        line(format_args!(
            "\n/* A step of training, which changes the state; {symbol}_run() runs the network as it is then. */\n{};",
            call(symbol, "train", &parameters_of_training(view, training))
        ));
    }
    line(format_args!("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif"));
    text
}

fn source(view: &ModelView<'_>, training: Option<&ModelView<'_>>, named: &Named<'_>) -> String {
    let Named { symbol, labels, .. } = named;
    let upper = symbol.to_ascii_uppercase();
    let arenas = arenas(view);
    let mut text = first_line(named);
    let mut line = |args: std::fmt::Arguments<'_>| _ = writeln!(text, "{args}");
    line(format_args!(
        "\n#include \"{symbol}.h\"\n\n#include <string.h>\n\n\
         /* Where models, arenas and states begin. */\n\
         #if defined(__cplusplus)\n#define ALIGNED alignas(16)\n\
         #elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n#define ALIGNED _Alignas(16)\n\
         #else\n#define ALIGNED __attribute__((aligned(16)))\n#endif\n"
    ));
    line(format_args!(
        "ALIGNED const uint8_t {symbol}_model[{upper}_MODEL_BYTES] = {{"
    ));
    for bytes in file(view).chunks(BYTES_A_LINE) {
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        line(format_args!("{},", bytes.join(",")));
    }
    line(format_args!("}};\n"));
    if !labels.is_empty() {
        line(format_args!("const char *const {symbol}_labels[{upper}_LABELS] = {{"));
        labels
            .iter()
            .for_each(|label| line(format_args!("    {},", literal(label))));
        line(format_args!("}};\n"));
    }
    line(format_args!("arenite_session {symbol}_session;\n"));
    let has_state = view.header().state_init.len > 0;
    if arenas.len() == 1 {
        line(format_args!("ALIGNED static uint8_t arena[{upper}_ARENA_BYTES];"));
    }
    let state = if training.is_some() {
        format!("{symbol}_state")
    } else {
        "state".to_owned()
    };
    if has_state {
        let own = if training.is_some() { "" } else { "static " };
        line(format_args!("ALIGNED {own}uint8_t {state}[{upper}_STATE_BYTES];"));
    }
    let state = if has_state {
        format!("{state}, sizeof {state}")
    } else {
        "NULL, 0".to_owned()
    };
    let mut opens = vec!["open"];
    opens.extend(training.map(|_| "resume"));
    for how in opens {
        let (of, arena) = match arenas.len() {
            1 => ("", "arena, sizeof arena"),
            _ => ("_in", "arenas"),
        };
        line(format_args!(
            "\n{}\n{{\n    return arenite_{how}{of}(&{symbol}_session, {symbol}_model, sizeof {symbol}_model, {arena}, {state});\n}}",
            memories(symbol, how, &arenas)
        ));
    }
    line(format_args!(
        "\n{}\n{}",
        call(symbol, "run", &parameters(view)),
        body(view.inputs.len(), &parameters(view), symbol)
    ));
    if let Some(training) = training {
        let all = parameters_of_training(view, training);
        let names: Vec<&str> = all.iter().map(|parameter| parameter.name.as_str()).collect();
        line(format_args!(
            "\nstatic {}\n{}\n\n{}\n{{\n    arenite_code code = arenite_turn_to_training(&{symbol}_session);\n    \
             if (code != ARENITE_OK)\n        return code;\n    code = {symbol}_train_step({});\n    \
             arenite_turn_to_inference(&{symbol}_session);\n    return code;\n}}",
            call(symbol, "train_step", &all),
            body(training.inputs.len(), &all, symbol),
            call(symbol, "train", &all),
            names.join(", ")
        ));
    }
    text
}

/// The block of a function that sets all inputs, runs, and copies all outputs.
fn body(inputs: usize, all: &[Parameter], symbol: &str) -> String {
    let mut text = "{\n    const void *place;\n    size_t bytes;\n    arenite_code code;\n".to_owned();
    let mut line = |args: std::fmt::Arguments<'_>| _ = writeln!(text, "{args}");
    let (inputs, outputs) = all.split_at(inputs.min(all.len()));
    for (at, Parameter { name, elements, .. }) in inputs.iter().enumerate() {
        let size = format!("{elements}u * sizeof *{name}");
        line(format_args!(
            "    if ((code = arenite_set_input(&{symbol}_session, {at}, {name}, {size})) != ARENITE_OK)\n        return code;"
        ));
    }
    line(format_args!(
        "    if ((code = arenite_run(&{symbol}_session)) != ARENITE_OK)\n        return code;"
    ));
    for (at, Parameter { name, .. }) in outputs.iter().enumerate() {
        line(format_args!(
            "    if ((code = arenite_output(&{symbol}_session, {at}, &place, &bytes)) != ARENITE_OK)\n        return code;\n    memcpy({name}, place, bytes);"
        ));
    }
    text + "    return ARENITE_OK;\n}"
}

/// All of the file.
fn file<'a>(view: &ModelView<'a>) -> &'a [u8] {
    let len = view.header().total;
    view.section(Section { offset: 0, len })
}

/// Bytes of each region up to the last one that is used; one at least.
fn arenas(view: &ModelView<'_>) -> Vec<u64> {
    let regions = view.header().arena;
    let used = (1..MAX_REGIONS).rev().find(|&region| regions[region] > 0).unwrap_or(0);
    // An array of C has one element at least.
    regions[..=used].iter().map(|&bytes| u64::from(bytes).max(1)).collect()
}

/// The head of a function that takes the memories of an arena.
fn memories(symbol: &str, function: &str, arenas: &[u64]) -> String {
    let memories = if arenas.len() == 1 {
        "void"
    } else {
        "const arenite_memory arenas[ARENITE_REGIONS]"
    };
    format!("arenite_code {symbol}_{function}({memories})")
}

/// A parameter of a function: an array.
struct Parameter {
    name: String,
    constant: &'static str,
    element: &'static str,
    elements: u64,
}

/// The inputs of the network, then its outputs.
fn parameters(view: &ModelView<'_>) -> Vec<Parameter> {
    parameters_of(view, [view.inputs.len(), 0])
}

/// The same of its steps of training. Labels or a target, and the rate, come behind the network's own inputs, the loss and what was ignored before all that
/// is kept: these have the names that `pack --train` gives them.
fn parameters_of_training(view: &ModelView<'_>, training: &ModelView<'_>) -> Vec<Parameter> {
    let given = ["loss", "ignored_labels"];
    let is_given = |port: &Port<'_>, name: &str| port.name == name;
    let outputs = training.outputs.iter().zip(given);
    parameters_of(
        training,
        [
            view.inputs.len(),
            outputs.take_while(|(port, name)| is_given(port, name)).count(),
        ],
    )
}

/// The first `plain` inputs by their numbers, the others by their names; the first `known` outputs by their names, the others by their numbers.
fn parameters_of(view: &ModelView<'_>, [plain, known]: [usize; 2]) -> Vec<Parameter> {
    let of = |kind: &str, constant, ports: &[Port<'_>], by_name: &dyn Fn(usize) -> bool| -> Vec<Parameter> {
        let others = (0..ports.len()).filter(|&at| !by_name(at)).count();
        let all = ports.iter().enumerate().map(|(at, port)| Parameter {
            name: match at {
                at if by_name(at) => port.name.to_owned(),
                _ if others == 1 => kind.to_owned(),
                at => format!("{kind}_{at}"),
            },
            constant,
            element: element(port.dtype),
            elements: elements(port),
        });
        all.collect()
    };
    let mut all = of("input", "const ", &view.inputs, &|at| at >= plain);
    all.extend(of("output", "", &view.outputs, &|at| at < known));
    all
}

/// The head of a function of these parameters.
fn call(symbol: &str, function: &str, parameters: &[Parameter]) -> String {
    let all = parameters.iter().map(|parameter| {
        let Parameter {
            name,
            constant,
            element,
            elements,
        } = parameter;
        format!("{constant}{element} {name}[{elements}]")
    });
    let all: Vec<String> = all.collect();
    let all = if all.is_empty() {
        "void".to_owned()
    } else {
        all.join(", ")
    };
    format!("arenite_code {symbol}_{function}({all})")
}

fn elements(port: &Port<'_>) -> u64 {
    port.shape.iter().map(|&extent| u64::from(extent)).product()
}

fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::I8 => "int8_t",
        DType::U8 | DType::Bool => "uint8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
    }
}

/// A name in a comment, which it cannot end or go on behind its line.
fn quoted(name: &str) -> String {
    let escaped: String = name.escape_debug().collect();
    format!("\"{}\"", escaped.replace("*/", "* /").replace("/*", "/ *"))
}

/// A string literal: what is not printable ASCII as three octal digits, and no trigraph.
fn literal(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_those_of_c() {
        let of = |output: &str, network: &str| symbol(Path::new(output), network).map_err(|error| error.to_string());
        assert_eq!(of("a/kws-2.bin", "net"), Ok("kws_2".into()));
        assert_eq!(of("-", "9 lives"), Ok("model_9_lives".into()));
        assert_eq!(of("_x.bin", "net"), Ok("model__x".into()));
        assert_eq!(of("größe.bin", "net"), Ok("gr__e".into()));
        assert!(of("Arenite.bin", "net").unwrap_err().contains("the library's"));
    }

    #[test]
    fn hostile_texts_stay_texts() {
        assert_eq!(quoted("a*/\nint x;/*"), "\"a* /\\nint x;/ *\"");
        assert_eq!(literal("\"a\"\\ ??/ \n\u{e9}1"), r#""\"a\"\\ \?\?/ \012\303\2511""#);
        // Text that both make of "*" and "/" apart is one comment still.
        assert!(!quoted("*\u{0}/").contains("*/"));
    }
}
