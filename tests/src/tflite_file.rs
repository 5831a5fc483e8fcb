//! Small TensorFlow Lite files, written by hand: no library of the importer's has a part in them.

/// Element types of the schema.
pub const FLOAT32: u8 = 0;
/// 32-bit integers.
pub const INT32: u8 = 2;
/// 8-bit integers.
pub const INT8: u8 = 9;
/// Truth values.
pub const BOOL: u8 = 6;

/// Type of elements that TensorFlow alone knows, such as lists.
pub const VARIANT: u8 = 14;

/// Value of a table's field.
#[derive(Debug, Clone)]
pub enum Field {
    /// A number, little-endian.
    Scalar(Vec<u8>),
    /// A vector of so many elements, their bytes.
    Vector(usize, Vec<u8>),
    /// Another table.
    Table(Fields),
    /// A vector of tables.
    Tables(Vec<Fields>),
}

/// The fields of a table, by number.
pub type Fields = Vec<(usize, Field)>;

/// A 32-bit number.
pub fn int(value: i32) -> Field {
    Field::Scalar(value.to_le_bytes().to_vec())
}

/// A byte: small enumerations and truth values.
pub fn byte(value: u8) -> Field {
    Field::Scalar(vec![value])
}

/// A vector of 32-bit numbers.
pub fn ints(values: &[i32]) -> Field {
    Field::Vector(values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn bytes(values: &[u8]) -> Field {
    Field::Vector(values.len(), values.to_vec())
}

/// A file: tensors and operators go to the subgraph that was begun last.
#[derive(Debug, Clone, Default)]
pub struct TfliteFile {
    codes: Vec<(i32, String)>,
    buffers: Vec<Vec<u8>>,
    subgraphs: Vec<Subgraph>,
    signatures: Vec<(String, i32)>,
}

#[derive(Debug, Clone, Default)]
struct Subgraph {
    tensors: Vec<Fields>,
    operators: Vec<Fields>,
    ends: [Vec<i32>; 2],
}

impl TfliteFile {
    /// A file with an empty main subgraph.
    pub fn new() -> Self {
        Self {
            buffers: vec![Vec::new()],
            subgraphs: vec![Subgraph::default()],
            ..Self::default()
        }
    }

    /// Begins a further subgraph.
    pub fn subgraph(&mut self) {
        self.subgraphs.push(Subgraph::default());
    }

    fn last(&mut self) -> &mut Subgraph {
        self.subgraphs.last_mut().expect("one at least")
    }

    /// A tensor that is computed. Extents of -1 are open: the shape states 1 for them, as converters write it.
    pub fn tensor(&mut self, name: &str, kind: u8, extents: &[i32]) -> i32 {
        let shape: Vec<i32> = extents.iter().map(|&d| if d == -1 { 1 } else { d }).collect();
        self.open(name, kind, &shape, extents)
    }

    /// A tensor that states a shape beside its signature, in which open extents are -1.
    pub fn open(&mut self, name: &str, kind: u8, shape: &[i32], signature: &[i32]) -> i32 {
        let mut fields = vec![
            (0, ints(shape)),
            (1, byte(kind)),
            (2, int(0)),
            (3, bytes(name.as_bytes())),
        ];
        if shape != signature {
            fields.push((7, ints(signature)));
        }
        self.last().tensors.push(fields);
        self.last().tensors.len() as i32 - 1
    }

    /// A tensor that keeps its value from run to run.
    pub fn variable(&mut self, name: &str, shape: &[i32]) -> i32 {
        let index = self.tensor(name, FLOAT32, shape);
        self.last().tensors[index as usize].push((5, byte(1)));
        index
    }

    /// A constant.
    pub fn constant(&mut self, name: &str, kind: u8, shape: &[i32], data: Vec<u8>) -> i32 {
        let index = self.tensor(name, kind, shape);
        let buffer = self.buffers.len() as i32;
        self.buffers.push(data);
        self.last().tensors[index as usize][2].1 = int(buffer);
        index
    }

    /// A constant list of 32-bit integers, or one where the shape is that of a scalar.
    pub fn list(&mut self, name: &str, values: &[i32]) -> i32 {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(name, INT32, &[values.len() as i32], data)
    }

    /// A constant of real numbers.
    pub fn reals(&mut self, name: &str, shape: &[i32], values: &[f32]) -> i32 {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(name, FLOAT32, shape, data)
    }

    /// Gives a tensor scales with one zero point along an axis.
    pub fn scales(&mut self, tensor: i32, scales: &[f32], zero_point: i64, axis: i32) {
        self.quantised(tensor, scales, &vec![zero_point; scales.len()], axis);
    }

    /// Gives a tensor scales with zero points along an axis.
    pub fn quantised(&mut self, tensor: i32, scales: &[f32], zero_points: &[i64], axis: i32) {
        let zeros = zero_points.iter().flat_map(|v| v.to_le_bytes()).collect();
        let quant = vec![
            (
                2,
                Field::Vector(scales.len(), scales.iter().flat_map(|v| v.to_le_bytes()).collect()),
            ),
            (3, Field::Vector(scales.len(), zeros)),
            (6, int(axis)),
        ];
        self.last().tensors[tensor as usize].push((4, Field::Table(quant)));
    }

    /// A builtin operator by its number, with the fields of its options.
    pub fn operator(&mut self, code: i32, inputs: &[i32], outputs: &[i32], options: Fields) {
        self.node((code, String::new()), inputs, outputs, options);
    }

    /// A custom operator.
    pub fn custom(&mut self, name: &str, inputs: &[i32], outputs: &[i32]) {
        self.node((32, name.to_owned()), inputs, outputs, Vec::new());
    }

    fn node(&mut self, code: (i32, String), inputs: &[i32], outputs: &[i32], options: Fields) {
        let known = self.codes.iter().position(|other| *other == code);
        let index = known.unwrap_or(self.codes.len());
        if index == self.codes.len() {
            self.codes.push(code);
        }
        self.last().operators.push(vec![
            (0, int(index as i32)),
            (1, ints(inputs)),
            (2, ints(outputs)),
            (4, Field::Table(options)),
        ]);
    }

    /// Tensors between the sums of the operator that was added last.
    pub fn intermediates(&mut self, tensors: &[i32]) {
        let operator = self.last().operators.last_mut().expect("an operator");
        operator.push((8, ints(tensors)));
    }

    /// The inputs and outputs of the subgraph.
    pub fn ends(&mut self, inputs: &[i32], outputs: &[i32]) {
        self.last().ends = [inputs.to_vec(), outputs.to_vec()];
    }

    /// A signature of a subgraph.
    pub fn signature(&mut self, name: &str, subgraph: i32) {
        self.signatures.push((name.to_owned(), subgraph));
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let codes = self.codes.iter().map(|(code, name)| {
            let mut fields = vec![(0, byte((*code).min(127) as u8)), (2, int(1)), (3, int(*code))];
            if !name.is_empty() {
                fields.push((1, bytes(name.as_bytes())));
            }
            fields
        });
        let subgraphs = self.subgraphs.iter().map(|graph| {
            vec![
                (0, Field::Tables(graph.tensors.clone())),
                (1, ints(&graph.ends[0])),
                (2, ints(&graph.ends[1])),
                (3, Field::Tables(graph.operators.clone())),
            ]
        });
        let buffers = self.buffers.iter().map(|data| vec![(0, bytes(data))]);
        let mut fields = vec![
            (0, int(3)),
            (1, Field::Tables(codes.collect())),
            (2, Field::Tables(subgraphs.collect())),
            (4, Field::Tables(buffers.collect())),
        ];
        if !self.signatures.is_empty() {
            let signature = |(name, subgraph): &(String, i32)| vec![(2, bytes(name.as_bytes())), (4, int(*subgraph))];
            fields.push((7, Field::Tables(self.signatures.iter().map(signature).collect())));
        }
        let mut file = b"\0\0\0\0TFL3".to_vec();
        write_table(&mut file, 0, &fields);
        file
    }
}

/// Has the offset at `slot` point to the end of the file.
fn point(file: &mut [u8], slot: usize) {
    let distance = (file.len() - slot) as u32;
    file[slot..slot + 4].copy_from_slice(&distance.to_le_bytes());
}

/// Writes a table behind all else; the offset at `slot` points to it.
fn write_table(file: &mut Vec<u8>, slot: usize, fields: &Fields) {
    let count = fields.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    file.resize(file.len().next_multiple_of(4), 0);
    let vtable = file.len();
    let mut at = 4;
    let mut places = vec![0_u16; count];
    for (number, field) in fields {
        places[*number] = at;
        at += match field {
            Field::Scalar(bytes) => bytes.len().next_multiple_of(4) as u16,
            _ => 4,
        };
    }
    file.extend((4 + 2 * count as u16).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend(places.iter().flat_map(|place| place.to_le_bytes()));
    file.resize(file.len().next_multiple_of(4), 0);
    point(file, slot);
    let table = file.len();
    file.extend(((table - vtable) as i32).to_le_bytes());
    for (_, field) in fields {
        match field {
            Field::Scalar(bytes) => file.extend(bytes),
            _ => file.extend([0; 4]),
        }
        file.resize(file.len().next_multiple_of(4), 0);
    }
    for (number, field) in fields {
        let slot = table + usize::from(places[*number]);
        match field {
            Field::Scalar(_) => {}
            Field::Table(fields) => write_table(file, slot, fields),
            Field::Vector(count, bytes) => {
                file.resize(file.len().next_multiple_of(4), 0);
                point(file, slot);
                file.extend((*count as u32).to_le_bytes());
                file.extend(bytes);
            }
            Field::Tables(tables) => {
                file.resize(file.len().next_multiple_of(4), 0);
                point(file, slot);
                file.extend((tables.len() as u32).to_le_bytes());
                let first = file.len();
                file.resize(first + 4 * tables.len(), 0);
                for (index, fields) in tables.iter().enumerate() {
                    write_table(file, first + 4 * index, fields);
                }
            }
        }
    }
}
