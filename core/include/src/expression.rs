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
            path @ ..,
            TokenTree::Ident(name),
            TokenTree::Punct(bang),
            TokenTree::Group(arguments),
        ] if is_of_library(&path.iter().map(TokenTree::to_string).collect::<String>()) && bang.as_char() == '!' => {
            call(&name.to_string(), arguments, all)
        }
        _ => Err(format!(
            "`{expression}` is no path that include_model! evaluates: it takes a literal, env! and concat! of these"
        )),
    }
}

/// Whether the path in front of a macro's name is that of the standard library.
fn is_of_library(path: &str) -> bool {
    ["core::", "std::"].contains(&path.strip_prefix("::").unwrap_or(path))
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
        let around = raw.len() - raw.trim_start_matches('#').len() + 1;
        let text = raw.get(around..raw.len().saturating_sub(around));
        return text
            .map(ToOwned::to_owned)
            .ok_or_else(|| format!("{literal} is no text"));
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
    let mut chars = text.chars().peekable();
    let mut read = String::new();
    while let Some(c) = chars.next() {
        if c != '\\' {
            read.push(c);
            continue;
        }
        if chars.peek() == Some(&'\n') {
            // The line goes on behind the white space of the next one.
            while chars.next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_string_keeps_its_quotes_and_hashes() {
        let text = |literal: &str| literal_text(literal).expect("text");
        assert_eq!(text(r###"r"a""###), "a");
        assert_eq!(text(r###"r#""a"b""#"###), "\"a\"b\"");
        assert_eq!(text(r###"r##"#a#"##"###), "#a#");
        assert_eq!(text("r\"\""), "");
    }

    #[test]
    fn a_string_goes_on_behind_a_backslash_at_the_end_of_a_line() {
        assert_eq!(literal_text("\"a\\\n  \t\n b\\n\"").expect("text"), "ab\n");
        assert!(literal_text("\"\\q\"").is_err() && literal_text("b\"a\"").is_err());
    }

    #[test]
    fn macros_are_those_of_the_standard_library() {
        assert!(
            ["core::", "std::", "::core::", "::std::"]
                .into_iter()
                .all(is_of_library)
        );
        let others = [
            "",
            "::",
            "\"a\"+core::",
            "!core::",
            "mine::",
            "core::mine::",
            "::::core::",
        ];
        assert!(!others.into_iter().any(is_of_library));
    }
}
