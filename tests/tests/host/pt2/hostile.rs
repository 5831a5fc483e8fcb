//! Archives and documents that lie, are cut off, or lead elsewhere.

use std::io::Write;

use arenite_host::import::ImportOptions;
use arenite_tests::writers::Random;
use arenite_tests::writers::pt2::{Entry, archive, entries, small, zip};
use serde_json::{Value, json};

use crate::pt2::{folder, refused, said};

#[test]
fn hostile_archives_are_refused() {
    let good = small().to_string();
    let with = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut all = entries(&good);
        change(&mut all);
        zip(&all)
    };
    refused(
        &with(&|all| all.push(Entry::stored("m/../../etc/passwd", b"x"))),
        &["the entry `m/../../etc/passwd` leads out of the archive"],
    );
    refused(
        &with(&|all| all.push(Entry::stored("/elsewhere/x", b"x"))),
        &["`/elsewhere/x` leads out"],
    );
    refused(
        &with(&|all| all.push(Entry::stored("m/models/other.json", good.as_bytes()))),
        &["the archive holds 2 programs: `model`, `other`", "one"],
    );
    refused(
        &with(&|all| all.push(all[0].clone())),
        &["the zip archive is damaged", "is in it twice"],
    );
    refused(
        &with(&|all| drop(all.remove(0))),
        &["the archive has no entry `m/data/weights/weight_0`"],
    );
    refused(
        &with(&|all| drop(all.remove(1))),
        &["no entry `m/data/weights/model_weights_config.json`"],
    );
    refused(
        &with(&|all| all[1] = Entry::stored("m/data/weights/model_weights_config.json", b"{\"config\": {}}")),
        &["the archive has no value of `layer.w`"],
    );
    // Lengths that lie: more than the entry has, less, none.
    for size in [0_u32, 11, 13, 1 << 20, u32::MAX - 1] {
        refused(&with(&|all| all[0].size = size), &["the zip archive is damaged"]);
    }
    refused(
        &with(&|all| all[0].crc ^= 1),
        &["the zip archive is damaged", "is damaged"],
    );
    refused(&with(&|all| all[0].method = 12), &["compressed by method 12"]);
    // A path in the configuration that leads out, and elements beyond what is stored.
    let configured = |from: &str, to: &str| {
        with(&|all: &mut Vec<Entry>| {
            let text = String::from_utf8(all[1].packed.clone()).expect("text");
            assert!(text.contains(from), "{text}");
            all[1] = Entry::stored(&all[1].name.clone(), text.replace(from, to).as_bytes());
        })
    };
    refused(
        &configured("weight_0", "../../../etc/passwd"),
        &["the archive has no entry `m/data/weights/../../../etc/passwd`"],
    );
    let sizes = "\"sizes\":[{\"as_int\":3}]";
    for (to, part) in [
        ("\"sizes\":[{\"as_int\":4}]", "elements within what is stored"),
        ("\"sizes\":[{\"as_int\":-3}]", "elements within what is stored"),
        (
            "\"sizes\":[{\"as_int\":9223372036854775807}]",
            "elements within what is stored",
        ),
        ("\"sizes\":[{\"as_int\":1000000000}]", "elements within what is stored"),
        ("\"sizes\":[]", "elements within what is stored"),
        (
            "\"sizes\":[{\"as_expr\":{\"expr_str\":\"s0\"}}]",
            "the shape of a parameter is not stated",
        ),
    ] {
        refused(&configured(sizes, to), &[part]);
    }
    refused(
        &configured("\"strides\":[{\"as_int\":1}]", "\"strides\":[{\"as_int\":2}]"),
        &["elements within what is stored"],
    );
    refused(
        &configured("\"dtype\":7", "\"dtype\":10"),
        &["element type complex64 of a constant"],
    );
    // Repeated without end: 12 bytes as 4 GiB and more.
    let repeated = configured(sizes, "\"sizes\":[{\"as_int\":100000000},{\"as_int\":3}]");
    refused(&repeated, &["elements within what is stored"]);
}

#[test]
fn bombs_are_refused_before_they_unpack() {
    let deflated = |name: &str, count: usize, size: u32| {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&vec![b' '; count]).expect("written");
        let packed = encoder.finish().expect("packed");
        Entry {
            name: name.to_string(),
            packed,
            method: 8,
            crc: 0,
            size,
        }
    };
    let large = 80 << 20;
    refused(
        &zip(&[deflated("m/models/model.json", large, large as u32)]),
        &[
            "the entry `m/models/model.json` unpacks to 83886080 bytes",
            "for a file of this size",
        ],
    );
    refused(
        &zip(&[deflated("m/models/model.json", 1 << 20, 100)]),
        &["the zip archive is damaged"],
    );
    refused(
        &zip(&[deflated("m/models/model.json", 1000, u32::MAX - 1)]),
        &["claims 4294967294 bytes"],
    );
}

/// Each field of a document left out, and changed to values of other kinds: what is read says what is wrong, or does not need it.
#[test]
fn changed_documents_are_refused_or_read() {
    let good = small();
    let mut paths = Vec::new();
    collect(&good, &mut Vec::new(), &mut paths);
    let (mut read, mut all) = (0, 0);
    for path in &paths {
        let others = [
            None,
            Some(json!(null)),
            Some(json!(-1)),
            Some(json!(9_223_372_036_854_775_807_i64)),
            Some(json!("x")),
            Some(json!([])),
            Some(json!({})),
            Some(json!([{"as_int": 1}])),
        ];
        for other in others {
            let mut changed = good.clone();
            change(&mut changed, path, other);
            all += 1;
            read += usize::from(said(&archive(&changed), &ImportOptions::default()).is_ok());
        }
    }
    assert!(all > 800 && read > 100 && read < all / 2, "{read} of {all}");
}

fn collect(value: &Value, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    if !path.is_empty() {
        paths.push(path.clone());
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        path.push(name);
        collect(child, path, paths);
        path.pop();
    }
}

fn change(value: &mut Value, path: &[String], other: Option<Value>) {
    let (last, front) = path.split_last().expect("a path");
    let mut at = value;
    for name in front {
        at = match at {
            Value::Object(fields) => fields.get_mut(name).expect("a field"),
            Value::Array(items) => &mut items[name.parse::<usize>().expect("a place")],
            _ => unreachable!("a path leads through lists and objects"),
        };
    }
    match (at, other) {
        (Value::Object(fields), None) => drop(fields.remove(last)),
        (Value::Object(fields), Some(other)) => drop(fields.insert(last.clone(), other)),
        (Value::Array(items), None) => drop(items.remove(last.parse().expect("a place"))),
        (Value::Array(items), Some(other)) => items[last.parse::<usize>().expect("a place")] = other,
        _ => unreachable!("a path leads through lists and objects"),
    }
}

#[test]
fn cut_and_mixed_files_never_panic() {
    let mut random = Random::new(0x12);
    for name in ["mlp", "mlp_2_5", "mlp_2_8"] {
        let content = std::fs::read(folder().join(format!("{name}.pt2"))).expect("a file");
        for end in (0..content.len()).step_by(61) {
            said(&content[..end], &ImportOptions::default()).expect_err("it is cut off");
        }
        for _ in 0..400 {
            let mut changed = content.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len());
                changed[at] = random.below(256) as u8;
            }
            let _ = said(&changed, &ImportOptions::default());
        }
    }
    // Within the document, and within the pickle, behind right checksums.
    let documents = entries(&small().to_string());
    let text = small().to_string();
    for end in (0..text.len()).step_by(7) {
        refused(&zip(&entries(&text[..end])), &["m/models/model.json"]);
    }
    assert_eq!(documents.len(), 4);
}
