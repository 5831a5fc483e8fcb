//! Files of `tests/models/tflite_made`: networks that no converter at hand writes. `ARENITE_BLESS=1` writes them anew.

use crate::tflite_file::{BOOL, FLOAT32, INT8, INT32, TfliteFile, VARIANT, byte, int};

/// Numbers of operators.
const ADD: i32 = 0;
const CONCATENATION: i32 = 2;
const CONV_2D: i32 = 3;
const DEQUANTIZE: i32 = 6;
const FULLY_CONNECTED: i32 = 9;
const MUL: i32 = 18;
const RESHAPE: i32 = 22;
const GATHER: i32 = 36;
const MEAN: i32 = 40;
const LESS: i32 = 58;
const SLICE: i32 = 65;
const EXPAND_DIMS: i32 = 70;
const ABS: i32 = 101;
const WHILE: i32 = 119;

/// The files, by name.
pub fn files() -> Vec<(&'static str, TfliteFile)> {
    let mut missing = signatures();
    missing.signature("beyond", 9);
    let mut only = TfliteFile::new();
    scaled(&mut only, MUL, 3, 2.0);
    vec![
        ("named_networks", signatures()),
        ("signature_beyond", missing),
        ("signature_none", only),
        ("reshape_fixed", reshape(&[1, 12])),
        ("open_rows", open_rows()),
        ("list_loop", list_loop()),
        ("flex_lists", flex_lists()),
        ("dequantised", dequantised()),
    ]
}

/// A flattened batch of 3 x 4 numbers: to the shape of the operand.
pub fn reshape(to: &[i32]) -> TfliteFile {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[-1, 3, 4]);
    let shape = file.list("shape", to);
    let y = file.tensor("flat", FLOAT32, &[-1, 12]);
    file.operator(RESHAPE, &[x, shape], &[y], Vec::new());
    file.ends(&[x], &[y]);
    file
}

/// The mean of each channel over rows and columns that the file leaves open, in the absolute.
fn open_rows() -> TfliteFile {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[-1, -1, -1, 2]);
    let axes = file.list("axes", &[1, 2]);
    let positive = file.tensor("positive", FLOAT32, &[-1, -1, -1, 2]);
    let y = file.tensor("y", FLOAT32, &[-1, 2]);
    file.operator(ABS, &[x], &[positive], Vec::new());
    file.operator(MEAN, &[positive, axes], &[y], vec![(0, byte(0))]);
    file.ends(&[x], &[y]);
    file
}

/// A loop over the rows of `x` that writes twice each into a list, as converters write what a recurrent layer returns: what is ahead of the row, the row, and
/// what is behind it, of which the first and the last are nothing at the ends.
fn list_loop() -> TfliteFile {
    const ROWS: i32 = 4;
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[ROWS, -1, 2]);
    let begin = file.constant("begin", INT32, &[], 0_i32.to_le_bytes().to_vec());
    let list = file.reals("list", &[ROWS, 1, 2], &[0.0; 8]);
    let last = file.tensor("last", INT32, &[]);
    let all = file.tensor("all", FLOAT32, &[-1, -1, 2]);
    let same = file.tensor("same", FLOAT32, &[ROWS, -1, 2]);
    file.operator(
        WHILE,
        &[begin, list, x],
        &[last, all, same],
        vec![(0, int(1)), (1, int(2))],
    );
    file.ends(&[x], &[all]);

    let arguments = |file: &mut TfliteFile| {
        file.subgraph();
        let index = file.tensor("index", INT32, &[]);
        let list = file.tensor("so far", FLOAT32, &[-1, -1, 2]);
        [index, list, file.tensor("rows", FLOAT32, &[ROWS, -1, 2])]
    };
    let inputs = arguments(&mut file);
    let count = file.constant("count", INT32, &[], ROWS.to_le_bytes().to_vec());
    let less = file.tensor("less", BOOL, &[]);
    file.operator(LESS, &[inputs[0], count], &[less], Vec::new());
    file.ends(&inputs, &[less]);

    let [index, list, rows] = arguments(&mut file);
    let scalar = |value: i32| value.to_le_bytes().to_vec();
    let one = file.constant("one", INT32, &[], scalar(1));
    let two = file.reals("two", &[1], &[2.0]);
    let none = file.list("none", &[0, 0, 0]);
    let rest = file.list("rest", &[-1, -1]);
    let zeros = file.list("zeros", &[0, 0]);
    let whole = file.list("whole", &[-1, -1, -1]);
    let as_list = file.list("as list", &[1]);
    let first = file.constant("first", INT32, &[], scalar(0));
    let row = file.tensor("row", FLOAT32, &[-1, 2]);
    let twice = file.tensor("twice", FLOAT32, &[-1, 2]);
    let place = file.tensor("place", FLOAT32, &[1, -1, 2]);
    let next = file.tensor("next", INT32, &[]);
    let [at, behind] = ["at", "behind"].map(|name| file.tensor(name, INT32, &[1]));
    let [size, start] = ["size", "start"].map(|name| file.tensor(name, INT32, &[3]));
    let [ahead, left] = ["ahead", "left"].map(|name| file.tensor(name, FLOAT32, &[-1, -1, -1]));
    let joined = file.tensor("joined", FLOAT32, &[-1, -1, 2]);
    file.operator(GATHER, &[rows, index], &[row], Vec::new());
    file.operator(MUL, &[row, two], &[twice], Vec::new());
    file.operator(EXPAND_DIMS, &[twice, first], &[place], Vec::new());
    file.operator(ADD, &[index, one], &[next], Vec::new());
    file.operator(RESHAPE, &[index, as_list], &[at], Vec::new());
    file.operator(RESHAPE, &[next, as_list], &[behind], Vec::new());
    file.operator(CONCATENATION, &[at, rest], &[size], Vec::new());
    file.operator(CONCATENATION, &[behind, zeros], &[start], Vec::new());
    file.operator(SLICE, &[list, none, size], &[ahead], Vec::new());
    file.operator(SLICE, &[list, start, whole], &[left], Vec::new());
    file.operator(CONCATENATION, &[ahead, place, left], &[joined], Vec::new());
    file.ends(&[index, list, rows], &[next, joined, rows]);
    file
}

/// Operators of TensorFlow itself, in the main subgraph and in the body of a loop, and one ahead of them that reads what nothing writes.
fn flex_lists() -> TfliteFile {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[-1, 4]);
    let [lost, found, y] = ["lost", "found", "y"].map(|name| file.tensor(name, FLOAT32, &[-1, 4]));
    let [list, all] = ["list", "all"].map(|name| file.tensor(name, VARIANT, &[]));
    file.operator(ABS, &[lost], &[found], Vec::new());
    file.custom("FlexTensorListReserve", &[x], &[list]);
    file.operator(WHILE, &[list], &[all], vec![(0, int(1)), (1, int(2))]);
    file.custom("FlexErf", &[all], &[y]);
    file.ends(&[x], &[y]);
    file.subgraph();
    let list = file.tensor("list", VARIANT, &[]);
    let goes_on = file.constant("goes on", BOOL, &[], vec![0]);
    file.ends(&[list], &[goes_on]);
    file.subgraph();
    let [list, longer] = ["list", "longer"].map(|name| file.tensor(name, VARIANT, &[]));
    file.custom("FlexTensorListSetItem", &[list], &[longer]);
    file.ends(&[list], &[longer]);
    file
}

/// A fully connected layer of float32 whose weights are int8 by channel behind DEQUANTIZE.
fn dequantised() -> TfliteFile {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[1, 2]);
    let bytes = file.constant("bytes", INT8, &[3, 2], vec![1, 2, 3, 4, 5, 6]);
    file.quantised(bytes, &[0.5, 0.25, 2.0], &[0, 1, 2], 0);
    let real = file.tensor("real", FLOAT32, &[3, 2]);
    let y = file.tensor("y", FLOAT32, &[1, 3]);
    file.operator(DEQUANTIZE, &[bytes], &[real], Vec::new());
    file.operator(FULLY_CONNECTED, &[x, real, -1], &[y], Vec::new());
    file.ends(&[x], &[y]);
    file
}

/// A 1 x 1 convolution of two int8 channels into three, of which the filters in the middle are zeros with a scale of 0 and a bias.
pub fn idle_channel() -> TfliteFile {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", INT8, &[1, 1, 5, 2]);
    file.scales(x, &[0.5], -3, 0);
    let filter: Vec<u8> = [64_i8, -32, 0, 0, 16, 127].map(|v| v as u8).to_vec();
    let filter = file.constant("filter", INT8, &[3, 1, 1, 2], filter);
    file.scales(filter, &[0.25, 0.0, 0.125], 0, 0);
    let bias = file.list("bias", &[100, -77, 12]);
    let y = file.tensor("y", INT8, &[1, 1, 5, 3]);
    file.scales(y, &[4.0], 5, 0);
    let options = vec![(0, byte(1)), (1, int(1)), (2, int(1))];
    file.operator(CONV_2D, &[x, filter, bias], &[y], options);
    file.ends(&[x], &[y]);
    file
}

/// `double` doubles three numbers twice, `shift` adds 3 to five twice, `halve` halves four twice.
pub fn signatures() -> TfliteFile {
    let mut file = TfliteFile::new();
    for (index, (name, code, extent, factor)) in
        [("double", MUL, 3, 2.0), ("shift", ADD, 5, 3.0), ("halve", MUL, 4, 0.5)]
            .into_iter()
            .enumerate()
    {
        if index > 0 {
            file.subgraph();
        }
        scaled(&mut file, code, extent, factor);
        file.signature(name, index as i32);
    }
    file
}

/// `between` = `x` and a number, `y` = `between` and the same.
fn scaled(file: &mut TfliteFile, code: i32, extent: i32, number: f32) {
    let x = file.tensor("x", FLOAT32, &[1, extent]);
    let constant = file.reals("number", &[1], &[number]);
    let between = file.tensor("between", FLOAT32, &[1, extent]);
    let y = file.tensor("y", FLOAT32, &[1, extent]);
    file.operator(code, &[x, constant], &[between], Vec::new());
    file.operator(code, &[between, constant], &[y], Vec::new());
    file.ends(&[x], &[y]);
}
