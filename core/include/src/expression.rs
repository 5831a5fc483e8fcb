//! The path that `include_model!` is given: a literal, `env!` and `concat!`, evaluated as the compiler does it.

use std::env;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Text of an expression, and the variables of the environment that it depends on.
#[derive(Debug, Default)]
pub(crate) struct Evaluated {
    pub(crate) text: String,
    pub(crate) variables: Vec<String>,
}

/// Evaluates an expression.
///
/// # Errors
/// The part of the expression that is not supported, and the forms that are.
pub(crate) fn evaluate(expression: TokenStream) -> Result<Evaluated, String> {
    let mut all = Evaluated::default();
    add(expression, &mut all)?;
    Ok(all)
}

fn add(expression: TokenStream, all: &mut Evaluated) -> Result<(), String> {
    let tokens: Vec<TokenTree> = expression.clone().into_iter().collect();
    match tokens.as_slice() {
        // A fragment matched by a `macro_rules!` comes in a group without delimiters.
        [TokenTree::Group(group)] if matches!(group.delimiter(), Delimiter::None | Delimiter::Parenthesis) => {
            add(group.stream(), all)
        }
        [TokenTree::Literal(literal)] => {
            all.text += &literal_text(&literal.to_string())?;
            Ok(())
        }
        [
            TokenTree::Ident(name),
            TokenTree::Punct(bang),
            TokenTree::Group(arguments),
        ] if bang.as_char() == '!' => call(&name.to_string(), arguments, all),
        // `core::env!` and its like.
        [
            ..,
            TokenTree::Punct(colon),
            TokenTree::Ident(name),
            TokenTree::Punct(bang),
            TokenTree::Group(arguments),
        ] if colon.as_char() == ':' && bang.as_char() == '!' => call(&name.to_string(), arguments, all),
        _ => Err(format!(
            "`{expression}` is no path that include_model! evaluates: it takes a literal, env! and concat! of these"
        )),
    }
}

fn call(name: &str, arguments: &Group, all: &mut Evaluated) -> Result<(), String> {
    let arguments = split(arguments.stream());
    match (name, arguments.as_slice()) {
        ("concat", parts) => parts.iter().try_for_each(|part| add(part.clone(), all)),
        ("env", [variable, ..]) => {
            let variable = evaluate(variable.clone())?.text;
            let value = env::var(&variable);
            all.variables.push(variable.clone());
            all.text += &value.map_err(|_| {
                format!("environment variable `{variable}` is not set, or no text, where the program is compiled")
            })?;
            Ok(())
        }
        _ => Err(format!(
            "`{name}!` is no macro that include_model! evaluates: it takes env! and concat!"
        )),
    }
}

/// Arguments between commas.
fn split(arguments: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tokens
        .split(comma)
        .filter(|part| !part.is_empty())
        .map(|part| part.iter().cloned().collect())
        .collect()
}

/// The text of a literal: a string, raw or not, a character, a number or a bool, as `concat!` has it.
fn literal_text(literal: &str) -> Result<String, String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let raw = raw.trim_matches('#');
        return Ok(raw.trim_matches('"').to_owned());
    }
    let quoted = |quote: char| {
        literal
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
            .map(unescaped)
    };
    match quoted('"').or_else(|| quoted('\'')) {
        Some(text) => text.ok_or_else(|| format!("the escape in {literal} is none that include_model! reads")),
        None if literal.starts_with(|c: char| c.is_ascii_digit()) => Ok(literal.to_owned()),
        None => Err(format!("{literal} is no text")),
    }
}

/// A string with its escapes read; `None` for an unknown one.
fn unescaped(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let mut read = String::new();
    while let Some(c) = chars.next() {
        if c != '\\' {
            read.push(c);
            continue;
        }
        read.push(match chars.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            c @ ('\\' | '"' | '\'') => c,
            'x' => char::from(u8::from_str_radix(&chars.by_ref().take(2).collect::<String>(), 16).ok()?),
            'u' => {
                let digits: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
            _ => return None,
        });
    }
    Some(read)
}
