//! Every operator of a `.tflite` file whose operand leaves its batch open: a network of three samples computes for each what that of one computes for it, and
//! the extents of results are formulas of this test.

use arenite_host::import::ImportOptions;
use arenite_tests::tflite_file::{FLOAT32, Field, Fields, TfliteFile, byte, int, ints};
use arenite_tests::writers::Random;

use super::onnx_file::stored;
use super::open_extents::{at, close, computed, numbers, random, read};

/// A constant operand.
enum Constant {
    Ints(&'static [i32]),
    Scalar(i32),
    Reals(&'static [i32]),
    Truth(&'static [i32]),
}
use Constant::{Ints, Reals, Scalar, Truth};

/// One operator: its number, the extents of its operand and of its results by the batch, where among the operands the operand is, and the constants around it.
struct Case {
    name: &'static str,
    code: i32,
    x: fn(i32) -> Vec<i32>,
    ys: fn(i32) -> Vec<Vec<i32>>,
    position: usize,
    constants: Vec<Constant>,
    options: Fields,
}

fn case(
    name: &'static str,
    code: i32,
    x: fn(i32) -> Vec<i32>,
    y: fn(i32) -> Vec<Vec<i32>>,
    constants: Vec<Constant>,
    options: Fields,
) -> Case {
    Case {
        name,
        code,
        x,
        ys: y,
        position: 0,
        constants,
        options,
    }
}

/// The fields of a convolution or a pool: padding, strides, and more.
fn window(padding: u8, stride: i32, more: Fields) -> Fields {
    let mut fields = vec![(0, byte(padding)), (1, int(stride)), (2, int(stride))];
    fields.extend(more);
    fields
}

fn picture(n: i32) -> Vec<i32> {
    vec![n, 6, 5, 4]
}

fn row(n: i32) -> Vec<i32> {
    vec![n, 6]
}

fn cases() -> Vec<Case> {
    let none = Vec::new;
    let same = |n| vec![picture(n)];
    vec![
        case("RELU", 19, picture, same, vec![], none()),
        case(
            "LEAKY_RELU",
            98,
            picture,
            same,
            vec![],
            vec![(0, Field::Scalar(0.5_f32.to_le_bytes().to_vec()))],
        ),
        case(
            "SOFTMAX",
            25,
            picture,
            same,
            vec![],
            vec![(0, Field::Scalar(1_f32.to_le_bytes().to_vec()))],
        ),
        case("ADD", 0, picture, same, vec![Reals(&[5, 1])], none()),
        case(
            "MAXIMUM",
            55,
            row,
            |n| vec![vec![3, n, 6]],
            vec![Reals(&[3, 1, 1])],
            none(),
        ),
        case(
            "CONV_2D",
            3,
            picture,
            |n| vec![vec![n, 3, 3, 7]],
            vec![Reals(&[7, 3, 3, 4]), Reals(&[7])],
            window(0, 2, none()),
        ),
        case(
            "CONV_2D valid",
            3,
            picture,
            |n| vec![vec![n, 2, 2, 7]],
            vec![Reals(&[7, 3, 3, 4]), Reals(&[7])],
            window(1, 2, none()),
        ),
        case(
            "CONV_2D dilated",
            3,
            picture,
            |n| vec![vec![n, 2, 1, 7]],
            vec![Reals(&[7, 3, 3, 4]), Reals(&[7])],
            window(1, 1, vec![(4, int(2)), (5, int(2))]),
        ),
        case(
            "DEPTHWISE_CONV_2D",
            4,
            picture,
            |n| vec![vec![n, 4, 3, 8]],
            vec![Reals(&[1, 3, 3, 8]), Reals(&[8])],
            window(1, 1, vec![(3, int(2))]),
        ),
        case(
            "MAX_POOL_2D",
            17,
            picture,
            |n| vec![vec![n, 2, 4, 4]],
            vec![],
            window(1, 1, vec![(3, int(2)), (4, int(5))]),
        ),
        case(
            "AVERAGE_POOL_2D",
            1,
            picture,
            |n| vec![vec![n, 3, 3, 4]],
            vec![],
            window(0, 2, vec![(3, int(2)), (4, int(2))]),
        ),
        case(
            "FULLY_CONNECTED",
            9,
            row,
            |n| vec![vec![n, 3]],
            vec![Reals(&[3, 6]), Reals(&[3])],
            none(),
        ),
        case(
            "FULLY_CONNECTED axes",
            9,
            picture,
            |n| vec![vec![n, 6, 5, 3]],
            vec![Reals(&[3, 4]), Reals(&[3])],
            vec![(2, byte(1))],
        ),
        case(
            "BATCH_MATMUL",
            126,
            |n| vec![n, 3, 4],
            |n| vec![vec![n, 3, 5]],
            vec![Reals(&[1, 4, 5])],
            none(),
        ),
        case("MEAN", 40, picture, |n| vec![vec![n, 4]], vec![Ints(&[1, 2])], none()),
        case(
            "SUM kept",
            74,
            picture,
            |n| vec![vec![n, 1, 1, 4]],
            vec![Ints(&[1, -2])],
            vec![(0, byte(1))],
        ),
        case(
            "RESHAPE",
            22,
            picture,
            |n| vec![vec![n, 15, 8]],
            vec![Ints(&[-1, 15, 8])],
            none(),
        ),
        case(
            "RESHAPE options",
            22,
            picture,
            |n| vec![vec![n, 120]],
            vec![],
            vec![(0, ints(&[-1, 120]))],
        ),
        case(
            "SQUEEZE",
            43,
            |n| vec![n, 1, 5, 1],
            |n| vec![vec![n, 5]],
            vec![],
            vec![(0, ints(&[1, -1]))],
        ),
        case(
            "EXPAND_DIMS",
            70,
            row,
            |n| vec![vec![n, 6, 1]],
            vec![Scalar(-1)],
            none(),
        ),
        case(
            "TRANSPOSE",
            39,
            picture,
            |n| vec![vec![n, 4, 6, 5]],
            vec![Ints(&[0, 3, 1, 2])],
            none(),
        ),
        case(
            "TRANSPOSE moved",
            39,
            picture,
            |n| vec![vec![5, 4, n, 6]],
            vec![Ints(&[2, 3, 0, 1])],
            none(),
        ),
        case("PAD", 34, row, |n| vec![vec![n, 9]], vec![Ints(&[0, 0, 1, 2])], none()),
        case(
            "MIRROR_PAD",
            100,
            row,
            |n| vec![vec![n, 9]],
            vec![Ints(&[0, 0, 1, 2])],
            none(),
        ),
        case(
            "SPACE_TO_DEPTH",
            26,
            |n| vec![n, 6, 4, 3],
            |n| vec![vec![n, 3, 2, 12]],
            vec![],
            vec![(0, int(2))],
        ),
        case(
            "DEPTH_TO_SPACE",
            5,
            picture,
            |n| vec![vec![n, 12, 10, 1]],
            vec![],
            vec![(0, int(2))],
        ),
        case(
            "SPACE_TO_BATCH_ND",
            38,
            |n| vec![n, 6, 4, 3],
            |n| vec![vec![4 * n, 4, 2, 3]],
            vec![Ints(&[2, 2]), Ints(&[1, 1, 0, 0])],
            none(),
        ),
        case(
            "BATCH_TO_SPACE_ND",
            37,
            |n| vec![4 * n, 3, 2, 3],
            |n| vec![vec![n, 5, 4, 3]],
            vec![Ints(&[2, 2]), Ints(&[0, 1, 0, 0])],
            none(),
        ),
        case(
            "GATHER",
            36,
            picture,
            |n| vec![vec![n, 6, 2, 4]],
            vec![Ints(&[3, 0])],
            vec![(0, int(2))],
        ),
        case("TILE", 69, row, |n| vec![vec![n, 12]], vec![Ints(&[1, 2])], none()),
        case(
            "SLICE",
            65,
            picture,
            |n| vec![vec![n, 2, 5, 3]],
            vec![Ints(&[0, 1, 0, 1]), Ints(&[-1, 2, 5, -1])],
            none(),
        ),
        case(
            "STRIDED_SLICE",
            45,
            picture,
            |n| vec![vec![n, 3, 4]],
            vec![Ints(&[0, 0, 2, 0]), Ints(&[0, 6, 3, 0]), Ints(&[1, 2, 1, 1])],
            vec![(0, int(9)), (1, int(9)), (4, int(4))],
        ),
        Case {
            position: 1,
            ..case(
                "SPLIT",
                49,
                picture,
                |n| vec![vec![n, 6, 5, 2]; 2],
                vec![Scalar(3)],
                vec![(0, int(2))],
            )
        },
        case(
            "SPLIT_V",
            102,
            row,
            |n| vec![vec![n, 1], vec![n, 5]],
            vec![Ints(&[1, -1]), Scalar(1)],
            vec![(0, int(2))],
        ),
        case(
            "UNPACK",
            88,
            |n| vec![n, 2, 3],
            |n| vec![vec![n, 3]; 2],
            vec![],
            vec![(0, int(2)), (1, int(1))],
        ),
        case("REVERSE_V2", 105, row, |n| vec![row(n)], vec![Ints(&[1])], none()),
        case("CUMSUM", 128, row, |n| vec![row(n)], vec![Scalar(1)], none()),
        case(
            "RESIZE_BILINEAR",
            23,
            picture,
            |n| vec![vec![n, 12, 10, 4]],
            vec![Ints(&[12, 10])],
            none(),
        ),
        case("ABS", 101, row, |n| vec![row(n)], vec![], none()),
        Case {
            position: 1,
            ..case(
                "SELECT_V2",
                123,
                row,
                |n| vec![row(n)],
                vec![Truth(&[1, 6]), Reals(&[1])],
                none(),
            )
        },
    ]
}

impl Case {
    /// The file: its operand's and results' extents are open where they change with the batch.
    fn file(&self) -> Vec<u8> {
        let mut file = TfliteFile::new();
        let open = |file: &mut TfliteFile, name: &str, [one, two]: [Vec<i32>; 2]| {
            let signature: Vec<i32> = one
                .iter()
                .zip(&two)
                .map(|(&a, &b)| if a == b { a } else { -1 })
                .collect();
            file.open(name, FLOAT32, &one, &signature)
        };
        let x = open(&mut file, "x", [1, 2].map(self.x));
        let mut random = Random::new(11);
        let mut inputs: Vec<i32> = Vec::new();
        for (index, constant) in self.constants.iter().enumerate() {
            let name = format!("constant {index}");
            inputs.push(match constant {
                Ints(values) => file.list(&name, values),
                Scalar(value) => file.constant(&name, 2, &[], value.to_le_bytes().to_vec()),
                Truth(shape) => {
                    let count = shape.iter().product::<i32>() as u8;
                    file.constant(&name, 6, shape, (0..count).map(|i| i % 2).collect())
                }
                Reals(shape) => {
                    let count = shape.iter().product::<i32>();
                    let values: Vec<f32> = (0..count).map(|_| random.below(64) as f32 / 16.0 - 2.0).collect();
                    file.reals(&name, shape, &values)
                }
            });
        }
        inputs.insert(self.position, x);
        let shapes = [1, 2].map(self.ys);
        let ys: Vec<i32> = (0..shapes[0].len())
            .map(|index| {
                open(
                    &mut file,
                    &format!("y{index}"),
                    [0, 1].map(|n: usize| shapes[n][index].clone()),
                )
            })
            .collect();
        file.operator(self.code, &inputs, &ys, self.options.clone());
        file.ends(&[x], &ys);
        file.bytes()
    }
}

#[test]
fn every_operator_has_the_extents_of_its_operand() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in cases() {
        let file = case.file();
        for batch in [1, 3] {
            let first = (case.x)(batch)[0] as usize;
            let imported = match read(&file, &at(first)) {
                Ok(imported) => imported,
                Err(text) => {
                    wrong.push(format!("{} at {batch}: {text}", case.name));
                    continue;
                }
            };
            let graph = imported.graph;
            let shapes: Vec<Vec<i32>> = graph
                .outputs
                .iter()
                .map(|&id| graph.tensor(id).shape.iter().map(|&d| d as i32).collect())
                .collect();
            let expected = (case.ys)(batch);
            if shapes != expected {
                wrong.push(format!("{} at {batch}: {shapes:?}, expected {expected:?}", case.name));
            }
        }
        // Samples that lie one behind the other go their own ways.
        let (one, three) = ((case.ys)(1), (case.ys)(3));
        if (case.x)(1)[0] != 1 || one.iter().zip(&three).any(|(a, b)| a[0] != 1 || b[0] != 3) {
            continue;
        }
        let count = (case.x)(1).iter().product::<i32>() as usize;
        let x = random(3 * count);
        let whole = computed(&file, at(3), vec![stored(&x)]);
        let each: Result<Vec<_>, String> = x
            .chunks(count)
            .map(|x| computed(&file, ImportOptions::default(), vec![stored(x)]))
            .collect();
        match (whole, each) {
            (Ok(whole), Ok(each)) => {
                for (index, whole) in whole.iter().enumerate() {
                    let parts: Vec<f32> = each.iter().flat_map(|outputs| numbers(&outputs[index])).collect();
                    if !close(&numbers(whole), &parts) {
                        wrong.push(format!("{}: {:?}, expected {parts:?}", case.name, numbers(whole)));
                    }
                }
                compared += 1;
            }
            (Err(text), _) | (_, Err(text)) => wrong.push(format!("{}: {text}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 30, "{compared} cases were compared");
}
