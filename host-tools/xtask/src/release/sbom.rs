//! The packages that the programs are made of, as CycloneDX 1.5 (<https://cyclonedx.org/docs/1.5/json/>).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::{Result, cargo};

/// The list for `pack` and `arenite`, with nothing that only builds or tests them.
pub(super) fn of_the_programs() -> Result<String> {
    let output = cargo(&["metadata", "--locked", "--format-version", "1"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(format!(
        "{}\n",
        serde_json::to_string_pretty(&list(&metadata, "arenite-host")?)?
    ))
}

/// The list of a package and of all that it uses when it runs.
fn list(metadata: &Value, name: &str) -> Result<Value> {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = array(&metadata["packages"])
        .into_iter()
        .map(|package| (id(&package["id"]), package))
        .collect();
    let uses: BTreeMap<String, BTreeSet<String>> = array(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let normal = array(&node["deps"])
                .into_iter()
                .filter(|dep| array(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()));
            (id(&node["id"]), normal.map(|dep| id(&dep["pkg"])).collect())
        })
        .collect();
    let (top, package) = packages
        .iter()
        .find(|(_, package)| package["name"] == name)
        .ok_or_else(|| format!("there is no package {name}"))?;
    let (mut seen, mut open) = (BTreeSet::new(), vec![top.clone()]);
    while let Some(next) = open.pop() {
        if seen.insert(next.clone()) {
            open.extend(uses.get(&next).into_iter().flatten().cloned());
        }
    }
    seen.remove(top);
    let component = |package: &Value, kind: &str| {
        let (name, version) = (&package["name"], &package["version"]);
        let reference = format!("pkg:cargo/{}@{}", id(name), id(version));
        let mut component =
            json!({"type": kind, "bom-ref": reference, "name": name, "version": version, "purl": reference});
        if let Some(license) = package["license"].as_str() {
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        component
    };
    let reference = |id: &String| {
        packages
            .get(id)
            .map(|package| component(package, "library")["bom-ref"].clone())
    };
    let dependencies = seen.iter().chain([top]).filter_map(|id| {
        let own: Vec<Value> = uses.get(id)?.iter().filter_map(reference).collect();
        Some(json!({"ref": reference(id)?, "dependsOn": own}))
    });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(package, "application")},
        "components": seen.iter().filter_map(|id| packages.get(id)).map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_listed_and_what_builds_or_tests_is_not() {
        let text = of_the_programs().expect("cargo knows the packages");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        let names: BTreeSet<&str> = list["components"]
            .as_array()
            .expect("components")
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        for name in ["arenite", "arenite-import", "clap", "serde_json"] {
            assert!(names.contains(name), "{name}");
        }
        for name in ["arenite-host", "arenite-tests", "proptest", "cbindgen"] {
            assert!(!names.contains(name), "{name}");
        }
        assert_eq!(list["metadata"]["component"]["name"], "arenite-host");
        let components = list["components"].as_array().expect("components");
        assert!(
            components
                .iter()
                .all(|component| component["licenses"][0]["expression"].is_string())
        );
        // Every reference leads to a component.
        let known: BTreeSet<&str> = components
            .iter()
            .chain([&list["metadata"]["component"]])
            .filter_map(|c| c["bom-ref"].as_str())
            .collect();
        for dependency in list["dependencies"].as_array().expect("dependencies") {
            let on = dependency["dependsOn"].as_array().expect("a list");
            let references = on.iter().chain([&dependency["ref"]]).filter_map(Value::as_str);
            references.for_each(|reference| assert!(known.contains(reference), "{reference}"));
        }
    }
}
