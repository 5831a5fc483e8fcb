//! Looks for changed files that provoke messages which no line of the record is, and prints the lines that provoke them:
//! `ARENITE_SECONDS=600 ARENITE_FILES=.onnx cargo test -p arenite-host --test cli not_on_record -- --ignored --nocapture`

use std::collections::HashSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arenite_host::import::{ImportOptions, import_content};
use arenite_host::pack::{Options, pack};

use crate::common::models;
use crate::sites::{Site, unprovoked};

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// The files that changes begin with, by the names that the record knows them by.
pub(crate) fn bases() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for folder in [
        "tflite_ops",
        "tflite_odd",
        "tflite_signal",
        "tflite_wide",
        "tflite_made",
        "recurrent",
        "stateful",
        "digits",
        "pytorch",
        "pytorch_int8",
        "typed",
        "onnx",
        "gestures",
    ] {
        below(&models().join(folder), &mut found);
    }
    for dialect in ["chainer", "keras_order", "megengine", "rects", "tf_shapes"] {
        let path = models().join("../corpus").join(dialect).join("small");
        found.push((format!("{dialect}.txt"), path));
    }
    for entry in fs::read_dir(models().join("../corpus/onnx")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        found.push((format!("{name}.onnx"), path));
    }
    // The record has a file of this name.
    found.retain(|(name, _)| name != "model.onnx");
    found.retain(|(_, path)| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < 40_000));
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

fn below(folder: &Path, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            below(&path, found);
            continue;
        }
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if [".tflite", ".onnx", ".trace.json"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push((name, path));
        }
    }
}

/// A change in the words of the record, and what it makes.
fn changed(bytes: &[u8], text: bool, chance: &mut Chance) -> Option<(String, Vec<u8>)> {
    if text && chance.below(8) > 0 {
        let text = std::str::from_utf8(bytes).ok()?;
        let of_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let words: Vec<(usize, &str)> = text
            .split(|c| !of_word(c))
            .filter(|word| !word.is_empty())
            .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
            .collect();
        let (at, word) = words[chance.below(words.len())];
        let other = words[chance.below(words.len())].1;
        let number = word.parse::<f64>().is_ok();
        let values = if number {
            ["0", "-1", "3", "2", "1", "4294967296", "0.5", "7"]
        } else {
            ["x", "f32", "i8", "i32", "add", "conv2d", "", "concat"]
        };
        let new = match chance.below(10) {
            0..=3 => other,
            4..=8 => values[chance.below(values.len())],
            _ => "\"",
        };
        // From as far back as makes it the first of its kind.
        let mut from = at;
        loop {
            let old = &text[from..at + word.len()];
            if text.find(old) == Some(from) || from == 0 {
                break;
            }
            from -= 1;
            while !text.is_char_boundary(from) {
                from -= 1;
            }
        }
        let old = &text[from..at + word.len()];
        if at - from > 90 || old.contains('\\') || old.contains(" => ") {
            return None;
        }
        let put = format!("{}{new}", &text[from..at]);
        let made = format!("{}{put}{}", &text[..from], &text[at + word.len()..]);
        let line = format!("{} => {}", old.replace('\n', "\\n"), put.replace('\n', "\\n"));
        return Some((line, made.into_bytes()));
    }
    let mut made = bytes.to_vec();
    if chance.below(60) == 0 {
        let length = chance.below(bytes.len());
        made.truncate(length);
        return Some((format!("cut {length}"), made));
    }
    let at = chance.below(bytes.len());
    let value = match chance.below(8) {
        0 => 0,
        1 => 255,
        2 => bytes[at].wrapping_add(1),
        3 => bytes[at].wrapping_sub(1),
        4 => chance.below(16) as u8,
        5 => bytes[at] ^ 0x40,
        6 => bytes[chance.below(bytes.len())],
        _ => chance.below(256) as u8,
    };
    made[at] = value;
    Some((format!("byte {at} = {value}"), made))
}

/// Runs `pack` on the file; returns its message and its command.
fn said(name: &str, bytes: &[u8], folder: &Path, whole: bool) -> Option<(String, String)> {
    let seeded = name.ends_with(".txt");
    let input = folder.join(name);
    let options = ImportOptions::default();
    let error = match import_content(&input, bytes, None, &options) {
        Err(error) => error,
        Ok(_) if whole => {
            fs::write(&input, bytes).expect("written");
            let options = Options {
                weights: seeded.then(|| "seeded:1".to_string()),
                plan_nodes: 100,
                ..Options::new(input, folder.join("m.bin"))
            };
            pack(&options, &mut |_, _, _| {}).err()?
        }
        Ok(_) => return None,
    };
    let weights = if seeded { " --weights seeded:1" } else { "" };
    Some((error.to_string(), format!("$ pack {name} -o m.bin{weights}")))
}

#[test]
#[ignore = "long: changes files at random and looks for messages that are not on record"]
fn messages_that_are_not_on_record() {
    let seconds = std::env::var("ARENITE_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(600));
    let folder = tempfile::tempdir().expect("a folder");
    for beside in ["digits", "gestures", "pytorch"] {
        for entry in fs::read_dir(models().join(beside)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|kind| kind == "safetensors") {
                fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
            }
        }
    }
    let mut missing: Vec<Site> = unprovoked();
    let like = std::env::var("ARENITE_FILES").unwrap_or_default();
    let all: Vec<(String, Vec<u8>)> = bases()
        .into_iter()
        .filter(|(name, _)| name.contains(&like))
        .map(|(name, path)| (name, fs::read(path).expect("a file")))
        .collect();
    let (mut seen, mut chance, mut tried) = (HashSet::new(), Chance(0x9e37_79b9_7f4a_7c15), 0);
    let mut found = |line: &str, said: &str, command: &str| {
        let shape: String = said.chars().filter(|c| !c.is_ascii_digit()).collect();
        if !seen.insert(shape) {
            return;
        }
        if let Some(at) = missing.iter().position(|site| site.is_in(said)) {
            let site = missing.remove(at);
            println!(
                "@@ {} {:?}\n{line}{command}\n!! {}",
                site.file,
                site.text,
                said.replace('\n', "\n!! ")
            );
        }
    };
    for (name, bytes) in &all {
        if let Some((message, command)) = said(name, bytes, folder.path(), true) {
            found("", &message, &command);
        }
    }
    while Instant::now() < end {
        let (name, bytes) = &all[chance.below(all.len())];
        let (_, kind) = name.rsplit_once('.').expect("an extension");
        for _ in 0..40 {
            let Some((change, made)) = changed(bytes, kind != "tflite" && kind != "onnx", &mut chance) else {
                continue;
            };
            tried += 1;
            let wrong = format!("wrong.{kind}");
            let whole = chance.below(3) == 0;
            match catch_unwind(|| said(&wrong, &made, folder.path(), whole)) {
                Ok(None) => {}
                Ok(Some((message, command))) => found(&format!("~ {name} > {wrong}: {change}\n"), &message, &command),
                Err(_) => println!("PANIC ~ {name} > {wrong}: {change}"),
            }
        }
    }
    println!("{tried} files, {} messages left", missing.len());
}
