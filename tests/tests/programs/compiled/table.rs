//! Tables of bytes in docs/footprint.md, each between two comments with its name. `ARENITE_BLESS=1` writes them anew, with the compiler that they are of.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a row, and the most that the first of them may be.
struct Row {
    label: String,
    bytes: Vec<u64>,
    aim: Option<u64>,
}

/// A table that is being measured, all of its rows or some.
pub(super) struct Table {
    name: &'static str,
    head: &'static str,
    rows: Vec<Row>,
    after: String,
}

impl Table {
    pub(super) fn new(name: &'static str, head: &'static str) -> Self {
        Self {
            name,
            head,
            rows: Vec::new(),
            after: String::new(),
        }
    }

    /// A row: its first columns, and figures.
    pub(super) fn row(&mut self, label: &str, bytes: &[u64], aim: Option<u64>) {
        let (label, bytes) = (label.to_owned(), bytes.to_vec());
        let row = Row { label, bytes, aim };
        println!("{}", row.text(self.has_aims()));
        self.rows.push(row);
    }

    /// Whether its last column says what is wanted at most.
    fn has_aims(&self) -> bool {
        self.head.contains("at most")
    }

    /// Text that is written behind the table, and not compared.
    pub(super) fn after(&mut self, text: &str) {
        text.clone_into(&mut self.after);
    }

    /// Compares what was measured with the document: within 2 % or 64 bytes by the compiler on record, 10 % by another. By the first no aim is exceeded.
    pub(super) fn compare(&self) {
        let compiler = compiler();
        let path = document();
        let text = fs::read_to_string(&path).expect("the document");
        let (begin, end) = (
            format!("<!-- {} -->\n", self.name),
            format!("<!-- end of {} -->", self.name),
        );
        let (head, rest) = text.split_once(&begin).expect("a place for the table");
        let (tracked, tail) = rest.split_once(&end).expect("its end");
        if std::env::var_os("ARENITE_BLESS").is_some() {
            let rows: String = self.rows.iter().map(|row| row.text(self.has_aims()) + "\n").collect();
            let table = format!("\nBy rustc {compiler}:\n\n{}{rows}{}\n", self.head, self.after);
            fs::write(&path, format!("{head}{begin}{table}{end}{tail}")).expect("written");
            return;
        }
        let is_same = tracked.contains(&format!("By rustc {compiler}:\n"));
        if !is_same {
            println!("docs/footprint.md is of another compiler than rustc {compiler}: held to 10 %");
        }
        let faults: Vec<String> = self.rows.iter().flat_map(|row| row.faults(tracked, is_same)).collect();
        let faults = faults.join("\n");
        assert!(
            faults.is_empty(),
            "by rustc {compiler} (ARENITE_BLESS=1 writes the table):\n{faults}"
        );
    }
}

impl Row {
    fn text(&self, has_aim: bool) -> String {
        let mut text = format!("| {} |", self.label);
        for bytes in &self.bytes {
            let _ = write!(text, " {bytes} |");
        }
        match self.aim {
            _ if !has_aim => {}
            Some(aim) => _ = write!(text, " {aim} |"),
            None => text += " - |",
        }
        text
    }

    fn faults(&self, tracked: &str, is_same: bool) -> Vec<String> {
        let begin = format!("| {} | ", self.label);
        let Some(figures) = tracked.lines().find_map(|line| line.strip_prefix(&begin)) else {
            return vec![format!("{}: no row of the document has this name", self.label)];
        };
        let known = figures.split('|').map_while(|cell| cell.trim().parse::<u64>().ok());
        let known: Vec<u64> = known.take(self.bytes.len()).collect();
        let mut faults = Vec::new();
        if known.len() != self.bytes.len() {
            faults.push(format!("{}: {known:?} are not as many figures", self.label));
        }
        for (found, known) in self.bytes.iter().zip(known) {
            let slack = if is_same { slack(known) } else { known / 10 };
            if found.abs_diff(known) > slack {
                faults.push(format!("{}: {found} bytes instead of {known}", self.label));
            }
        }
        if let Some(aim) = self.aim.filter(|aim| is_same && self.bytes[0] > *aim) {
            faults.push(format!(
                "{}: {} bytes, at most {aim} are wanted",
                self.label, self.bytes[0]
            ));
        }
        faults
    }
}

/// How far bytes may be from those on record, by the same compiler.
pub(super) fn slack(known: u64) -> u64 {
    (known / 50).max(64)
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/footprint.md")
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output().expect("rustc starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_row_that_grew_is_seen_and_one_that_is_missing() {
    let row = |bytes: &[u64], aim| Row {
        label: "net | core".into(),
        bytes: bytes.to_vec(),
        aim,
    };
    let tracked = "| net | core | 10000 | 20000 | - |\n";
    assert_eq!(row(&[10_200, 19_600], Some(11_000)).faults(tracked, true), [""; 0]);
    assert_eq!(row(&[10_201, 19_599], None).faults(tracked, true).len(), 2);
    assert_eq!(row(&[11_000, 20_000], Some(1)).faults(tracked, false), [""; 0]);
    assert_eq!(row(&[11_001, 20_000], None).faults(tracked, false).len(), 1);
    assert_eq!(row(&[10_000, 20_000], Some(9_999)).faults(tracked, true).len(), 1);
    assert_eq!(
        row(&[10_000, 20_000], None)
            .faults("| net | core | 10000 | - |\n", true)
            .len(),
        1
    );
    assert_eq!(row(&[1], None).faults("| other | core | 1 | - |\n", true).len(), 1);
}
