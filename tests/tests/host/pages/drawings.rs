//! The page's drawings without their words, beside those on record; a page of many steps.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use arenite_host::pack::Options;
use arenite_tests::browser::Browser;
use arenite_tests::png_file::Picture;
use data_encoding::BASE64;
use serde_json::json;

use super::{opened, page_of, paged, resize, shown};

/// A drawing of the page at a width of its own and without its words: fonts are the machine's.
fn drawing(browser: &mut Browser, selector: &str) -> Picture {
    let place = format!(
        "(() => {{ const style = document.head.appendChild(document.createElement('style'));
           style.textContent = 'svg text {{ display: none }} html {{ scrollbar-width: none }}';
           const r = document.querySelector({selector:?}).getBoundingClientRect();
           return [r.x + scrollX, r.y + scrollY, r.width, r.height].map(Math.round); }})()"
    );
    let place = browser.value(&place);
    photograph(browser, [0, 1, 2, 3].map(|i| place[i].as_f64().expect("a number")))
}

/// A part of the page: left, top, width, height.
pub(super) fn photograph(browser: &mut Browser, [x, y, width, height]: [f64; 4]) -> Picture {
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
        let Some(mut browser) = opened("the page's drawings", folder.path(), &path) else {
            return;
        };
        resize(&mut browser, [1280, 1000], "light");
        for kind in ["arena", "graph", "treemap"] {
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
    assert!((0..3).all(|kind| differ(&drawn[kind], &drawn[kind + 3]) > MOST));
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

    let Some(mut browser) = opened("a page of 1,500 steps", folder.path(), &path) else {
        return;
    };
    // Drawn: everything has its place and its size.
    let drawn = "(s => [...document.querySelectorAll(s)].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 }).length)";
    assert_eq!(browser.value(&format!("{drawn}('#step-table tbody tr')")), steps);
    assert_eq!(browser.value(&format!("{drawn}('svg.graph g.node')")), steps);
    let boxes = browser.value(&format!("{drawn}('svg.arena g[data-step]')"));
    assert!(boxes.as_u64().is_some_and(|boxes| boxes >= steps as u64), "{boxes}");
    browser.click("#step-table tr[data-step='1498']");
    assert_eq!(shown(&mut browser), "1498");
    let opened = "Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)";
    let opened = browser.value(opened).as_u64().expect("milliseconds");
    println!("opened in {opened} ms");
    // Two seconds on an idle machine: docs/cli.md. This one may have anything else to do.
    assert!((1..60_000).contains(&opened), "{opened} ms");
}
