//! The page of a model in a browser: Debian's `chromium-headless-shell`, asked over its debugging pipe, with real clicks.
#![cfg(unix)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::page::{Extra, page};
use arenite_tests::browser::{Browser, MISSING};
use arenite_tests::png_file::Picture;
use arenite_tests::{digits_options, skip};
use data_encoding::BASE64;
use serde_json::{Value, json};

/// The step whose row the page shows; null where it shows none.
fn shown(browser: &mut Browser) -> Value {
    browser.value("document.querySelector('#detail.open')?.dataset.shows ?? null")
}

/// The page of a network of the digits, in a file, and its steps.
fn page_of(name: &str, folder: &Path) -> (PathBuf, usize) {
    paged(&digits_options(name, &folder.join("m.bin")), folder)
}

/// The page of what is packed, in a file, and its steps.
fn paged(options: &Options, folder: &Path) -> (PathBuf, usize) {
    let packed = pack(options, &mut |_, _, _| {}).expect("it packs");
    let file = ModelFile::open(&options.output).expect("written");
    let text = page(&file.view().expect("intact"), &packed.summary, &Extra::default()).expect("a page");
    let path = folder.join("page.html");
    fs::write(&path, text).expect("written");
    (path, packed.summary.steps)
}

#[test]
fn clicks_show_a_step_in_the_arena_the_graph_and_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, steps) = page_of("digits", folder.path());
    let Some(mut browser) = Browser::open(folder.path(), &path) else {
        return skip("the page in a browser", MISSING);
    };
    assert_eq!(
        browser.value("document.querySelectorAll('#steps tbody tr').length"),
        steps
    );
    assert_eq!(
        browser.value("document.querySelectorAll('svg.graph g.node').length"),
        steps
    );
    assert_eq!(shown(&mut browser), Value::Null);
    // A box of the arena stands for the step that begins it.
    for (selector, step) in [
        ("svg.graph g.node[data-step='4']", "4"),
        ("#steps tr[data-step='2']", "2"),
        ("svg.arena rect[data-step='3']", "3"),
    ] {
        browser.click(selector);
        assert_eq!(shown(&mut browser), step, "{selector}");
        let on = browser.value("[...document.querySelectorAll('.on')].map(e => e.dataset.step + e.tagName)");
        let on: Vec<&str> = on
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        for kind in ["g", "TR"] {
            assert!(on.contains(&format!("{step}{kind}").as_str()), "{on:?}");
        }
        assert!(on.iter().all(|part| part.starts_with(step)), "{on:?}");
        let cells = browser.value("[...document.querySelectorAll('#detail dd')].map(e => e.textContent)");
        assert_eq!(cells[0], step);
    }
    // Sorted by MACs, least first, then most first; the row of the dense convolution moves to the top.
    let first = "document.querySelector('#steps tbody tr').cells[5].dataset.v";
    browser.click("#steps th:nth-child(6)");
    assert_eq!(browser.value(first), "0");
    browser.click("#steps th:nth-child(6)");
    assert_eq!(browser.value(first), "73728");
    browser.click("h1");
    assert_eq!(shown(&mut browser), Value::Null);
    assert_eq!(
        browser.value("performance.getEntriesByType('resource').length"),
        0,
        "it loads nothing"
    );
}

/// A drawing of the page at a width of its own and without its words: fonts are the machine's.
fn drawing(browser: &mut Browser, selector: &str) -> Picture {
    let place = format!(
        "(() => {{ const style = document.head.appendChild(document.createElement('style'));
           style.textContent = 'svg text {{ display: none }} svg {{ width: 800px !important }}';
           const r = document.querySelector({selector:?}).getBoundingClientRect();
           return [r.x + scrollX, r.y + scrollY, r.width, r.height].map(Math.round); }})()"
    );
    let [x, y, width, height] = [0, 1, 2, 3].map(|i| browser.value(&place)[i].clone());
    let clip = json!({"x": x, "y": y, "width": width, "height": height, "scale": 1});
    let shot = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
    let shot = browser.ask("Page.captureScreenshot", shot);
    let bytes = BASE64.decode(shot["data"].as_str().expect("base64").as_bytes());
    Picture::decode(&bytes.expect("base64"))
}

/// The share of pixels that are another colour for the eye; all, where the pictures have other sizes.
fn differ(a: &Picture, b: &Picture) -> f64 {
    const SEEN: u8 = 32;
    if [a.wide, a.high] != [b.wide, b.high] {
        return 1.0;
    }
    let other = |(a, b): &(&[u8], &[u8])| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > SEEN);
    let pixels = a.bytes.chunks_exact(3).zip(b.bytes.chunks_exact(3));
    pixels.filter(other).count() as f64 / f64::from(a.wide * a.high)
}

#[test]
fn the_drawings_are_those_on_record() {
    const MOST: f64 = 0.01;
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/pages");
    let bless = std::env::var_os("ARENITE_BLESS").is_some();
    let mut drawn = Vec::new();
    for name in ["digits", "residual"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, _) = page_of(name, folder.path());
        let Some(mut browser) = Browser::open(folder.path(), &path) else {
            return skip("the page's drawings", MISSING);
        };
        for kind in ["arena", "graph"] {
            let found = drawing(&mut browser, &format!("svg.{kind}"));
            let record = records.join(format!("{name}-{kind}.png"));
            if bless {
                fs::create_dir_all(&records).expect("a folder");
                found.write(&record);
            }
            // `ARENITE_BLESS=1` makes it.
            let expected = Picture::read(&record);
            let share = differ(&found, &expected);
            if share > MOST {
                let beside = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{kind}.png"));
                found.write(&beside);
                panic!(
                    "{:.1} % of {} are other pixels than in {}",
                    share * 100.0,
                    beside.display(),
                    record.display()
                );
            }
            drawn.push(found);
        }
    }
    // Other networks have other drawings.
    assert!(differ(&drawn[0], &drawn[2]) > MOST && differ(&drawn[1], &drawn[3]) > MOST);
}

/// A trace of convolutions, poolings and sums, each of which is a step: uneven in all extents, and with results that live for three steps.
fn long_network(blocks: usize) -> String {
    const SHAPE: &str = r#""shape": [1, 4, 7, 5], "dtype": "f32""#;
    let (mut tensors, mut ops) = (format!("  \"sum0\": {{{SHAPE}, \"role\": \"input\"}}"), Vec::new());
    for block in 1..=blocks {
        let before = block - 1;
        let _ = write!(
            tensors,
            ",\n  \"w{block}\": {{\"shape\": [4, 4, 3, 1], \"dtype\": \"f32\", \"role\": \"parameter\", \"layout\": \"OIHW\"}}"
        );
        for name in ["conv", "pool", "sum"] {
            let _ = write!(tensors, ",\n  \"{name}{block}\": {{{SHAPE}, \"role\": \"activation\"}}");
        }
        let (conv, pool) = (
            r#", "attrs": {"padding": [1, 1, 0, 0]}"#,
            r#", "attrs": {"kernel": [1, 3], "strides": [1, 1], "padding": [0, 0, 1, 1]}"#,
        );
        for (name, op, inputs, attrs) in [
            ("conv", "conv2d", format!(r#""sum{before}", "w{block}", null"#), conv),
            ("pool", "max_pool2d", format!(r#""conv{block}""#), pool),
            ("sum", "add", format!(r#""pool{block}", "sum{before}""#), ""),
        ] {
            ops.push(format!(
                r#"  {{"name": "{name}{block}", "op": "{op}", "inputs": [{inputs}], "outputs": ["{name}{block}"]{attrs}}}"#
            ));
        }
    }
    let ops = ops.join(",\n");
    format!(
        r#"{{"arenite_trace": 1, "name": "long", "inputs": ["sum0"], "outputs": ["sum{blocks}"],
"tensors": {{
{tensors}}},
"ops": [
{ops}]}}
"#
    )
}

#[test]
fn a_page_of_fifteen_hundred_steps_is_small_and_opens() {
    const STEPS: usize = 1500;
    const MOST_BYTES: u64 = 3_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("long.trace.json");
    fs::write(&trace, long_network(STEPS / 3)).expect("written");
    let mut options = Options::new(trace, folder.path().join("long.bin"));
    options.weights = Some("seeded:1".to_owned());
    let (path, steps) = paged(&options, folder.path());
    let bytes = fs::metadata(&path).expect("written").len();
    println!("{bytes} bytes for {steps} steps");
    assert!(steps >= STEPS && bytes <= MOST_BYTES, "{bytes} bytes for {steps} steps");

    let Some(mut browser) = Browser::open(folder.path(), &path) else {
        return skip("a page of 1,500 steps", MISSING);
    };
    // Drawn: everything has its place and its size.
    let drawn = "(s => [...document.querySelectorAll(s)].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 }).length)";
    assert_eq!(browser.value(&format!("{drawn}('#steps tbody tr')")), steps);
    assert_eq!(browser.value(&format!("{drawn}('svg.graph g.node')")), steps);
    let boxes = browser.value(&format!("{drawn}('svg.arena rect[data-step]')"));
    assert!(boxes.as_u64().is_some_and(|boxes| boxes >= steps as u64), "{boxes}");
    browser.click("#steps tr[data-step='1498']");
    assert_eq!(shown(&mut browser), "1498");
    let opened = "Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)";
    let opened = browser.value(opened).as_u64().expect("milliseconds");
    println!("opened in {opened} ms");
    // Two seconds on an idle machine: docs/cli.md. This one may have anything else to do.
    assert!((1..60_000).contains(&opened), "{opened} ms");
}
