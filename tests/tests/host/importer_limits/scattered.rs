//! Elements chosen and replaced at known indices, and what is computed of known values: loops of this test over all indices.

use arenite_tests::onnx::Writer;
use arenite_tests::writers::Random;

use super::onnx_file::{File, computed, floats, imported, initializer, int, longs, stored, stored_ints, value};

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

fn extents(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&n| n as i64).collect()
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// All indices of a shape, in order.
fn all_of(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &extent| {
        let longer = |index: &Vec<usize>| {
            let index = index.clone();
            (0..extent).map(move |i| [index.clone(), vec![i]].concat())
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Where an index lies, row-major.
fn at(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |at, (&extent, &i)| at * extent + i)
}

fn tensor(name: &str, shape: &[usize], values: &[i64]) -> Vec<u8> {
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    initializer(name, 7, &extents(shape), &raw)
}

fn reals(random: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| random.below(2001) as f32 / 8.0 - 125.0).collect()
}

/// Indices below `extent`, one in three counted from the end.
fn indices(random: &mut Random, n: usize, extent: usize) -> (Vec<i64>, Vec<usize>) {
    let places: Vec<usize> = (0..n).map(|_| random.below(extent)).collect();
    let stated = places
        .iter()
        .map(|&i| i as i64 - if random.below(3) == 0 { extent as i64 } else { 0 });
    (stated.collect(), places)
}

/// The network of one operator with its data at run time, and the same of constants plus an input of zeros.
fn both_ways(
    op: &str,
    data: (&[usize], &[f32]),
    held: &[Vec<u8>],
    rest: &[&str],
    result: &[usize],
    how: &[Vec<u8>],
) -> [Vec<f32>; 2] {
    let inputs = |first| [&[first], rest].concat();
    let file = held.iter().fold(File::default(), |file, tensor| file.holding(tensor));
    let run_time = file
        .clone()
        .input(&value("x", 1, &extents(data.0)))
        .output(&value("y", 1, &extents(result)))
        .node(op, &inputs("x"), "y", how);
    let known = file
        .input(&value("x", 1, &extents(result)))
        .output(&value("y", 1, &extents(result)))
        .holding(&floats("data", &extents(data.0), data.1))
        .node(op, &inputs("data"), "known", how)
        .node("Add", &["x", "known"], "y", &[]);
    let zeros = vec![0.0; count(result)];
    [(run_time, data.1), (known, &zeros)].map(|(file, x)| {
        let y = computed(&file.bytes(18), &stored(x)).unwrap_or_else(|e| panic!("{op} of {data:?}: {e}"));
        numbers(&y)
    })
}

#[test]
fn elements_along_an_axis() {
    let mut random = Random::new(16);
    for round in 0..24 {
        let rank = 1 + random.below(3);
        let shape: Vec<usize> = (0..rank).map(|_| 2 + random.below(4)).collect();
        let axis = random.below(rank);
        let mut of: Vec<usize> = shape.iter().map(|&n| 1 + random.below(n)).collect();
        of[axis] = 1 + random.below(6);
        let data = reals(&mut random, count(&shape));
        let (stated, places) = indices(&mut random, count(&of), shape[axis]);
        let held = [tensor("i", &of, &stated)];
        let moved = |index: &Vec<usize>| {
            let mut index = index.clone();
            index[axis] = places[at(&of, &index)];
            at(&shape, &index)
        };
        let right: Vec<f32> = all_of(&of).iter().map(|index| data[moved(index)]).collect();
        let how = [int("axis", axis as i64 - if round % 2 == 0 { rank as i64 } else { 0 })];
        for y in both_ways("GatherElements", (&shape, &data), &held, &["i"], &of, &how) {
            assert_eq!(y, right, "round {round}");
        }
        // The other way round: the last of several updates of one place stays.
        let updates = reals(&mut random, count(&of));
        let mut right = data.clone();
        for index in all_of(&of) {
            right[moved(&index)] = updates[at(&of, &index)];
        }
        let held = [tensor("i", &of, &stated), floats("u", &extents(&of), &updates)];
        for op in ["ScatterElements", "Scatter"] {
            for y in both_ways(op, (&shape, &data), &held, &["i", "u"], &shape, &how) {
                assert_eq!(y, right, "round {round}");
            }
        }
    }
}

#[test]
fn slices_by_coordinates() {
    let mut random = Random::new(41);
    for round in 0..24 {
        let rank = 1 + random.below(3);
        let shape: Vec<usize> = (0..rank).map(|_| 2 + random.below(3)).collect();
        let width = 1 + random.below(rank);
        let lead: Vec<usize> = (0..1 + random.below(2)).map(|_| 1 + random.below(4)).collect();
        let data = reals(&mut random, count(&shape));
        let (mut stated, mut places) = (vec![], vec![]);
        for _ in 0..count(&lead) {
            for &extent in &shape[..width] {
                let (s, p) = indices(&mut random, 1, extent);
                stated.extend(s);
                places.extend(p);
            }
        }
        let result = [&lead[..], &shape[width..]].concat();
        let held = [tensor("i", &[&lead[..], &[width]].concat(), &stated)];
        let moved = |index: &Vec<usize>| {
            let row = at(&lead, &index[..lead.len()]) * width;
            at(&shape, &[&places[row..row + width], &index[lead.len()..]].concat())
        };
        let right: Vec<f32> = all_of(&result).iter().map(|index| data[moved(index)]).collect();
        for y in both_ways("GatherND", (&shape, &data), &held, &["i"], &result, &[]) {
            assert_eq!(y, right, "round {round}");
        }
        let updates = reals(&mut random, count(&result));
        let mut right = data.clone();
        for index in all_of(&result) {
            right[moved(&index)] = updates[at(&result, &index)];
        }
        let held = [held[0].clone(), floats("u", &extents(&result), &updates)];
        for y in both_ways("ScatterND", (&shape, &data), &held, &["i", "u"], &shape, &[]) {
            assert_eq!(y, right, "round {round}");
        }
    }
    // An axis of both: x[b, i[b], :].
    let data: Vec<f32> = (0u8..24).map(f32::from).collect();
    let held = [tensor("i", &[2, 1], &[2, -4])];
    let how = [int("batch_dims", 1)];
    for y in both_ways("GatherND", (&[2, 4, 3], &data), &held, &["i"], &[2, 3], &how) {
        assert_eq!(y, [6.0, 7.0, 8.0, 12.0, 13.0, 14.0]);
    }
}

/// Many places: a table of indices, of more than one type, updates that are computed.
#[test]
fn every_second_element() {
    let places: Vec<i64> = (0..20).map(|i| i * 2).collect();
    let a: Vec<i32> = (0..40).map(|i| 16_777_217 + i * i).collect();
    let file = File::default()
        .input(&value("x", 6, &[40]))
        .output(&value("y", 6, &[40]))
        .holding(&longs("i", &places))
        .holding(&initializer("zero", 6, &[1], &stored_ints(&[0])))
        .node("GatherElements", &["x", "i"], "even", &[])
        .node("Sub", &["zero", "even"], "minus", &[])
        .node("ScatterElements", &["x", "i", "minus"], "y", &[]);
    let y = computed(&file.bytes(18), &stored_ints(&a)).expect("it packs");
    let right: Vec<i32> = (0..40).map(|i| if i % 2 == 0 { -a[i] } else { a[i] }).collect();
    assert_eq!(y, stored_ints(&right));
}

#[test]
fn reductions_of_constants() {
    type Two = fn(f32, f32) -> f32;
    let functions: [(&str, Two); 4] = [
        ("add", |a, b| a + b),
        ("mul", |a, b| a * b),
        ("max", f32::max),
        ("min", f32::min),
    ];
    let (data, updates, places) = ([1.0, -2.0, 3.0, 4.0], [5.0, -6.0, 0.5], [2usize, 0, 2]);
    for (name, f) in functions {
        let text = Writer::default().bytes(1, b"reduction").bytes(4, name.as_bytes());
        let reduction = text.int(20, 3).done();
        let file = File::default()
            .input(&value("x", 1, &[4]))
            .output(&value("y", 1, &[4]))
            .holding(&longs("i", &places.map(|i| i as i64)))
            .holding(&floats("u", &[3], &updates))
            .holding(&floats("d", &[4], &data));
        let known = file.clone().node(
            "ScatterElements",
            &["d", "i", "u"],
            "k",
            std::slice::from_ref(&reduction),
        );
        let y = computed(&known.node("Add", &["x", "k"], "y", &[]).bytes(18), &stored(&[0.0; 4])).expect(name);
        let mut right = data;
        places
            .iter()
            .zip(updates)
            .for_each(|(&place, update)| right[place] = f(right[place], update));
        assert_eq!(numbers(&y), right, "{name}");
        let computed_data = file.node("ScatterElements", &["x", "i", "u"], "y", &[reduction]);
        let text = imported(&computed_data.bytes(18), &Default::default()).expect_err(name);
        assert!(
            text.contains(&format!("the reduction `{name}` of updates that are computed")),
            "{text}"
        );
    }
}

/// The largest and least, those of lower index first among equals; one of computed elements.
#[test]
fn the_first_of_an_order() {
    let data = [3.0, -1.0, 3.0, 8.0, 0.5, -1.0, 2.0, 2.0, 2.0, 9.0, -9.0, 4.0];
    for (shape, axis, k, largest) in [
        ([3usize, 4], 1usize, 2usize, true),
        ([3, 4], 1, 3, false),
        ([3, 4], 0, 2, true),
        ([4, 3], 0, 4, false),
        ([4, 3], 1, 1, true),
        ([4, 3], 0, 1, false),
    ] {
        let mut result = shape;
        result[axis] = k;
        let (mut values, mut places) = (vec![0.0; count(&result)], vec![0.0; count(&result)]);
        for other in 0..shape[1 - axis] {
            let place = |of: &[usize; 2], i: usize| {
                if axis == 0 {
                    i * of[1] + other
                } else {
                    other * of[1] + i
                }
            };
            let mut order: Vec<(f32, usize)> = (0..shape[axis]).map(|i| (data[place(&shape, i)], i)).collect();
            order.sort_by(|a, b| {
                let by_value = a.0.partial_cmp(&b.0).expect("numbers");
                (if largest { by_value.reverse() } else { by_value }).then(a.1.cmp(&b.1))
            });
            for (rank, (number, i)) in order.into_iter().take(k).enumerate() {
                (values[place(&result, rank)], places[place(&result, rank)]) = (number, i as f32);
            }
        }
        let node = |of| {
            let node = Writer::node("TopK", &[of, "k"], "v").bytes(2, b"p");
            node.bytes(5, &int("axis", axis as i64))
                .bytes(5, &int("largest", largest.into()))
                .done()
        };
        for (sum, right) in [("v", &values), ("q", &places)] {
            let file = |from: &[usize]| {
                File::default()
                    .input(&value("x", 1, &extents(from)))
                    .output(&value("y", 1, &extents(&result)))
                    .holding(&longs("k", &[k as i64]))
            };
            let known = file(&result)
                .holding(&floats("d", &extents(&shape), &data))
                .raw(&node("d"))
                .node("Cast", &["p"], "q", &[int("to", 1)])
                .node("Add", &["x", sum], "y", &[]);
            let y = computed(&known.bytes(18), &stored(&vec![0.0; count(&result)])).expect("TopK");
            assert_eq!(&numbers(&y), right, "{shape:?} along {axis}");
            if k == 1 {
                let run_time = file(&shape)
                    .raw(&node("x"))
                    .node("Cast", &["p"], "q", &[int("to", 1)])
                    .node("Abs", &[sum], "m", &[])
                    .node("Sub", &[sum, "m"], "n", &[])
                    .node("Add", &["n", "m"], "y", &[]);
                let y = computed(&run_time.bytes(18), &stored(&data)).expect("TopK");
                assert_eq!(&numbers(&y), right, "{shape:?} along {axis}");
            }
        }
    }
}

#[test]
fn running_sums_of_constants_and_at_run_time() {
    let data: Vec<f32> = (0i16..24).map(|i| f32::from(i * i % 11 - 5)).collect();
    let shape = [2usize, 3, 4];
    for axis in 0..3 {
        for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            let right: Vec<f32> = all_of(&shape)
                .iter()
                .map(|to| {
                    let counts = |from: usize| {
                        let (a, b) = if reverse { (to[axis], from) } else { (from, to[axis]) };
                        a < b || (a == b && !exclusive)
                    };
                    let moved = |from: usize| {
                        let mut index = to.clone();
                        index[axis] = from;
                        data[at(&shape, &index)]
                    };
                    (0..shape[axis]).filter(|&from| counts(from)).map(moved).sum()
                })
                .collect();
            let how = [int("exclusive", exclusive.into()), int("reverse", reverse.into())];
            let held = [initializer("axis", 7, &[], &(axis as i64).to_le_bytes())];
            for y in both_ways("CumSum", (&shape, &data), &held, &["axis"], &shape, &how) {
                assert_eq!(y, right, "axis {axis}, {exclusive}, {reverse}");
            }
        }
    }
}

#[test]
fn remainders_and_waves() {
    let data = [5.5, -5.5, 7.25, -0.75, 0.0, 1e6];
    let divisors = [2.0, 2.0, -3.5, 0.5, 4.0, 7.0];
    let right: Vec<f32> = data.iter().zip(divisors).map(|(a, b)| a % b).collect();
    let held = [floats("b", &[6], &divisors)];
    for y in both_ways("Mod", (&[6], &data), &held, &["b"], &[6], &[int("fmod", 1)]) {
        assert_eq!(y, right);
    }
    for (op, f) in [("Sin", f64::sin as fn(f64) -> f64), ("Cos", f64::cos)] {
        for y in both_ways(op, (&[6], &data), &[], &[], &[6], &[]) {
            for (y, x) in y.iter().zip(data) {
                assert!((f64::from(*y) - f(x.into())).abs() < 1e-6, "{op} of {x} is {y}");
            }
        }
    }
}

#[test]
fn arc_tangents_of_constants() {
    let data = [0.5, -3.0, 1e6, 0.0];
    let file = |from| {
        File::default()
            .input(&value("x", 1, &[4]))
            .output(&value("y", 1, &[4]))
            .holding(&floats("d", &[4], &data))
            .node("Atan", &[from], "a", &[])
            .node("Add", &["x", "a"], "y", &[])
            .bytes(18)
    };
    let y = numbers(&computed(&file("d"), &stored(&[0.0; 4])).expect("Atan"));
    for (y, x) in y.iter().zip(data) {
        assert!((f64::from(*y) - f64::from(x).atan()).abs() < 1e-6, "of {x}: {y}");
    }
    let text = imported(&file("x"), &Default::default()).expect_err("it is refused");
    assert!(text.contains("an arc tangent at run time"), "{text}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let file = |i: &[u8], u: &[u8]| {
        File::default()
            .input(&value("x", 1, &[3, 4]))
            .output(&Writer::value("y", &[-1, -1]))
            .holding(i)
            .holding(u)
    };
    let two = floats("u", &[2], &[1.0, 2.0]);
    let row = floats("u", &[1, 4], &[0.0; 4]);
    for (op, i, u, wanted) in [
        (
            "GatherElements",
            tensor("i", &[1, 1], &[3]),
            &two,
            "index 3 of 3 elements",
        ),
        (
            "GatherElements",
            tensor("i", &[1, 1], &[-4]),
            &two,
            "index -4 of 3 elements",
        ),
        (
            "GatherElements",
            tensor("i", &[1, 5], &[0; 5]),
            &two,
            "indices of shape [1, 5] for [3, 4]",
        ),
        (
            "GatherElements",
            tensor("i", &[2], &[0, 1]),
            &two,
            "indices of shape [2] for [3, 4]",
        ),
        (
            "GatherND",
            tensor("i", &[1, 3], &[0; 3]),
            &two,
            "no longer than the operand has axes",
        ),
        ("GatherND", tensor("i", &[1, 2], &[0, i64::MIN]), &two, "of 4 elements"),
        (
            "ScatterElements",
            tensor("i", &[1, 1], &[0]),
            &two,
            "updates of shape [2]",
        ),
        (
            "ScatterND",
            tensor("i", &[1, 2], &[0, 1]),
            &row,
            "updates of shape [1, 4]",
        ),
        ("ScatterND", tensor("i", &[1, 1], &[i64::MAX]), &row, "of 3 elements"),
    ] {
        let inputs: &[&str] = if op.starts_with('G') {
            &["x", "i"]
        } else {
            &["x", "i", "u"]
        };
        let file = file(&i, u).node(op, inputs, "y", &[]);
        let text = imported(&file.bytes(18), &Default::default()).expect_err(wanted);
        assert!(text.contains(wanted), "{text} lacks `{wanted}`");
    }
    for (op, inputs, wanted) in [
        ("GatherElements", vec!["x"], "no indices"),
        ("TopK", vec!["x"], "no number of elements"),
    ] {
        let file = file(&tensor("i", &[1], &[0]), &two).node(op, &inputs, "y", &[]);
        let text = imported(&file.bytes(18), &Default::default()).expect_err(wanted);
        assert!(text.contains(wanted), "{text} lacks `{wanted}`");
    }
    for (k, wanted) in [
        (2, "the 2 largest or least of elements that are computed"),
        (5, "more elements than the 4"),
        (-1, "more elements than the 4"),
    ] {
        let file = file(&longs("k", &[k]), &two).node("TopK", &["x", "k"], "y", &[]);
        let text = imported(&file.bytes(18), &Default::default()).expect_err(wanted);
        assert!(text.contains(wanted), "{text} lacks `{wanted}`");
    }
}
