//! The specification of the model file against the code, and an old file against the reader.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use arenite::{HEADER_BYTES, Header, KernelSet, LoadError, MAX_ROWS, ROW_BYTES, Section, Step, Target};
use arenite_host::model::{self, ModelFile};
use arenite_tests::typed::{bundle, other, written};
use arenite_tests::wire;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn specification() -> String {
    std::fs::read_to_string(root().join("docs/format.md")).expect("docs/format.md")
}

#[test]
fn the_specification_lists_every_target_and_the_version() {
    let text = specification();
    for target in Target::ALL {
        assert!(
            text.contains(&format!("{} {}", target as u8, target.name())),
            "{target:?}"
        );
    }
    assert!(text.contains(&format!("format version {}", arenite::FORMAT_VERSION)));
}

/// Rows of the header's table: offset, bytes, words.
fn header_rows() -> Vec<(usize, usize, String)> {
    let text = specification();
    let rows = text.lines().skip_while(|line| !line.starts_with("## Header"));
    let rows = rows.skip_while(|line| !line.starts_with("| ---")).skip(1);
    let number = |cell: &str| cell.trim().parse().unwrap_or_else(|e| panic!("{cell}: {e}"));
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.splitn(5, '|').collect();
            let words = cells[3..].join("|");
            (
                number(cells[1]),
                number(cells[2]),
                words.trim_matches([' ', '|']).to_owned(),
            )
        })
        .collect()
}

/// Every field of the header by itself changes the bytes that the table gives it, and nothing else does.
#[test]
fn the_specification_states_where_every_field_of_the_header_lies() {
    let section = Section {
        offset: u32::MAX,
        len: u32::MAX,
    };
    let zero = Header::default();
    let fields = [
        ("target", Header { target: 255, ..zero }),
        ("number of inputs", Header { inputs: 255, ..zero }),
        ("number of outputs", Header { outputs: 255, ..zero }),
        (
            "length of the file",
            Header {
                total: u32::MAX,
                ..zero
            },
        ),
        ("CRC-32", Header { crc: u32::MAX, ..zero }),
        ("ports: offset, length", Header { ports: section, ..zero }),
        ("steps: offset, length", Header { steps: section, ..zero }),
        (
            "number of steps",
            Header {
                step_count: u32::MAX,
                ..zero
            },
        ),
        ("metadata: offset, length", Header { meta: section, ..zero }),
        (
            "weights: offset",
            Header {
                weights: section,
                ..zero
            },
        ),
        (
            "initial state: offset, length",
            Header {
                state_init: section,
                ..zero
            },
        ),
        (
            "runs that the initial state is stored as",
            Header {
                state_runs: 255,
                ..zero
            },
        ),
        (
            "arena bytes of regions 0 to 3",
            Header {
                arena: [u32::MAX; 4],
                ..zero
            },
        ),
        (
            "bytes of all inputs",
            Header {
                input_bytes: u32::MAX,
                ..zero
            },
        ),
        (
            "bytes of all outputs",
            Header {
                output_bytes: u32::MAX,
                ..zero
            },
        ),
        (
            "kernels",
            Header {
                kernels: KernelSet::ALL,
                ..zero
            },
        ),
        (
            "self-test: offset",
            Header {
                self_test: section,
                ..zero
            },
        ),
        (
            "class labels: offset",
            Header {
                labels: section,
                ..zero
            },
        ),
    ];
    let (rows, empty) = (header_rows(), bytes_of(&zero));
    let mut next = 0;
    for (offset, bytes, words) in &rows {
        assert_eq!(*offset, next, "`{words}` does not follow what is above it");
        next += bytes;
        let field = fields.iter().find(|(start, _)| words.starts_with(start));
        let place = *offset..next;
        match (field, words.as_str()) {
            (Some((_, header)), _) => {
                let written = bytes_of(header);
                let changed: Vec<usize> = (0..HEADER_BYTES).filter(|&at| written[at] != empty[at]).collect();
                assert_eq!(changed, place.collect::<Vec<_>>(), "`{words}`");
            }
            // Rows are counted with the header's length, in a test of their own.
            (None, "rows of the table of sections, at most 32") => {
                assert_eq!((&empty[place], MAX_ROWS), (&[0; 4][..], 32))
            }
            (None, "0") => assert!(empty[place].iter().all(|&byte| byte == 0), "{offset}"),
            (None, "magic: `ARENITE` and a line feed") => assert_eq!(&empty[place], b"ARENITE\n"),
            (None, "format version: 2") => assert_eq!(empty[place], arenite::FORMAT_VERSION.to_le_bytes()),
            (None, "header length: 144, and 12 for each row of the table of sections") => {
                assert_eq!(empty[place], (HEADER_BYTES as u16).to_le_bytes())
            }
            (None, _) => panic!("no field is `{words}`"),
        }
    }
    assert_eq!(next, HEADER_BYTES);
    let stated = rows
        .iter()
        .filter(|row| fields.iter().any(|(start, _)| row.2.starts_with(start)));
    assert_eq!(stated.count(), fields.len(), "a field without a row, or two of one");
}

/// A header's bytes.
fn bytes_of(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes
}

/// A section of the table has a row behind the fixed fields, which both say how many there are.
#[test]
fn the_table_of_sections_follows_the_fixed_fields() {
    let cores = Section {
        offset: 0x0102_0304,
        len: 5,
    };
    let header = Header {
        cores,
        total: 500,
        ..Header::default()
    };
    let bytes = bytes_of(&header);
    assert_eq!(bytes.len(), HEADER_BYTES + ROW_BYTES);
    assert_eq!(bytes[10..12], (bytes.len() as u16).to_le_bytes());
    assert_eq!(bytes[92..96], 1_u32.to_le_bytes());
    assert_eq!(bytes[HEADER_BYTES..], [1, 0, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0]);
    assert_eq!(Header::parse(&bytes).map(|read| read.cores), Ok(cores));
    for (what, place, value) in [
        ("fewer rows than the length has", 92, 0),
        ("more rows than the length has", 92, 2),
        ("a longer header", 10, bytes.len() as u8 + 1),
    ] {
        let mut bytes = bytes.clone();
        bytes[place] = value;
        assert_eq!(Header::parse(&bytes), Err(LoadError::Header), "{what}");
    }
}

#[test]
fn typed_models_are_what_is_written_here() {
    let files = [
        ("several.bin", written().file()),
        (
            "bundle.bin",
            bundle(&[("several", written().file()), ("square-sum", other().file())]),
        ),
    ];
    for (name, file) in files {
        let path = root().join("tests/models/typed").join(name);
        if std::env::var_os("ARENITE_BLESS").is_some() {
            std::fs::write(&path, &file).expect("written");
        }
        let tracked = std::fs::read(&path).expect("a file");
        assert!(tracked == file, "{name}: ARENITE_BLESS=1 writes it");
    }
}

#[test]
fn the_specification_states_every_structure_and_enum() {
    let operators = wire::operators();
    let ports = wire::registry::<arenite::DType>();
    compare("docs/format.md", |text| {
        between(text, "<!-- wire: generated -->\n", &wire::lines(&operators, &ports))
    });
    compare("docs/format.md", |text| {
        let mut rows = "| number | kernel | backend | operator |\n| ---: | --- | --- | --- |\n".to_owned();
        for operator in &operators {
            let kernel = operator.kernel;
            let _ = writeln!(
                rows,
                "| {} | `{}` | {:?} | `{}` |",
                kernel as u8,
                kernel.name(),
                kernel.backend(),
                operator.name
            );
        }
        between(text, "<!-- kernels: generated -->\n", &rows)
    });
}

/// The bytes of a value of every structure and of every enum's variant, each field another number: what a change of the wire would change.
#[test]
fn every_variant_has_its_golden_encoding() {
    compare("tests/models/format/v2.txt", |_| {
        let mut text =
            "# Format version 2: kernel, encoded parameters, and the value that postcard decodes from them.\n"
                .to_owned();
        for operator in wire::operators() {
            for (bytes, value) in operator.examples() {
                let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                    let _ = write!(hex, "{byte:02x}");
                    hex
                });
                let _ = writeln!(text, "{} {hex} {value}", operator.kernel.name());
                // The device's decoder finds the same value.
                let device = Step::decode(operator.kernel, &bytes).unwrap_or_else(|e| panic!("{value}: {e}"));
                let device = format!("{device:?}");
                assert_eq!(device, format!("{}({value})", operator.kernel.name()));
            }
        }
        text
    });
}

/// Compares a tracked text with what is made of it, or writes it with `ARENITE_BLESS=1`.
fn compare(path: &str, made: impl FnOnce(&str) -> String) {
    let file = root().join(path);
    let tracked = std::fs::read_to_string(&file).unwrap_or_default();
    let made = made(&tracked);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&file, made).unwrap_or_else(|e| panic!("{path}: {e}"));
        return;
    }
    let differs = tracked.lines().zip(made.lines()).find(|(old, new)| old != new);
    assert!(
        tracked == made,
        "{path} is generated, and differs: {differs:?}\nwhere that is meant, raise the format version where it must be, and \
         ARENITE_BLESS=1 cargo test -p arenite-tests --test host format::"
    );
}

fn between(text: &str, marker: &str, lines: &str) -> String {
    let start = text.find(marker).expect("a start marker") + marker.len();
    let end = start + text[start..].find("<!-- end -->").expect("an end marker");
    format!("{}{lines}{}", &text[..start], &text[end..])
}

/// A file of the first release: it loads and gives the same numbers, or is refused with its version.
#[test]
fn an_old_model_loads_or_is_refused_by_version() {
    let path = root().join("tests/models/compat/mlp-v1.bin");
    let file = ModelFile::open(&path).expect("a committed file");
    let mut aligned = model::Aligned::new(file.bytes().len());
    aligned.bytes().copy_from_slice(file.bytes());
    match arenite::Model::load(aligned.bytes()) {
        Err(LoadError::Version { found, supported }) => {
            assert!((found, supported) == (1, arenite::FORMAT_VERSION) && supported > 1)
        }
        Err(other) => panic!("{other:?}"),
        Ok(model) => {
            let read =
                |name: &str| std::fs::read(root().join("tests/models/compat").join(name)).expect("a committed file");
            let results = model::run(&model, &[vec![read("input.f32")]], false, &mut |_, _, _| {}).expect("runs");
            let error = arenite_host::compare::relative(arenite::DType::F32, &results[0][0], &read("output.f32"));
            assert!(error <= 1e-5, "differs by {error:e}");
        }
    }
}
