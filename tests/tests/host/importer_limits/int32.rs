//! Integers of 32 bits at run time, beyond what f32 holds, by plain formulas of Rust.

use super::onnx_file::{File, computed, initializer, int, longs, stored_ints, value};

const A: [i32; 6] = [16_777_217, -16_777_219, 7, -7, 2_000_000_001, 0];
const B: [i32; 3] = [16_777_216, -3, 2];

const INT32: i64 = 6;
const INT64: i64 = 7;
const BOOL: i64 = 9;

fn file(elem: i64, result: i64) -> File {
    let b = match elem {
        INT64 => longs("b", &B.map(i64::from)),
        _ => initializer("b", INT32, &[3], &stored_ints(&B)),
    };
    File::default()
        .input(&value("a", elem, &[2, 3]))
        .output(&value("y", result, &[2, 3]))
        .holding(&b)
}

fn integers(bytes: &[u8]) -> Vec<i32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| i32::from_le_bytes(*word)).collect()
}

fn pairs(f: impl Fn(i32, i32) -> i32) -> Vec<i32> {
    A.iter().zip(B.iter().cycle()).map(|(&a, &b)| f(a, b)).collect()
}

#[test]
fn arithmetic() {
    type Two = fn(i32, i32) -> i32;
    let functions: [(&str, Two); 8] = [
        ("Add", i32::wrapping_add),
        ("Sub", i32::wrapping_sub),
        ("Mul", i32::wrapping_mul),
        ("Div", |a, b| a / b),
        ("Min", i32::min),
        ("Max", i32::max),
        ("Mod", |a, b| {
            let rest = a % b;
            if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }),
        ("Mod, fmod", |a, b| a % b),
    ];
    for elem in [INT32, INT64] {
        for (name, f) in functions {
            let op = name.split(',').next().expect("a name");
            let attributes = if op == name { vec![] } else { vec![int("fmod", 1)] };
            let file = file(elem, elem).node(op, &["a", "b"], "y", &attributes);
            let y = computed(&file.bytes(18), &stored_ints(&A)).expect(name);
            assert_eq!(integers(&y), pairs(f), "{name} of {elem}");
        }
    }
    // The constant before what is computed.
    let known = file(INT32, INT32)
        .holding(&initializer("one", INT32, &[], &stored_ints(&[1])))
        .node("Abs", &["a"], "m", &[])
        .node("Max", &["m", "one"], "n", &[])
        .node("Div", &["b", "n"], "y", &[]);
    let y = computed(&known.bytes(18), &stored_ints(&A)).expect("Div");
    assert_eq!(integers(&y), pairs(|a, b| b / a.abs().max(1)));
}

#[test]
fn comparisons() {
    type Two = fn(&i32, &i32) -> bool;
    let near: Vec<i32> = A.iter().map(|a| a - 1).collect();
    let functions: [(&str, Two); 5] = [
        ("Equal", i32::eq),
        ("Less", i32::lt),
        ("LessOrEqual", i32::le),
        ("Greater", i32::gt),
        ("GreaterOrEqual", i32::ge),
    ];
    for (op, f) in functions {
        for other in [&near[..], &A[..]] {
            let file = file(INT32, BOOL).holding(&initializer("n", INT32, &[2, 3], &stored_ints(other)));
            let y = computed(&file.node(op, &["a", "n"], "y", &[]).bytes(18), &stored_ints(&A)).expect(op);
            let right: Vec<u8> = A.iter().zip(other).map(|(a, b)| u8::from(f(a, b))).collect();
            assert_eq!(y, right, "{op}");
        }
    }
    let file = file(INT32, BOOL).node("Cast", &["a"], "t", &[int("to", BOOL)]);
    let y = computed(&file.node("Not", &["t"], "y", &[]).bytes(18), &stored_ints(&A)).expect("Not");
    assert_eq!(y, A.map(|a| u8::from(a == 0)));
}

#[test]
fn choices() {
    // Where(a < b, a, b), and with one of the two a constant of another shape.
    for (operands, f) in [
        (["a", "b"], (|a, b| if a < b { a } else { b }) as fn(i32, i32) -> i32),
        (["b", "a"], |a, b| if a < b { b } else { a }),
        (["minus", "a"], |a, b| if a < b { -1 } else { a }),
    ] {
        for elem in [INT32, INT64] {
            let minus = match elem {
                INT64 => longs("minus", &[-1]),
                _ => initializer("minus", INT32, &[1], &stored_ints(&[-1])),
            };
            let file = file(elem, elem)
                .holding(&minus)
                .node("Less", &["a", "b"], "c", &[])
                .node("Where", &["c", operands[0], operands[1]], "y", &[]);
            let y = computed(&file.bytes(18), &stored_ints(&A)).expect("Where");
            assert_eq!(integers(&y), pairs(f), "{operands:?}");
        }
    }
    // A condition that is known, of fewer axes.
    let known = file(INT32, INT32)
        .holding(&initializer("c", BOOL, &[3], &[1, 0, 1]))
        .node("Where", &["c", "a", "b"], "y", &[]);
    let y = computed(&known.bytes(18), &stored_ints(&A)).expect("Where");
    let right: Vec<i32> = (0..6).map(|i| if i % 3 == 1 { B[1] } else { A[i] }).collect();
    assert_eq!(integers(&y), right);
    // int64 constants of either side: int32 on the device.
    let file = file(INT32, INT64)
        .holding(&longs("yes", &[1 << 30]))
        .holding(&longs("no", &[-(1 << 30)]))
        .node("Less", &["a", "b"], "c", &[])
        .node("Where", &["c", "yes", "no"], "y", &[]);
    let y = computed(&file.bytes(18), &stored_ints(&A)).expect("Where");
    assert_eq!(integers(&y), pairs(|a, b| if a < b { 1 << 30 } else { -(1 << 30) }));
}

#[test]
fn functions_of_one() {
    type One = fn(i32) -> i32;
    let functions: [(&str, One); 4] = [
        ("Neg", |a| -a),
        ("Abs", i32::abs),
        ("Sign", i32::signum),
        ("Relu", |a| a.max(0)),
    ];
    for (op, f) in functions {
        let file = file(INT32, INT32).node(op, &["a"], "y", &[]);
        let y = computed(&file.bytes(18), &stored_ints(&A)).expect(op);
        assert_eq!(integers(&y), A.map(f), "{op}");
    }
}

#[test]
fn what_has_no_result_is_refused() {
    let zero = file(INT32, INT32)
        .holding(&initializer("zero", INT32, &[3], &stored_ints(&[1, 0, 1])))
        .node("Div", &["a", "zero"], "y", &[]);
    let text = computed(&zero.bytes(18), &stored_ints(&A)).expect_err("it is refused");
    assert!(text.contains("a division of integers by 0"), "{text}");
    let real = File::default()
        .input(&value("x", 1, &[2]))
        .output(&value("y", 1, &[2]))
        .node("Mod", &["x", "x"], "y", &[]);
    let text = computed(&real.bytes(18), &[0; 8]).expect_err("it is refused");
    assert!(text.contains("attribute `fmod` is 0"), "{text}");
    let wide = file(INT64, INT64)
        .holding(&longs("wide", &[1 << 40, 0, 0]))
        .node("Less", &["a", "wide"], "y", &[]);
    let text = computed(&wide.bytes(18), &stored_ints(&A)).expect_err("it is refused");
    assert!(text.contains("a constant beyond 32 bits"), "{text}");
}
