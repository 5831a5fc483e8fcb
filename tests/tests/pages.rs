//! The page of a model in a browser: Debian's `chromium-headless-shell`, asked over its debugging pipe, with real clicks.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use arenite_host::model::ModelFile;
use arenite_host::pack::pack;
use arenite_host::page::{Extra, page};
use arenite_tests::{digits_options, skip};
use serde_json::{Value, json};

const BROWSER: &str = "chromium-headless-shell";

/// A browser with one page open.
struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Value,
    sent: u64,
}

impl Browser {
    /// `None` where there is no browser.
    fn open(folder: &Path, page: &Path) -> Option<Self> {
        Command::new(BROWSER).arg("--version").output().ok()?;
        let pipes = ["in", "out"].map(|name| folder.join(name));
        let made = Command::new("mkfifo").args(&pipes).status().expect("it starts");
        assert!(made.success(), "no pipes");
        // The browser reads commands from descriptor 3 and answers on 4.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" --remote-debugging-pipe --no-sandbox --disable-gpu --user-data-dir=\"$3\" 3<\"$1\" 4>\"$2\""])
            .arg(BROWSER)
            .args(&pipes)
            .arg(folder.join("profile"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let to = File::options().write(true).open(&pipes[0]).expect("opened");
        let from = BufReader::new(File::open(&pipes[1]).expect("opened"));
        let mut browser = Self {
            child,
            to,
            from,
            session: Value::Null,
            sent: 0,
        };
        let target = browser.ask(
            "Target.createTarget",
            json!({"url": "about:blank", "width": 1280, "height": 1000}),
        );
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.ask("Target.attachToTarget", attached)["sessionId"].clone();
        browser.ask("Page.enable", json!({}));
        browser.ask("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        while browser.next()["method"] != "Page.loadEventFired" {}
        Some(browser)
    }

    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).expect("an answer");
        message.pop().expect("the browser has ended");
        serde_json::from_slice(&message).expect("JSON")
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut command = json!({"id": self.sent, "method": method, "params": params});
        if !self.session.is_null() {
            command["sessionId"] = self.session.clone();
        }
        self.to.write_all(format!("{command}\0").as_bytes()).expect("sent");
        loop {
            let answer = self.next();
            if answer["id"] == self.sent {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let answer = self.ask(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true}),
        );
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses and releases the mouse in the middle of the first element that `selector` finds.
    fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}});
               const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let place = self.value(&place);
        for event in ["mousePressed", "mouseReleased"] {
            let mouse = json!({"type": event, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", mouse);
        }
    }

    /// The step whose row the page shows; null where it shows none.
    fn shown(&mut self) -> Value {
        self.value("document.querySelector('#detail.open')?.dataset.shows ?? null")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clicks_show_a_step_in_the_arena_the_graph_and_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = digits_options("digits", &folder.path().join("m.bin"));
    let packed = pack(&options, &mut |_, _, _| {}).expect("it packs");
    let file = ModelFile::open(&options.output).expect("written");
    let text = page(&file.view().expect("intact"), &packed.summary, &Extra::default()).expect("a page");
    let path = folder.path().join("page.html");
    fs::write(&path, text).expect("written");
    let Some(mut browser) = Browser::open(folder.path(), &path) else {
        return skip("the page in a browser", "no browser: Debian's chromium-headless-shell");
    };
    let steps = packed.summary.steps;
    assert_eq!(
        browser.value("document.querySelectorAll('#steps tbody tr').length"),
        steps
    );
    assert_eq!(
        browser.value("document.querySelectorAll('svg.graph g.node').length"),
        steps
    );
    assert_eq!(browser.shown(), Value::Null);
    // A box of the arena stands for the step that begins it.
    for (selector, step) in [
        ("svg.graph g.node[data-step='4']", "4"),
        ("#steps tr[data-step='2']", "2"),
        ("svg.arena rect[data-step='3']", "3"),
    ] {
        browser.click(selector);
        assert_eq!(browser.shown(), step, "{selector}");
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
    assert_eq!(browser.shown(), Value::Null);
    assert_eq!(
        browser.value("performance.getEntriesByType('resource').length"),
        0,
        "it loads nothing"
    );
}
