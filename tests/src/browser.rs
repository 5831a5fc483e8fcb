//! A browser to be asked: Chromium over its debugging pipe, with real clicks.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use arenite_xtask::require::BROWSERS;
use serde_json::{Value, json};

/// Why a test without a browser is skipped.
pub const MISSING: &str = "no browser: Debian's chromium or chromium-headless-shell";

/// A browser that says nothing for so long hangs, on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page open.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: Value,
    sent: u64,
    /// Addresses that the page asked for.
    requests: Vec<String>,
}

impl Browser {
    /// The browser with the page in a file; `folder` is for its own files. `None` where there is no browser.
    ///
    /// # Panics
    /// Where it does not start, or does not answer.
    pub fn open(folder: &Path, page: &Path) -> Option<Self> {
        let program = installed()?;
        let pipes = ["in", "out"].map(|name| folder.join(name));
        let made = Command::new("mkfifo").args(&pipes).status().expect("it starts");
        assert!(made.success(), "no pipes");
        // The browser reads commands from descriptor 3 and answers on 4.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" --headless --remote-debugging-pipe --no-sandbox --disable-gpu --user-data-dir=\"$3\" 3<\"$1\" 4>\"$2\""])
            .arg(program)
            .args(&pipes)
            .arg(folder.join("profile"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let to = File::options().write(true).open(&pipes[0]).expect("opened");
        let from = messages(File::open(&pipes[1]).expect("opened"));
        let mut browser = Self {
            child,
            to,
            from,
            session: Value::Null,
            sent: 0,
            requests: Vec::new(),
        };
        let target = browser.ask(
            "Target.createTarget",
            json!({"url": "about:blank", "width": 1280, "height": 1000}),
        );
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.ask("Target.attachToTarget", attached)["sessionId"].clone();
        browser.ask("Page.enable", json!({}));
        browser.ask("Network.enable", json!({}));
        browser.ask("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        while browser.next()["method"] != "Page.loadEventFired" {}
        Some(browser)
    }

    fn next(&mut self) -> Value {
        let message = self.from.recv_timeout(PATIENCE).expect("the browser answers");
        if message["method"] == "Network.requestWillBeSent" {
            let url = &message["params"]["request"]["url"];
            self.requests.push(url.as_str().unwrap_or_default().to_owned());
        }
        message
    }

    /// Whether a browser is installed.
    pub fn is_there() -> bool {
        installed().is_some()
    }

    /// Returns the requests of the page so far.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    /// Asks for a command of the DevTools protocol.
    ///
    /// # Panics
    /// Where the browser refuses it.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
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
    ///
    /// # Panics
    /// Where it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let answer = self.ask(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses and releases the mouse in the middle of the first element that `selector` finds.
    ///
    /// # Panics
    /// Where there is none.
    pub fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}});
               const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let place = self.value(&place);
        self.mouse("mousePressed", &place);
        self.mouse("mouseReleased", &place);
    }

    /// Moves, presses or releases the mouse at a place of the window.
    pub fn mouse(&mut self, event: &str, place: &Value) {
        // Moved with the button held down.
        let held = u8::from(event != "mouseReleased");
        let mouse =
            json!({"type": event, "x": place[0], "y": place[1], "button": "left", "buttons": held, "clickCount": 1});
        self.ask("Input.dispatchMouseEvent", mouse);
    }
}

/// The first of these programs that starts.
fn installed() -> Option<&'static str> {
    let starts = |program: &&str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    BROWSERS.into_iter().find(starts)
}

/// Returns the messages from the browser, until it ends.
fn messages(pipe: File) -> Receiver<Value> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(pipe).split(0) {
            let message = serde_json::from_slice(&message.expect("a message")).expect("JSON");
            if to.send(message).is_err() {
                break;
            }
        }
    });
    from
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
