//! YAML against a list of what a map may hold.

use regex::Regex;
use yaml_rust2::{Yaml, YamlLoader};

/// A file's document.
pub(super) fn parsed(text: &str) -> Yaml {
    let documents = YamlLoader::load_from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let [document] = &documents[..] else {
        panic!("{} documents: {text}", documents.len())
    };
    document.clone()
}

/// The keys of a map, which are among `known` and have all of `required`.
pub(super) fn keys(map: &Yaml, known: &[&str], required: &[&str]) -> Vec<String> {
    let map = map.as_hash().unwrap_or_else(|| panic!("no map: {map:?}"));
    let keys: Vec<String> = map.keys().map(|key| key.as_str().expect("a name").to_owned()).collect();
    for key in &keys {
        assert!(known.contains(&key.as_str()), "`{key}` is not among {known:?}");
    }
    for key in required {
        assert!(keys.iter().any(|found| found == key), "`{key}` is missing");
    }
    keys
}

/// The texts of a sequence.
pub(super) fn texts(list: &Yaml) -> Vec<String> {
    let list = list.as_vec().unwrap_or_else(|| panic!("no sequence: {list:?}"));
    list.iter()
        .map(|text| text.as_str().expect("a text").to_owned())
        .collect()
}

/// Whether a pattern is in a text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).expect("a pattern").is_match(text)
}
