//! ONNX files from a line of text, for `messages.txt`: `opset 11; x f32[2,3]; w f32[3] 1 2 3; y = Add(x,w); z,k = TopK(y) axis=1 axes=0,1 a=0.5 m='tanh`.
//!
//! A name with a type is an input, with values behind it a constant (the last value fills it up), with `@ location=w.bin offset=4` one whose data lies in
//! another file; `stated z f32[2]` states the type of what an operator writes. A tensor that no operator reads is an output, as is `output w`.
//! `com.microsoft.Op` is an operator of that domain, `9 times y# = Relu(x)` are nine items, `'a|b` are several texts, `value=@w.bin` is a tensor whose data
//! lies in that file.

/// The words of a field of varints, or of bytes.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: i64) -> Vec<u8> {
    [varint(field << 3), varint(value as u64)].concat()
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn text(field: u64, content: &str) -> Vec<u8> {
    bytes(field, content.as_bytes())
}

/// The number of an element type, its bytes, and a value of it.
fn element(name: &str, value: &str) -> (i64, Vec<u8>) {
    let whole = || value.parse::<i64>().expect("a whole number").to_le_bytes();
    match name {
        "f32" => (1, value.parse::<f32>().expect("a number").to_le_bytes().to_vec()),
        "u8" => (2, whole()[..1].to_vec()),
        "i8" => (3, whole()[..1].to_vec()),
        "i32" => (6, whole()[..4].to_vec()),
        "i64" => (7, whole().to_vec()),
        "bool" => (9, whole()[..1].to_vec()),
        other => panic!("{other}: f32, u8, i8, i32, i64 or bool"),
    }
}

/// `f32[2,3]`.
fn typed(text: &str) -> (&str, Vec<i64>) {
    let (kind, extents) = text.split_once('[').expect("TYPE[EXTENTS]");
    let extents = extents.trim_end_matches(']').split(',').filter(|word| !word.is_empty());
    (kind, extents.map(|word| word.parse().expect("an extent")).collect())
}

fn input(name: &str, of: &str) -> Vec<u8> {
    let (kind, extents) = typed(of);
    let shape: Vec<u8> = extents.iter().flat_map(|&n| bytes(1, &number(1, n))).collect();
    let tensor = [number(1, element(kind, "0").0), bytes(2, &shape)].concat();
    [text(1, name), bytes(2, &bytes(1, &tensor))].concat()
}

fn constant(name: &str, of: &str, values: &[&str]) -> Vec<u8> {
    let (kind, extents) = typed(of);
    let mut made: Vec<u8> = extents.iter().flat_map(|&n| number(1, n)).collect();
    made.extend([number(2, element(kind, "0").0), text(8, name)].concat());
    if let Some((_, pairs)) = values.split_first().filter(|(first, _)| **first == "@") {
        for pair in pairs {
            let (key, value) = pair.split_once('=').expect("KEY=VALUE");
            made.extend(bytes(13, &[text(1, key), text(2, value)].concat()));
        }
        made.extend(number(14, 1));
        return made;
    }
    let count = extents.iter().product::<i64>() as usize;
    let value = |i: usize| values[i.min(values.len() - 1)];
    let raw: Vec<u8> = (0..count).flat_map(|i| element(kind, value(i)).1).collect();
    made.extend(bytes(9, &raw));
    made
}

fn attribute(word: &str) -> Vec<u8> {
    let (name, value) = word.split_once('=').expect("NAME=VALUE");
    let float = |word: &str| word.parse::<f32>().expect("a number").to_le_bytes();
    let whole = |word: &str| word.parse::<i64>().expect("a whole number");
    let content = match value.strip_prefix('\'') {
        Some(words) if words.contains('|') => {
            let words: Vec<u8> = words.split('|').flat_map(|word| text(9, word)).collect();
            [words, number(20, 8)].concat()
        }
        Some(word) => [text(4, word), number(20, 3)].concat(),
        // A tensor whose data lies in another file.
        None if value.starts_with('@') => {
            let location = format!("location={}", &value[1..]);
            let tensor = constant("", "f32[1]", &["@", &location]);
            [bytes(5, &tensor), number(20, 4)].concat()
        }
        None if value.contains('.') => [varint(2 << 3 | 5), float(value).to_vec(), number(20, 1)].concat(),
        None if value.contains(',') => {
            let all = value.split(',').filter(|word| !word.is_empty());
            [all.flat_map(|word| number(8, whole(word))).collect(), number(20, 7)].concat()
        }
        None => [number(3, whole(value)), number(20, 2)].concat(),
    };
    [text(1, name), content].concat()
}

/// The file that a text describes.
pub(crate) fn file(description: &str) -> Vec<u8> {
    let (mut graph, mut opset, mut made, mut read) = (text(2, "g"), 17, Vec::new(), Vec::new());
    let mut items = Vec::new();
    for item in description.split(';').map(str::trim) {
        match item.split_once(" times ").map(|(count, item)| (count.parse(), item)) {
            Some((Ok(count), item)) => items.extend((0..count).map(|i: usize| item.replace('#', &i.to_string()))),
            _ => items.push(item.to_string()),
        }
    }
    for item in &items {
        if let Some((results, call)) = item.split_once(" = ") {
            let (operator, rest) = call.split_once('(').expect("OPERATOR(OPERANDS)");
            let (operands, attributes) = rest.split_once(')').expect("OPERATOR(OPERANDS)");
            let (domain, operator) = operator.rsplit_once('.').unwrap_or(("", operator));
            let mut node = [text(4, operator), text(7, domain)].concat();
            for operand in operands.split(',').filter(|_| !operands.is_empty()) {
                node.extend(text(1, operand));
                read.push(operand);
            }
            for result in results.split(',') {
                node.extend(text(2, result));
                made.push(result);
            }
            for word in attributes.split_whitespace() {
                node.extend(bytes(5, &attribute(word)));
            }
            graph.extend(bytes(1, &node));
            continue;
        }
        let words: Vec<&str> = item.split_whitespace().collect();
        match words[..] {
            ["output", name] => graph.extend(bytes(12, &text(1, name))),
            ["opset", version] => opset = version.parse().expect("a version"),
            ["stated", name, of] => graph.extend(bytes(13, &input(name, of))),
            [name, of] => graph.extend(bytes(11, &input(name, of))),
            [name, of, ..] => graph.extend(bytes(5, &constant(name, of, &words[2..]))),
            _ => panic!("{item}: NAME TYPE, NAME TYPE VALUES or RESULTS = OPERATOR(OPERANDS)"),
        }
    }
    for result in made
        .iter()
        .filter(|result| !result.is_empty() && !read.contains(result))
    {
        graph.extend(bytes(12, &text(1, result)));
    }
    let version = |domain: &str, version: i64| bytes(8, &[text(1, domain), number(2, version)].concat());
    let versions = [version("", opset), version("com.microsoft", 1)].concat();
    [number(1, 8), versions, bytes(7, &graph)].concat()
}
