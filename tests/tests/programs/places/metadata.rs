//! Files that GitHub, `cargo generate` and editors read at the root of the checkout, against their published rules.

use std::fs;

use arenite_host::chips;
use regex::Regex;
use yaml_rust2::Yaml;

use super::bare::root;
use super::yaml::{keys, matches, parsed};

/// The template asks for the chips that `arenite new` knows.
#[test]
fn the_template_knows_the_chips() {
    let text = fs::read_to_string(root().join("template/cargo-generate.toml")).expect("readable");
    let names: Vec<String> = chips::all().iter().map(|chip| format!("{:?}", chip.name)).collect();
    assert!(
        text.contains(&format!("choices = [{}]", names.join(", "))),
        "{}",
        names.join(", ")
    );
    let hook = Regex::new(r#"post = \["([^"]+)"\]"#).expect("a pattern");
    let hook = &hook.captures(&text).expect("a hook")[1];
    assert!(root().join("template").join(hook).is_file());
}

/// `devContainer.base.schema.json` of the dev container specification.
#[test]
fn the_dev_container_is_one() {
    let text = fs::read_to_string(root().join(".devcontainer/devcontainer.json")).expect("readable");
    let container: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let known = [
        "name",
        "image",
        "features",
        "postCreateCommand",
        "customizations",
        "remoteUser",
        "containerEnv",
        "hostRequirements",
    ];
    for key in container.as_object().expect("a map").keys() {
        assert!(known.contains(&key.as_str()), "{key}");
    }
    assert!(
        container["image"]
            .as_str()
            .is_some_and(|image| matches(r"^[a-z0-9./-]+:[A-Za-z0-9._-]+$", image))
    );
    // The commands are the project's own.
    let commands = container["postCreateCommand"].as_str().expect("a command");
    assert!(commands.starts_with("cargo xtask setup --c"), "{commands}");
}

/// `docs.github.com/actions/reference/workflows-and-actions/metadata-syntax`: a composite action.
#[test]
fn the_action_is_one() {
    let text = fs::read_to_string(root().join("action.yml")).expect("readable");
    let action = parsed(&text);
    keys(
        &action,
        &["name", "author", "description", "inputs", "outputs", "runs", "branding"],
        &["name", "description", "runs"],
    );
    keys(&action["branding"], &["icon", "color"], &["icon", "color"]);
    let colours = [
        "white",
        "yellow",
        "blue",
        "green",
        "orange",
        "red",
        "purple",
        "gray-dark",
    ];
    assert!(colours.contains(&action["branding"]["color"].as_str().expect("a colour")));
    let inputs = action["inputs"].as_hash().expect("inputs");
    for (name, input) in inputs {
        assert!(matches("^[a-z_][a-z0-9_-]*$", name.as_str().expect("a name")));
        keys(
            input,
            &["description", "required", "default", "deprecationMessage"],
            &["description"],
        );
        // Defaults are texts.
        assert!(matches!(input["default"], Yaml::String(_) | Yaml::BadValue), "{name:?}");
        assert!(
            matches!(input["required"], Yaml::Boolean(_) | Yaml::BadValue),
            "{name:?}"
        );
    }
    for (_, output) in action["outputs"].as_hash().expect("outputs") {
        keys(output, &["description", "value"], &["description", "value"]);
    }
    keys(&action["runs"], &["using", "steps"], &["using", "steps"]);
    assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
    let steps = action["runs"]["steps"].as_vec().expect("steps");
    let step = [
        "name",
        "id",
        "if",
        "shell",
        "run",
        "env",
        "uses",
        "with",
        "working-directory",
        "continue-on-error",
    ];
    let mut ids = Vec::new();
    for step_map in steps {
        let found = keys(step_map, &step, &["name", "run", "shell"]);
        assert!(!found.contains(&"uses".to_owned()));
        assert_eq!(step_map["shell"].as_str(), Some("bash"));
        // Values from outside reach a script through its environment alone.
        assert!(!step_map["run"].as_str().expect("a script").contains("${{"));
        ids.extend(step_map["id"].as_str().map(str::to_owned));
    }
    // Every expression names something that there is.
    let expression = Regex::new(r"\$\{\{(.*?)\}\}").expect("a pattern");
    let word = Regex::new(r"[a-z_]+(?:\.[a-z_-]+)+").expect("a pattern");
    for found in expression.captures_iter(&text) {
        for word in word.find_iter(&found[1]) {
            let parts: Vec<&str> = word.as_str().split('.').collect();
            let known = match parts[..] {
                ["inputs", name] => inputs.keys().any(|input| input.as_str() == Some(name)),
                ["github", "action_path" | "token" | "event_name" | "repository"] => true,
                ["github", "event", "pull_request", "number"] => true,
                ["steps", id, "outputs", "table"] => ids.iter().any(|known| known == id),
                _ => false,
            };
            assert!(known, "{}", word.as_str());
        }
    }
}
