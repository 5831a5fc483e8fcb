//! The macro behind `arenite::include_model!` and `arenite::include_bundle!`: it checks a model file on the machine that compiles the program, with the load of
//! the runtime itself, and writes its steps as constants and calls.
//!
//! It is called by `arenite`'s own macros, which say where `arenite` is; nothing else calls it.

mod expression;
mod file;
mod module;
mod rust;

use std::path::Path;

use proc_macro::{Delimiter, TokenStream, TokenTree};

use expression::{Evaluated, evaluate};

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
    match groups.as_slice() {
        [runtime, path] => model(runtime, evaluate(path.clone())?),
        [runtime, path, entries] => bundle(runtime, evaluate(path.clone())?, entries.clone()),
        _ => Err("arenite_include::compile! is called by arenite::include_model! alone".to_owned()),
    }
}

fn model(runtime: &TokenStream, path: Evaluated) -> Result<TokenStream, String> {
    let named = |reason: String| naming(&path.text, reason);
    let file = file::read(&path.text)?;
    let model = file::model(&file, file::LOADED_MODEL).map_err(named)?;
    let text = module::items(&model, file.bytes(), None).map_err(named)?;
    Ok(items(runtime, &(watched(&path) + &text), module::forms(&model)))
}

fn bundle(runtime: &TokenStream, path: Evaluated, entries: TokenStream) -> Result<TokenStream, String> {
    let named = |reason: String| naming(&path.text, reason);
    let bundle = file::read(&path.text)?;
    let mut all = start(runtime);
    all.extend(parsed(&watched(&path)));
    let (mut arena, mut weights) = (0, Vec::<(Vec<u8>, String)>::new());
    for (name, entry) in named_entries(entries)? {
        let file = file::entry(&bundle, &entry).map_err(named)?;
        let model = file::model(&file, file::LOADED_BUNDLE).map_err(|reason| named(format!("{entry}: {reason}")))?;
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
        let text = module::items(&model, file.bytes(), Some(&format!("super::{place}"))).map_err(named)?;
        let inside = items(runtime, &text, module::forms(&model));
        all.extend(parsed(&format!("/// A model of the bundle.\npub mod {name}")));
        all.extend([TokenTree::Group(proc_macro::Group::new(Delimiter::Brace, inside))]);
    }
    all.extend(parsed(&format!(
        "/// Bytes of arena that serve every model in turn.\npub const ARENA_BYTES: usize = {arena};"
    )));
    Ok(all)
}

/// Returns the message of an error, with the file's name.
fn naming(path: &str, reason: String) -> String {
    let name = Path::new(path)
        .file_name()
        .map_or(path.into(), |name| name.to_string_lossy());
    format!("{name}: {reason}")
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

/// Constants that make the compiler ask again where the file or a variable has changed.
fn watched(path: &Evaluated) -> String {
    let variables = path.variables.iter();
    let variables = variables
        .map(|name| format!("const _: ::core::option::Option<&str> = ::core::option_env!({name:?});\n"))
        .collect::<String>();
    let file = std::path::absolute(&path.text).unwrap_or_else(|_| path.text.clone().into());
    let file = file.to_string_lossy().into_owned();
    format!("{variables}const _: &[u8] = ::core::include_bytes!({file:?});\n")
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
