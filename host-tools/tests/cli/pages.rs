//! The page of `arenite report` and `pack --report`.

use std::fs;
use std::path::Path;

use serde_json::Value;

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
        // The content of these elements is no markup.
        if ["script", "style"].contains(&name) && !tag.starts_with('/') {
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
    let inspected = done(run(
        ARENITE,
        &[Path::new("inspect"), &model, Path::new("--json"), Path::new("--steps")],
    ));
    let inspected = crate::common::json(&inspected);
    let shown = &models(&text)[0];
    let (steps, listed) = (shown["steps"].as_array(), inspected["step_list"].as_array());
    let (steps, listed) = (steps.expect("steps"), listed.expect("steps"));
    assert_eq!(steps.len(), listed.len());
    for (shown, step) in steps.iter().zip(listed) {
        assert!(
            ["name", "op", "kernel", "macs"]
                .iter()
                .all(|field| shown[field] == step[field]),
            "{shown} {step}"
        );
    }
    for wanted in [
        "Arena over time",
        "arenite report MODEL --trace FILE",
        "default-src 'none'",
    ] {
        assert!(text.contains(wanted), "{wanted}");
    }
    // The name of SVG's elements is written as an address, and is none.
    let addresses = text.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !addresses.contains("http:") && !addresses.contains("https:"),
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
    assert!(with_trace.contains("The trace as imported") && !with_trace.contains("report MODEL --trace"));
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
    assert_eq!(text.matches("<script").count(), 2);
    let shown = &models(&text)[0];
    assert_eq!(shown["name"], "</title><script>alert(1)</script>");
    assert_eq!(shown["steps"][0]["name"], "</script><b>");
    assert!(
        text.contains("&lt;/title&gt;&lt;script&gt;alert(1)"),
        "the title is text"
    );
}

/// The models that a page holds.
fn models(page: &str) -> Value {
    let (_, data) = page.split_once("id=\"data\">").expect("data");
    serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON")
}

/// A packed network beside another, evaluated on labelled images; the numbers are those of `eval`, `size` and `inspect`.
#[test]
fn a_page_tells_accuracy_chips_and_the_model_beside() {
    let bench = Bench::new();
    let (first, second, page) = (bench.packed("digits"), bench.packed("mlp"), bench.path("p.html"));
    let [images, labels] = ["test_images.npy", "test_labels.npy"].map(digits);
    let labelled = [Path::new("--inputs"), &images, Path::new("--labels"), &labels];
    let reported = [
        Path::new("report"),
        &first,
        Path::new("--beside"),
        &second,
        Path::new("-o"),
        &page,
    ];
    done(run(ARENITE, &[&reported[..], &labelled].concat()));
    let text = fs::read_to_string(&page).expect("written");
    well_formed(&text);
    let shown = models(&text);
    assert_eq!(shown.as_array().map(Vec::len), Some(2));
    for (model, shown) in [&first, &second].into_iter().zip(shown.as_array().expect("models")) {
        let judged = [&[Path::new("eval"), model], &labelled[..], &[Path::new("--json")]].concat();
        let judged = crate::common::json(&done(run(ARENITE, &judged)));
        for field in ["samples", "correct", "interval"] {
            assert_eq!(shown["accuracy"][field], judged[field], "{field}");
        }
        let sizes = crate::common::json(&done(run(ARENITE, &[Path::new("size"), model, Path::new("--json")])));
        let sizes = sizes.as_array().expect("chips");
        assert_eq!(shown["chips"].as_array().map(Vec::len), Some(sizes.len()));
        for (shown, size) in shown["chips"].as_array().expect("chips").iter().zip(sizes) {
            for (field, value) in size.as_object().expect("fields") {
                assert_eq!(&shown[field], value, "{field}");
            }
        }
    }
    assert_ne!(shown[0]["accuracy"]["correct"], shown[1]["accuracy"]["correct"]);
    // One without the other; labels of another number; a page over what is read.
    let message = refused(run(ARENITE, &[&reported[..], &labelled[..2]].concat()), 2);
    assert!(message.contains("--labels"), "{message}");
    let swapped = [
        &reported[..],
        &[Path::new("--inputs"), &labels, Path::new("--labels"), &labels],
    ]
    .concat();
    assert!(refused(run(ARENITE, &swapped), 1).contains("test_labels.npy"));
    let over = [
        Path::new("report"),
        &first,
        Path::new("--beside"),
        &second,
        Path::new("-o"),
        &second,
    ];
    assert!(refused(run(ARENITE, &over), 2).contains("the output is the input"));
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
