//! The page of `arenite report` and `pack --report`.

use std::fs;
use std::path::Path;

use crate::common::{ARENITE, Bench, PACK, digits, done, refused, run};

/// A network whose names are as bad as names can be.
const HOSTILE: &str = r#"{
  "arenite_trace": 1, "name": "</title><script>alert(1)</script>", "inputs": ["x\"><img src=x onerror=alert(2)>"], "outputs": ["y'&<!--"],
  "tensors": {
    "x\"><img src=x onerror=alert(2)>": {"dtype": "f32", "shape": [1, 5, 3], "role": "input"},
    "y'&<!--": {"dtype": "f32", "shape": [1, 5, 3], "role": "activation"}
  },
  "ops": [{"name": "</script><b>", "op": "relu", "inputs": ["x\"><img src=x onerror=alert(2)>"], "outputs": ["y'&<!--"]}]
}"#;

/// Every element is closed by its own end, and no text holds a bare `<`.
fn well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("an end");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '>']).next().expect("a name");
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric()) && !name.is_empty(),
            "<{tag}>"
        );
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if name != "meta" {
            open.push(name);
        }
        // What stands in them is no markup.
        if ["script", "style"].contains(&tag) {
            rest = &rest[rest.find("</").expect("an end")..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_page_shows_every_step_and_loads_nothing() {
    let bench = Bench::new();
    let (model, page, beside) = (bench.packed("residual"), bench.path("p.html"), bench.path("q.html"));
    done(run(ARENITE, &[Path::new("report"), &model, Path::new("-o"), &page]));
    let text = fs::read_to_string(&page).expect("written");
    well_formed(&text);
    let steps = done(run(ARENITE, &[Path::new("inspect"), &model, Path::new("--json")]));
    let steps = crate::common::json(&steps);
    let count = steps["steps"].as_u64().expect("a number");
    for step in 0..count {
        assert!(text.contains(&format!("<tr data-step=\"{step}\">")), "step {step}");
        assert!(
            text.contains(&format!("<g class=\"node\" data-step=\"{step}\"")),
            "step {step}"
        );
    }
    assert!(!text.contains(&format!("<tr data-step=\"{count}\">")));
    for wanted in [
        "Arena over time",
        "class=\"peak\"",
        "arenite report MODEL --trace FILE",
        "default-src 'none'",
    ] {
        assert!(text.contains(wanted), "{wanted}");
    }
    assert!(
        !text.contains("http:") && !text.contains("https:"),
        "it loads something"
    );
    // `pack` writes the same page, with the trace.
    let words = [
        &digits("residual.trace.json"),
        Path::new("-o"),
        &model,
        Path::new("--report"),
        &beside,
    ];
    done(run(PACK, &words));
    let with_trace = fs::read_to_string(&beside).expect("written");
    well_formed(&with_trace);
    assert!(with_trace.contains("<pre id=\"trace\">") && !with_trace.contains("report MODEL --trace"));
    let words = [
        Path::new("report"),
        &model,
        Path::new("--trace"),
        &digits("residual.trace.json"),
        Path::new("-o"),
        &page,
    ];
    done(run(ARENITE, &words));
    assert_eq!(fs::read_to_string(&page).expect("written"), with_trace);
    // Another trace than the model's.
    let words = [
        Path::new("report"),
        &model,
        Path::new("--trace"),
        &digits("mlp.trace.json"),
        Path::new("-o"),
        &page,
    ];
    let message = refused(run(ARENITE, &words), 1);
    assert!(
        message.contains("mlp.trace.json") && message.contains("sha256"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(&page).expect("still there"), with_trace);
}

#[test]
fn names_cannot_leave_their_place_in_the_page() {
    let bench = Bench::new();
    let (trace, model, page) = (bench.path("h.trace.json"), bench.path("h.bin"), bench.path("h.html"));
    fs::write(&trace, HOSTILE).expect("written");
    let words = [&trace, Path::new("-o"), &model, Path::new("--report"), &page];
    done(run(PACK, &words));
    let text = fs::read_to_string(&page).expect("written");
    well_formed(&text);
    assert!(!text.contains("<img"), "{text}");
    assert_eq!(text.matches("<script>").count(), 1);
    assert!(text.contains("&lt;/script&gt;") && text.contains("x&quot;&gt;&lt;img"));
}

#[test]
fn a_page_of_several_networks_is_refused() {
    let bench = Bench::new();
    let (model, page) = (bench.path("m.bin"), bench.path("p.html"));
    let traces = [digits("mlp.trace.json"), digits("residual.trace.json")];
    let words = [
        &traces[0],
        &traces[1],
        Path::new("-o"),
        &model,
        Path::new("--report"),
        &page,
    ];
    assert!(refused(run(PACK, &words), 2).contains("one input"));
    let words = [&traces[0], Path::new("-o"), &model, Path::new("--report"), &model];
    assert!(refused(run(PACK, &words), 2).contains("m.bin"));
    let words = [
        Path::new("report"),
        &model,
        Path::new("-o"),
        &page,
        Path::new("--on"),
        Path::new("host"),
    ];
    assert!(refused(run(ARENITE, &words), 1).contains("m.bin"), "there is no model");
    assert!(!model.exists() && !page.exists());
}
