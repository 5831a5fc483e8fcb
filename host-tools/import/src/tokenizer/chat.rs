//! Texts that the template of a chat puts in front of a user's turn and behind it.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error as Failed, ErrorKind, context};

/// Stands for what the user says.
const TURN: &str = "ARENITE-TURN-OF-THE-USER";

/// Instructions that a template may take: those of models take some hundred.
const FUEL: u64 = 100_000;

/// Bytes of what a template writes, at most: joining a word takes the square of its length.
const WRITTEN: usize = 4096;

/// The texts in front of a user's first turn and behind it, up to where the model's answer begins; or why the template has none.
pub(crate) fn around(template: &str, begin: &str, end: &str) -> Result<[String; 2], String> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    // As the libraries do that the templates are written for.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|error| error.to_string())?);
    environment.add_function("raise_exception", |message: String| -> Result<String, Failed> {
        Err(Failed::new(ErrorKind::InvalidOperation, message))
    });
    let written = environment.render_str(
        template,
        context! {
            messages => [context! { role => "user", content => TURN }],
            add_generation_prompt => true,
            bos_token => begin,
            eos_token => end,
        },
    );
    let written = written.map_err(|error| error.to_string())?;
    if written.len() > WRITTEN {
        return Err(format!("it writes {} bytes, at most {WRITTEN} are kept", written.len()));
    }
    match written.split_once(TURN) {
        Some((front, behind)) if !behind.contains(TURN) => Ok([front.to_owned(), behind.to_owned()]),
        Some(_) => Err("it has the user's turn more than once".into()),
        None => Err("it has not the user's turn as it was given".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_what_it_puts_around_a_turn() {
        let template = "{{ bos_token }}{% for m in messages %}\n{% if loop.first and m.role != 'system' %}S\n{% endif %}\n\
                        [{{ m['role'] }}] {{ m['content'] | trim }}{{ eos_token }}\n{% endfor %}\n{% if add_generation_prompt %}[model]{% endif %}";
        let around = around(template, "<s>", "</s>").expect("a template");
        assert_eq!(around, ["<s>S\n[user] ".to_owned(), "</s>\n[model]".to_owned()]);
    }

    #[test]
    fn templates_that_say_nothing_or_never_end_are_told() {
        let told = |template| around(template, "", "").expect_err("no template");
        assert!(told("{{ raise_exception('only for tools') }}").contains("only for tools"));
        assert!(told("hello").contains("has not the user's turn"));
        assert!(told("{{ messages[0].content }}{{ messages[0].content }}").contains("more than once"));
        assert!(told("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}").contains("fuel"));
        assert!(told("{% for").contains("syntax"));
        let long = told("{{ messages[0].content }}{% for a in range(5000) %}a{% endfor %}");
        assert!(long.contains("it writes 5024 bytes, at most 4096"), "{long}");
    }
}
