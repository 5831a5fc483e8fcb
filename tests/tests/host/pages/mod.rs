//! The page of a model in a browser: Debian's `chromium-headless-shell`, asked over its debugging pipe, with real clicks and keys.
#![cfg(unix)]

mod drawings;
mod layout;
mod pictures;

use std::fs;
use std::path::{Path, PathBuf};

use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::page::{Extra, Subject, page, pages};
use arenite_tests::browser::{Browser, MISSING};
use arenite_tests::{digits_options, skip};
use serde_json::{Value, json};

/// The step whose row the page shows; null where it shows none.
fn shown(browser: &mut Browser) -> Value {
    browser.value("document.querySelector('#detail.open')?.dataset.shows ?? null")
}

/// The page of a network of the digits for a Cortex-M4, in a file, and its steps.
fn page_of(name: &str, folder: &Path) -> (PathBuf, usize) {
    page_for(name, arenite::Target::CortexM4, folder)
}

/// The same for another target.
fn page_for(name: &str, target: arenite::Target, folder: &Path) -> (PathBuf, usize) {
    let mut options = digits_options(name, &folder.join("m.bin"));
    options.target = target;
    paged(&options, folder)
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

/// Two networks side by side.
fn pair_of(names: [&str; 2], folder: &Path) -> PathBuf {
    let files = names.map(|name| {
        let mut options = digits_options(name, &folder.join(format!("{name}.bin")));
        options.target = arenite::Target::CortexM4;
        let packed = pack(&options, &mut |_, _, _| {}).expect("it packs");
        (ModelFile::open(&options.output).expect("written"), packed.summary)
    });
    let views = [&files[0], &files[1]].map(|(file, _)| file.view().expect("intact"));
    let extra = Extra::default();
    let subject = |index: usize| Subject {
        view: &views[index],
        summary: &files[index].1,
        extra: &extra,
    };
    let path = folder.join("pair.html");
    fs::write(&path, pages(&[subject(0), subject(1)]).expect("a page")).expect("written");
    path
}

/// A window of this size, light or dark.
fn resize(browser: &mut Browser, [width, height]: [u32; 2], theme: &str) {
    // A scroll bar would come and go with photographs, and with it the width.
    browser.ask("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    browser.ask("Emulation.setDeviceMetricsOverride", size);
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
    browser.ask("Emulation.setEmulatedMedia", media);
    // Pictures are drawn anew in the frame that has the new width.
    browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => 1)");
    let stale =
        "document.getElementById('weights').clientWidth - 2 !== document.querySelector('svg.treemap').clientWidth";
    while browser.value(&format!("innerWidth !== {width} || {stale}")) == true {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Types into the element that has the focus.
fn type_in(browser: &mut Browser, text: &str) {
    browser.ask("Input.insertText", json!({"text": text}));
}

/// Presses and releases a key.
fn press(browser: &mut Browser, key: &str, code: u32) {
    for kind in ["rawKeyDown", "keyUp"] {
        let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
        browser.ask("Input.dispatchKeyEvent", event);
    }
}

/// Texts of the elements that a selector finds.
fn texts(browser: &mut Browser, selector: &str) -> Vec<String> {
    let found = browser.value(&format!(
        "[...document.querySelectorAll({selector:?})].map((e) => e.textContent)"
    ));
    serde_json::from_value(found).expect("texts")
}

/// The page of a network in a browser; `None`, and a line that says why, where there is none.
fn opened(test: &str, folder: &Path, page: &Path) -> Option<Browser> {
    let browser = Browser::open(folder, page);
    if browser.is_none() {
        skip(test, MISSING);
    }
    browser
}

#[test]
fn clicks_show_a_step_in_the_table_the_graph_the_arena_and_the_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, steps) = page_of("digits", folder.path());
    let Some(mut browser) = opened("the page in a browser", folder.path(), &path) else {
        return;
    };
    assert_eq!(texts(&mut browser, "#step-table tbody tr").len(), steps);
    assert_eq!(texts(&mut browser, "svg.graph g.node").len(), steps);
    assert_eq!(shown(&mut browser), Value::Null);
    // A box of the arena stands for the step that begins it.
    for (selector, step) in [
        ("svg.graph g.node[data-step='4']", "4"),
        ("#step-table tr[data-step='2']", "2"),
        ("svg.arena g[data-step='3'] rect", "3"),
        ("svg.treemap g[data-step='0'] rect", "0"),
    ] {
        browser.click(selector);
        assert_eq!(shown(&mut browser), step, "{selector}");
        let on = browser.value("[...document.querySelectorAll('.on[data-step]')].map(e => e.dataset.step + e.tagName)");
        let on: Vec<String> = serde_json::from_value(on).expect("a list");
        for kind in ["g", "TR"] {
            assert!(on.contains(&format!("{step}{kind}")), "{on:?}");
        }
        assert!(on.iter().all(|part| part.starts_with(step)), "{on:?}");
        assert_eq!(texts(&mut browser, "#detail dd")[0], step);
    }
    press(&mut browser, "Escape", 27);
    assert_eq!(shown(&mut browser), Value::Null);
    // Arrow keys go on from the row that is chosen.
    browser.click("#step-table tr[data-step='2']");
    browser.value("document.getElementById('step-table').focus(); 1");
    press(&mut browser, "ArrowDown", 40);
    assert_eq!(shown(&mut browser), "3");
    browser.click("h1");
    assert_eq!(shown(&mut browser), Value::Null);
    let resources = browser.value("performance.getEntriesByType('resource').length");
    assert_eq!(resources, 0, "it loads nothing");
}

#[test]
fn the_table_sorts_searches_and_shows_the_columns_that_are_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, steps) = page_of("digits", folder.path());
    let Some(mut browser) = opened("the table in a browser", folder.path(), &path) else {
        return;
    };
    // The most MACs first, then the least: those that the model's JSON has, sorted here.
    let macs = browser.value("model.steps.map((step) => step.macs)");
    let mut macs: Vec<u64> = serde_json::from_value(macs).expect("numbers");
    macs.sort_unstable();
    assert!(macs.len() == steps && macs[0] < macs[steps - 1]);
    let column = |browser: &mut Browser, at: usize| -> Vec<u64> {
        let cells = texts(browser, &format!("#step-table tbody td:nth-child({at})"));
        let number = |text: &String| text.replace(',', "").parse().expect("a number");
        cells.iter().map(number).collect()
    };
    let heads = texts(&mut browser, "#step-table th");
    let at = 1 + heads.iter().position(|head| head == "MACs").expect("a column");
    browser.click("#step-table th[data-column='macs'] button");
    let rising = macs.clone();
    macs.reverse();
    assert_eq!(column(&mut browser, at), macs);
    browser.click("#step-table th[data-column='macs'] button");
    assert_eq!(column(&mut browser, at), rising);
    assert_eq!(
        browser.value("document.querySelector('th[data-column=macs]').ariaSort"),
        "ascending"
    );
    // Numbers beside names: 10 stands behind 9.
    browser.click("#step-table th[data-column='index'] button");
    let order = column(&mut browser, 1);
    assert!(order.is_sorted(), "{order:?}");

    let kernel = browser.value("model.steps[1].kernel");
    let kernel = kernel.as_str().expect("a name");
    let expected = browser.value(&format!(
        "model.steps.filter((step) => step.kernel === {kernel:?}).length"
    ));
    browser.click("#find-step");
    type_in(&mut browser, kernel);
    assert_eq!(
        texts(&mut browser, "#step-table tbody tr").len(),
        expected.as_u64().expect("a number") as usize
    );
    type_in(&mut browser, "\u{1f9c2}");
    assert_eq!(texts(&mut browser, "#step-table tbody tr"), ["No step is called so."]);

    browser.click(".columns summary");
    browser.click(".columns input[data-column='macs']");
    assert!(!texts(&mut browser, "#step-table th").contains(&"MACs".to_string()));
    browser.click(".columns input[data-column='at_most']");
    assert!(
        texts(&mut browser, "#step-table th")
            .iter()
            .any(|head| head == "instructions at most")
    );
}

#[test]
fn a_chip_that_is_chosen_changes_sentence_and_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = page_of("digits", folder.path());
    let Some(mut browser) = opened("chips in a browser", folder.path(), &path) else {
        return;
    };
    let chips = arenite_host::chips::all();
    let named = |name: &str| chips.iter().find(|chip| chip.name == name).expect("a chip");
    let file = ModelFile::open(&folder.path().join("m.bin")).expect("written");
    let view = file.view().expect("intact");
    browser.click("#all-chips summary");
    for name in ["nrf52840", "stm32h743zi"] {
        browser.click(&format!("tr[data-chip='{name}'] td"));
        let fit = arenite_host::chips::fit(&view, named(name)).expect("a fit");
        let (ms, told) = (
            fit.milliseconds.expect("known"),
            texts(&mut browser, "#time b")[0].clone(),
        );
        let number: f64 = told.trim_end_matches(" ms").parse().expect("a number");
        assert!((number / ms - 1.0).abs() < 0.06, "{told} instead of {ms}");
        let sentence = &texts(&mut browser, "#verdict")[0];
        assert!(
            sentence.contains(&format!("It fits the {name}")) && sentence.contains(&told),
            "{sentence}"
        );
        assert_eq!(browser.value("document.getElementById('chip').value"), name);
    }
    // With the keyboard, to another one.
    browser.value("document.getElementById('chip').focus(); 1");
    press(&mut browser, "ArrowDown", 40);
    let next = browser.value("document.getElementById('chip').value");
    let next = next.as_str().expect("a name");
    assert_ne!(next, "stm32h743zi");
    assert!(texts(&mut browser, "#verdict")[0].contains(&format!("the {next}")));
    drop(browser);

    // Kernels of another core: it does not fit, and the page says why, and what to do.
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = page_for("digits", arenite::Target::CortexM55, folder.path());
    let Some(mut browser) = opened("a chip that it does not fit", folder.path(), &path) else {
        return;
    };
    let file = ModelFile::open(&folder.path().join("m.bin")).expect("written");
    let fit = arenite_host::chips::fit(&file.view().expect("intact"), named("stm32f407vg")).expect("a fit");
    assert!(
        !fit.fits && fit.reasons.concat().contains("--target cortex-m4"),
        "{fit:?}"
    );
    browser.click("#all-chips summary");
    browser.click("tr[data-chip='stm32f407vg'] td");
    assert!(texts(&mut browser, "#verdict")[0].contains("It does not fit the stm32f407vg."));
    assert_eq!(texts(&mut browser, "#reasons li"), fit.reasons);
}

/// Place and scale of the graph.
fn camera(browser: &mut Browser) -> [f64; 3] {
    serde_json::from_value(browser.value("[camera.x, camera.y, camera.scale]")).expect("numbers")
}

#[test]
fn the_graph_moves_scales_is_searched_and_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, steps) = page_of("residual", folder.path());
    let Some(mut browser) = opened("the graph in a browser", folder.path(), &path) else {
        return;
    };
    let first = camera(&mut browser);
    browser.click("#zoom-in");
    let closer = camera(&mut browser);
    assert!(closer[2] > first[2] * 1.2, "{first:?} {closer:?}");
    browser.click("#zoom-all");
    // All nodes lie within the frame.
    let inside = "(() => { const f = document.getElementById('graph-frame').getBoundingClientRect();
        return [...document.querySelectorAll('svg.graph g.node, svg.graph g.port')].every((n) => { const r = n.getBoundingClientRect();
          return r.left >= f.left && r.right <= f.right && r.top >= f.top && r.bottom <= f.bottom; }); })()";
    assert_eq!(browser.value(inside), true);
    // Dragged by 70 pixels to the right and 40 down; what ends a drag chooses nothing.
    let before = camera(&mut browser);
    let place = browser.value(
        "(() => { const r = document.querySelector('svg.graph g.node').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()",
    );
    let at = |dx: f64, dy: f64| json!([place[0].as_f64().expect("x") + dx, place[1].as_f64().expect("y") + dy]);
    browser.mouse("mousePressed", &at(0.0, 0.0));
    browser.mouse("mouseMoved", &at(30.0, 10.0));
    browser.mouse("mouseMoved", &at(70.0, 40.0));
    browser.mouse("mouseReleased", &at(70.0, 40.0));
    let after = camera(&mut browser);
    assert!(
        (after[0] - before[0] - 70.0).abs() < 1.0 && (after[1] - before[1] - 40.0).abs() < 1.0,
        "{before:?} {after:?}"
    );
    assert_eq!(shown(&mut browser), Value::Null);
    // The wheel scales with Ctrl, about the mouse, and scrolls the page without.
    let wheel = |browser: &mut Browser, modifiers: u8| {
        let event = json!({"type": "mouseWheel", "x": place[0], "y": place[1], "deltaX": 0, "deltaY": -120, "modifiers": modifiers});
        browser.ask("Input.dispatchMouseEvent", event);
        browser.value("new Promise((done) => setTimeout(done, 100)).then(() => 1)");
    };
    wheel(&mut browser, 2);
    let scaled = camera(&mut browser);
    assert!(scaled[2] > after[2] * 1.2, "{after:?} {scaled:?}");
    wheel(&mut browser, 0);
    assert_eq!(camera(&mut browser), scaled);
    browser.value("document.getElementById('graph-frame').focus(); 1");
    press(&mut browser, "0", 48);
    assert_eq!(browser.value(inside), true);

    // A step is found, the others are dim, and it stands in the middle.
    let name = browser.value("model.steps.at(-1).name");
    browser.click("#find-node");
    type_in(&mut browser, name.as_str().expect("a name"));
    let found = browser.value("matched");
    let found: Vec<usize> = serde_json::from_value(found).expect("numbers");
    assert!(found.contains(&(steps - 1)), "{found:?}");
    assert_eq!(texts(&mut browser, "g.node.dim").len(), steps - found.len());
    let off = browser.value(&format!(
        "(() => {{ const f = document.getElementById('graph-frame').getBoundingClientRect(), 
           r = document.querySelector('g.node[data-step=\"{}\"]').getBoundingClientRect();
           return [r.x + r.width / 2 - f.x - f.width / 2, r.y + r.height / 2 - f.y - f.height / 2]; }})()",
        found[0]
    ));
    let off: [f64; 2] = serde_json::from_value(off).expect("numbers");
    assert!(off.iter().all(|off| off.abs() < 3.0), "{off:?}");

    // The saved picture has every node, and its own colours.
    browser.value("globalThis.saved = new Promise((done) => { URL.createObjectURL = (blob) => { done(blob.text()); return 'data:,'; }; }); 1");
    browser.click("#save-svg");
    let saved = browser.value("saved");
    let saved = saved.as_str().expect("a text");
    assert_eq!(saved.matches("data-step=").count(), steps);
    assert!(
        saved.starts_with("<svg") && !saved.contains("var(--") && saved.contains("viewBox="),
        "{saved}"
    );
    let wrong = "new DOMParser().parseFromString(svgText(), 'image/svg+xml').querySelectorAll('parsererror').length";
    assert_eq!(browser.value(wrong), 0);
}

#[test]
fn two_models_stand_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = pair_of(["digits", "residual"], folder.path());
    let Some(mut browser) = opened("two models in a browser", folder.path(), &path) else {
        return;
    };
    let figures = browser.value("models.map((of) => [of.arena_bytes, of.steps.length])");
    let figures: [[u64; 2]; 2] = serde_json::from_value(figures).expect("numbers");
    let rows = browser.value("[...document.querySelectorAll('#compared tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))");
    let rows: Vec<Vec<String>> = serde_json::from_value(rows).expect("texts");
    for (name, at) in [("arena", 0), ("steps", 1)] {
        let row = rows.iter().find(|row| row[0] == name).expect("a row");
        let numbers = [&row[1], &row[2]].map(|text| text.replace(',', "").parse::<u64>().expect("a number"));
        assert_eq!(numbers, figures.map(|of| of[at]), "{row:?}");
        let change = 100.0 * (numbers[1] as f64 / numbers[0] as f64 - 1.0);
        let told = row[3].replace('−', "-").replace(['+', '%', ' '], "");
        assert!(
            (told.parse::<f64>().expect("a number") - change).abs() < 0.06,
            "{row:?}"
        );
    }
    assert_eq!(texts(&mut browser, "#compare svg.arena").len(), 2);
    // The other one is shown by its number in the list.
    browser.value("document.getElementById('model').focus(); 1");
    press(&mut browser, "ArrowDown", 40);
    assert_eq!(texts(&mut browser, "#step-table tbody tr").len() as u64, figures[1][1]);
}

/// Names that want to be markup or code, or to turn the text behind them round.
const HOSTILE: &str = r#"{
  "arenite_trace": 1, "name": "</title><script>hacked = 1</script>", "inputs": ["x\"><img src=x onerror=hacked=1>"], "outputs": ["y'&<!--\u202eend"],
  "tensors": {
    "x\"><img src=x onerror=hacked=1>": {"dtype": "f32", "shape": [1, 5, 3], "role": "input"},
    "z": {"dtype": "f32", "shape": [1, 5, 3], "role": "activation"},
    "y'&<!--\u202eend": {"dtype": "f32", "shape": [1, 5, 3], "role": "activation"}
  },
  "ops": [
    {"name": "</script><script>hacked = 1</script>", "op": "sigmoid", "inputs": ["x\"><img src=x onerror=hacked=1>"], "outputs": ["z"]},
    {"name": "javascript:hacked=1//\"' onclick=hacked=1", "op": "tanh", "inputs": ["z"], "outputs": ["y'&<!--\u202eend"]}
  ]
}"#;

#[test]
fn hostile_names_stay_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("h.trace.json");
    fs::write(&trace, HOSTILE).expect("written");
    let (path, steps) = paged(&Options::new(trace, folder.path().join("h.bin")), folder.path());
    let Some(mut browser) = opened("hostile names in a browser", folder.path(), &path) else {
        return;
    };
    for step in 0..steps {
        browser.click(&format!("#step-table tr[data-step='{step}']"));
    }
    browser.click("#save-svg");
    let found = browser.value(
        "[typeof hacked, document.images.length, 
           document.scripts.length, document.querySelectorAll('[onerror], [onclick]').length, document.querySelector('h1').textContent]",
    );
    assert_eq!(
        found,
        json!(["undefined", 0, 2, 0, "</title><script>hacked = 1</script>"])
    );
    assert!(
        texts(&mut browser, "#detail dd")
            .iter()
            .any(|text| text.contains("onclick=hacked=1"))
    );
    let problems = layout::problems(&mut browser);
    assert!(problems.is_empty(), "{problems:#?}");
    let moved = browser.value(
        "/\\u202e/.test([...document.querySelectorAll('td b, svg text, .ports')].map((e) => e.textContent).join(''))",
    );
    assert_eq!(moved, false);
}
