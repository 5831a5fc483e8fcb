//! The macro behind `arenite::include_model!` and `arenite::include_bundle!`: it checks a model file on the machine that compiles the program, with the load of
//! the runtime itself, and writes its steps as constants and calls.
//!
//! It is called by `arenite`'s own macros, which say where `arenite` is; nothing else calls it.

mod expression;
mod file;
mod module;
mod rust;

use std::path::{Path, PathBuf};

use arenite_checks::Model;
use proc_macro::{Delimiter, TokenStream, TokenTree};

use expression::evaluate;
use file::Read;

/// Items of a module: `[$crate] [path]` of a model, `[$crate] [path] [name = "entry", …]` of models of a bundle.
#[proc_macro]
pub fn compile(input: TokenStream) -> TokenStream {
    match compiled(input) {
        Ok(items) => items,
        Err(reason) => format!("::core::compile_error!({reason:?});")
            .parse()
            .unwrap_or_default(),
    }
}

fn compiled(input: TokenStream) -> Result<TokenStream, String> {
    let groups: Vec<TokenStream> = input
        .into_iter()
        .filter_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => Some(group.stream()),
            _ => None,
        })
        .collect();
    let read = |path: &TokenStream| {
        let evaluated = evaluate(path.clone())?;
        let file = file::read(beside(&evaluated.text, path))?;
        Ok::<_, String>((file, evaluated.variables))
    };
    match groups.as_slice() {
        [runtime, path] => model(runtime, read(path)?),
        [runtime, path, entries] => bundle(runtime, read(path)?, entries.clone()),
        _ => Err("arenite_include::compile! is called by arenite::include_model! alone".to_owned()),
    }
}

/// The file of a path: a relative one begins where the source file lies that states it, as that of `include_bytes!`.
fn beside(path: &str, stated: &TokenStream) -> PathBuf {
    match source(stated.clone()).as_deref().and_then(Path::parent) {
        Some(folder) => folder.join(path),
        None => path.into(),
    }
}

/// The file that an expression stands in: that of its first token, for the group around a macro's fragment is the macro's own.
fn source(expression: TokenStream) -> Option<PathBuf> {
    match expression.into_iter().next()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => source(group.stream()),
        token => token.span().local_file(),
    }
}

fn model(runtime: &TokenStream, (read, variables): (Read, Vec<String>)) -> Result<TokenStream, String> {
    let name = name(&read);
    let named = |reason: String| format!("{name}: {reason}");
    let model = file::model(&read.content, file::LOADED_MODEL).map_err(named)?;
    let text = module::items(&name, &model, read.content.bytes(), None).map_err(named)?;
    let watched = watched(&read, &variables) + &unchanged(&read, &name, read.ahead, &model);
    Ok(items(runtime, &(watched + &text), module::forms(&model)))
}

fn bundle(
    runtime: &TokenStream,
    (read, variables): (Read, Vec<String>),
    entries: TokenStream,
) -> Result<TokenStream, String> {
    let name = name(&read);
    let named = |reason: String| format!("{name}: {reason}");
    let mut all = start(runtime);
    all.extend(parsed(&watched(&read, &variables)));
    let (mut arena, mut weights) = (0, Vec::<(Vec<u8>, String)>::new());
    for (module, entry) in named_entries(entries)? {
        let found = file::entry(&read.content, &entry).map_err(named)?;
        let file = &found.content;
        let model = file::model(file, file::LOADED_BUNDLE).map_err(|reason| named(format!("{entry}: {reason}")))?;
        all.extend(parsed(&unchanged(&read, &name, read.ahead + found.ahead, &model)));
        arena = model.arena_bytes(0).max(arena);
        let known = weights.iter().find(|(bytes, _)| bytes == model.weights());
        let place = match known {
            Some((_, place)) => place.clone(),
            None => {
                let place = format!("WEIGHTS_{}", weights.len());
                all.extend(parsed(&module::weights(&place, model.weights())));
                weights.push((model.weights().to_vec(), place.clone()));
                place
            }
        };
        let of = format!("{name}: {entry}");
        let text = module::items(&of, &model, file.bytes(), Some(&format!("super::{place}"))).map_err(named)?;
        let inside = items(runtime, &text, module::forms(&model));
        all.extend(parsed(&format!("/// A model of the bundle.\npub mod {module}")));
        all.extend([TokenTree::Group(proc_macro::Group::new(Delimiter::Brace, inside))]);
    }
    all.extend(parsed(&format!(
        "/// Bytes of arena that serve every model in turn.\npub const ARENA_BYTES: usize = {arena};"
    )));
    Ok(all)
}

/// The file's name, for messages.
fn name(read: &Read) -> String {
    let name = read.path.file_name().unwrap_or(read.path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The module's items, and those that all modules have.
fn items(runtime: &TokenStream, text: &str, [regions, run]: [&str; 2]) -> TokenStream {
    let mut all = start(runtime);
    all.extend(parsed(text));
    all.extend(runtime.clone());
    all.extend(parsed(&format!("::__compiled! {{ {regions} {run} }}")));
    all
}

/// The runtime's name in a module.
fn start(runtime: &TokenStream) -> TokenStream {
    let mut all = parsed("use");
    all.extend(runtime.clone());
    all.extend(parsed("::compiled as rt;"));
    all
}

/// Constants that make the compiler ask again where the file or a variable has changed; the file's bytes are one of them, `FILE`.
fn watched(read: &Read, variables: &[String]) -> String {
    let variables = variables
        .iter()
        .map(|name| format!("const _: ::core::option::Option<&str> = ::core::option_env!({name:?});\n"))
        .collect::<String>();
    let file = std::path::absolute(&read.path).unwrap_or_else(|_| read.path.clone());
    let file = file.to_string_lossy().into_owned();
    format!("{variables}const FILE: &[u8] = ::core::include_bytes!({file:?});\n")
}

/// A check that the compiler found the file as it was when it was read, by the model that begins behind `ahead` bytes.
fn unchanged(read: &Read, name: &str, ahead: usize, model: &Model<'_>) -> String {
    let (length, crc) = (read.length, model.header().crc);
    let reason = format!("{name}: the file was changed while the program was compiled: compile it again");
    format!("const _: () = ::core::assert!(rt::is_file(FILE, {length}, {ahead}, {crc}), {reason:?});\n")
}

/// `name = "entry"`, between commas.
fn named_entries(entries: TokenStream) -> Result<Vec<(String, String)>, String> {
    let tokens: Vec<TokenTree> = entries.into_iter().collect();
    let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tokens
        .split(comma)
        .filter(|part| !part.is_empty())
        .map(|part| match part {
            [TokenTree::Ident(name), TokenTree::Punct(_), entry] => {
                let entry = evaluate(TokenStream::from(entry.clone()))?;
                Ok((name.to_string(), entry.text))
            }
            _ => Err("a model of a bundle is named as `name = \"ENTRY\"`".to_owned()),
        })
        .collect()
}

fn parsed(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| {
        format!(
            "::core::compile_error!({:?});",
            format!("arenite_include wrote what does not parse: {error}")
        )
        .parse()
        .unwrap_or_default()
    })
}
