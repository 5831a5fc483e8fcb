//! The part of the TensorFlow Lite schema (version 3) that the importer reads: fields by number, in owned structs.

use super::flatbuffer::{Table, Tables, root};
use crate::error::{Error, Result};
use crate::graph::DType;

/// Bounds that no sensible model reaches; they keep a corrupt one from asking for gigabytes.
const MAX_TABLES: usize = 1 << 20;
const MAX_OPERANDS: usize = 1 << 10;
const MAX_RANK: usize = 8;

/// Types of the schema.
pub(super) const FLOAT32: u8 = 0;
pub(super) const UINT8: u8 = 3;
pub(super) const INT16: u8 = 7;
pub(super) const INT8: u8 = 9;
/// Two numbers in a byte, the first in its lower half.
pub(super) const INT4: u8 = 17;
/// `BlockwiseQuantization` among the details of a quantisation.
const BLOCKWISE: u8 = 2;

/// Types of the schema that Arenite has no type of its own for.
const UINT64: u8 = 12;
const UINT32: u8 = 15;

/// A .tflite file.
pub(super) struct Model<'a> {
    pub(super) codes: Vec<OperatorCode>,
    pub(super) subgraphs: Vec<Subgraph<'a>>,
    /// The subgraph that is packed: 0, or that of `--signature`.
    pub(super) main: usize,
    pub(super) signatures: Vec<Signature>,
    /// Bytes of the file.
    pub(super) len: usize,
    /// Where in an arena a compiler has placed the main subgraph's tensors; negative where it has not. None of a file that no compiler has planned.
    pub(super) planned: Vec<i32>,
}

/// A subgraph by the name that the exporting program gave it.
pub(super) struct Signature {
    pub(super) name: String,
    /// Its number, as the file states it.
    pub(super) subgraph: u32,
}

/// Kind and version of operators, which refer to it by its index.
pub(super) struct OperatorCode {
    pub(super) builtin: usize,
    pub(super) custom: String,
    pub(super) version: i32,
}

pub(super) struct Subgraph<'a> {
    /// Tensors of the subgraphs before it.
    pub(super) first: usize,
    pub(super) tensors: Vec<TensorInfo<'a>>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    pub(super) operators: Vec<Operator<'a>>,
}

/// A tensor as the file states it.
pub(super) struct TensorInfo<'a> {
    pub(super) name: String,
    pub(super) shape: Vec<i32>,
    /// The shape with -1 for extents that the file leaves open; empty where it leaves none.
    pub(super) signature: Vec<i32>,
    pub(super) kind: u8,
    /// Its constant bytes, unless it is computed.
    pub(super) data: Option<&'a [u8]>,
    pub(super) scale: Vec<f32>,
    pub(super) zero_point: Vec<i64>,
    pub(super) axis: i32,
    pub(super) variable: bool,
    /// A uint8 tensor of the file that is read as int8: type and zero point say so already, its bytes are the file's.
    pub(super) legacy: bool,
    /// An INT4 constant that is read as int8: its type says so already, its bytes are the file's.
    pub(super) nibbles: bool,
    /// Scales of blocks of its last axis, where it has such.
    pub(super) blocks: Option<Blocks>,
    /// How its constant bytes are spread over it, where they are not all of it.
    pub(super) sparsity: Option<Table<'a>>,
}

/// Scales for blocks of so many numbers along the last axis.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// The tensor of the scales, as the file states its number.
    pub(super) scales: i32,
    /// That of the zero points; 0 or below where there is none.
    pub(super) zero_points: i32,
    pub(super) size: i32,
}

pub(super) struct Operator<'a> {
    pub(super) code: usize,
    /// `None` for an absent optional operand.
    pub(super) inputs: Vec<Option<usize>>,
    pub(super) outputs: Vec<usize>,
    /// Tensors that hold the scales of its sums: of an LSTM.
    pub(super) intermediates: Vec<usize>,
    pub(super) options: Option<Table<'a>>,
    /// Of a custom operator: a flexbuffer.
    pub(super) custom: &'a [u8],
}

impl<'a> Model<'a> {
    /// Reads everything but the operators' options.
    ///
    /// # Errors
    /// Names what is corrupt, and where.
    pub(super) fn read(file: &'a [u8]) -> Result<Self> {
        let model = root(file, b"TFL3")?;
        let version = model.scalar::<u32>(0, 0)?;
        if version != 3 {
            return Err(Error::unsupported(format!("schema version {version}"))
                .expected("3")
                .help("convert the model again with a current TensorFlow Lite converter"));
        }
        let codes = each(model.tables(1)?, "operator code", |code| {
            // Codes beyond 127 are only in the second field; older files have only the first.
            let old = code.scalar::<i8>(0, 0)?;
            let new = code.scalar::<i32>(3, 0)?;
            Ok(OperatorCode {
                builtin: i32::from(old).max(new).try_into().unwrap_or(usize::MAX),
                custom: code.string(1)?,
                version: code.scalar(2, 1)?,
            })
        })?;
        let buffers = each(model.tables(4)?, "buffer", |buffer| {
            // Large models keep the bytes behind the flatbuffer and state where.
            let (offset, size) = (buffer.scalar::<u64>(1, 0)?, buffer.scalar::<u64>(2, 0)?);
            if offset <= 1 {
                return Ok(buffer.scalars::<u8>(0)?.bytes());
            }
            let range = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
            range
                .and_then(|(offset, size)| file.get(offset..)?.get(..size))
                .ok_or_else(|| Error::input(format!("its {size} bytes at {offset} reach beyond the file's end")))
        })?;
        let mut room = Room::new(file.len(), SHARED, 1 << 20);
        let mut first = 0;
        let subgraphs = each(model.tables(2)?, "subgraph", |graph| {
            let graph = subgraph(graph, first, &codes, &buffers, &mut room)?;
            first += graph.tensors.len();
            Ok(graph)
        })?;
        if subgraphs.is_empty() {
            return Err(Error::input("the file has no subgraph"));
        }
        Ok(Self {
            codes,
            subgraphs,
            main: 0,
            signatures: signatures(model, &mut room)?,
            len: file.len(),
            planned: planned(model, &buffers)?,
        })
    }
}

/// The signatures. Whether their subgraphs exist is asked of the one that is packed: interpreters do not look at others.
fn signatures(model: Table<'_>, room: &mut Room) -> Result<Vec<Signature>> {
    each(model.tables(7)?, "signature", |signature| {
        let name = signature.string(2)?;
        room.take(name.len(), crowded)?;
        Ok(Signature {
            name,
            subgraph: signature.scalar::<u32>(4, 0)?,
        })
    })
}

/// The entry of the metadata that TensorFlow Lite Micro takes its memory plan from: a version, a number that it does not read, how many offsets there are, then
/// these.
fn planned(model: Table<'_>, buffers: &[&[u8]]) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    each(model.tables(6)?, "metadata entry", |entry| {
        if entry.string(0)? == "OfflineMemoryAllocation" {
            let index = entry.scalar::<u32>(1, 0)? as usize;
            let (words, _) = buffers.get(index).copied().unwrap_or_default().as_chunks::<4>();
            found = words.iter().skip(3).map(|word| i32::from_le_bytes(*word)).collect();
        }
        Ok(())
    })?;
    Ok(found)
}

/// How often tensors may share the bytes of a name, a shape or a list of scales, on average: a file in which all do is no larger than one in
/// which none does, but would be so in memory.
const SHARED: usize = 16;

fn crowded() -> Error {
    Error::unsupported("the names, shapes and scales of the tensors take far more memory than the file")
        .expected(format!("at most {SHARED} times its bytes"))
}

/// Bytes that may still be taken: what a file of few bytes makes of them is bounded by its length.
pub(super) struct Room(usize);

impl Room {
    /// So many times the bytes of a file, and so many besides.
    pub(super) fn new(len: usize, times: usize, besides: usize) -> Self {
        Self(len.saturating_mul(times).saturating_add(besides))
    }

    /// Takes bytes of it.
    ///
    /// # Errors
    /// `refused` where fewer are left.
    pub(super) fn take(&mut self, bytes: usize, refused: impl FnOnce() -> Error) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(refused)?;
        Ok(())
    }
}

impl TensorInfo<'_> {
    /// Whether the file leaves any extent open.
    pub(super) fn is_open(&self) -> bool {
        !self.signature.is_empty()
    }

    /// Whether the file leaves the extent of this axis open.
    pub(super) fn is_open_along(&self, axis: usize) -> bool {
        self.signature.get(axis) == Some(&-1)
    }

    /// The element type, where Arenite has it. UINT32 and UINT64 are the signed types of the same bits: see [`TensorInfo::is_unsigned`].
    pub(super) fn dtype(&self) -> Option<DType> {
        match self.kind {
            UINT32 => Some(DType::I32),
            UINT64 => Some(DType::I64),
            0 => Some(DType::F32),
            2 => Some(DType::I32),
            3 => Some(DType::U8),
            4 => Some(DType::I64),
            6 => Some(DType::Bool),
            7 => Some(DType::I16),
            9 => Some(DType::I8),
            _ => None,
        }
    }

    /// Whether its numbers are unsigned ones that a signed type holds: not every operator may take them for what that says.
    pub(super) fn is_unsigned(&self) -> bool {
        matches!(self.kind, UINT32 | UINT64)
    }

    /// The element type that the file states.
    pub(super) fn stated_kind(&self) -> u8 {
        match self {
            Self { legacy: true, .. } => UINT8,
            Self { nibbles: true, .. } => INT4,
            _ => self.kind,
        }
    }

    /// The element type's name in the schema.
    pub(super) fn type_name(&self) -> String {
        type_name(self.stated_kind())
    }
}

impl OperatorCode {
    /// Its name in the schema; a custom operator's own name.
    pub(super) fn name(&self) -> String {
        match BUILTIN_NAMES.get(self.builtin) {
            Some(&"CUSTOM") => format!("CUSTOM `{}`", self.custom),
            Some(name) => (*name).to_string(),
            None => format!("operator code {}", self.builtin),
        }
    }
}

/// The name of an element type in the schema.
pub(super) fn type_name(kind: u8) -> String {
    let name = TYPE_NAMES.get(usize::from(kind));
    name.map_or_else(|| format!("type {kind}"), ToString::to_string)
}

fn subgraph<'a>(
    graph: Table<'a>,
    first: usize,
    codes: &[OperatorCode],
    buffers: &[&'a [u8]],
    room: &mut Room,
) -> Result<Subgraph<'a>> {
    let tensors = each(graph.tables(0)?, "tensor", |tensor| {
        let index = tensor.scalar::<u32>(2, 0)? as usize;
        let data = *buffers.get(index).ok_or_else(|| {
            Error::input(format!("buffer {index}")).expected(format!("an index below {}", buffers.len()))
        })?;
        let shape = tensor.scalars::<i32>(0)?;
        if shape.len() > MAX_RANK {
            return Err(Error::unsupported(format!("{} axes", shape.len())).expected(format!("at most {MAX_RANK}")));
        }
        // Converters state 1 where the signature says -1; some say -1 in the shape itself.
        let (mut shape, mut signature) = (shape.to_vec(), tensor.scalars::<i32>(7)?.to_vec());
        if signature.len() != shape.len() {
            signature.clone_from(&shape);
        }
        for (extent, open) in shape.iter_mut().zip(&mut signature) {
            match (*extent, *open) {
                (-1, _) => (*extent, *open) = (1, -1),
                (_, -1) => {}
                (stated, _) => *open = stated,
            }
        }
        if !signature.contains(&-1) {
            signature.clear();
        }
        let quant = tensor.table(4)?;
        let list = |field| quant.map_or(Ok(Vec::new()), |q| q.scalars::<f32>(field).map(|v| v.to_vec()));
        let name = tensor.string(3)?;
        let scale = list(2)?;
        let zero_point = quant.map_or(Ok(Vec::new()), |q| q.scalars(3).map(|v| v.to_vec()))?;
        let details = quant.map_or(Ok(0_u8), |q| q.scalar(4, 0))?;
        let blocks = match quant
            .filter(|_| details == BLOCKWISE)
            .map(|q| q.table(5))
            .transpose()?
            .flatten()
        {
            Some(blocks) => Some(Blocks {
                scales: blocks.scalar(0, 0)?,
                zero_points: blocks.scalar(1, 0)?,
                size: blocks.scalar(2, 0)?,
            }),
            None => None,
        };
        let stated: u8 = tensor.scalar(1, 0)?;
        let sparsity = tensor.table(6)?;
        let nibbles = stated == INT4 && !data.is_empty() && sparsity.is_none();
        let bytes = name.len() + 4 * (shape.len() + signature.len() + scale.len()) + 8 * zero_point.len();
        room.take(bytes, crowded)?;
        Ok(TensorInfo {
            name,
            shape,
            signature,
            kind: if nibbles { INT8 } else { stated },
            data: (!data.is_empty()).then_some(data),
            scale,
            zero_point,
            axis: quant.map_or(Ok(0), |q| q.scalar(6, 0))?,
            variable: tensor.flag(5)?,
            legacy: false,
            nibbles,
            blocks,
            sparsity,
        })
    })?;
    let index = |index: i32, what: &str| {
        usize::try_from(index)
            .ok()
            .filter(|&i| i < tensors.len())
            .ok_or_else(|| {
                Error::input(format!("{what} is tensor {index}"))
                    .expected(format!("0 to {}", tensors.len().saturating_sub(1)))
            })
    };
    let all = |table: &Table<'a>, field, what: &str| {
        let list = table.scalars::<i32>(field)?;
        if list.len() > MAX_OPERANDS {
            return Err(Error::input(format!("{} {what}s", list.len())).expected(format!("at most {MAX_OPERANDS}")));
        }
        list.to_vec()
            .into_iter()
            .map(|i| index(i, what))
            .collect::<Result<Vec<_>>>()
    };
    let operators = each(graph.tables(3)?, "operator", |operator| {
        let code = operator.scalar::<u32>(0, 0)? as usize;
        if code >= codes.len() {
            return Err(
                Error::input(format!("operator code {code}")).expected(format!("an index below {}", codes.len()))
            );
        }
        let inputs = operator.scalars::<i32>(1)?;
        if inputs.len() > MAX_OPERANDS {
            return Err(Error::input(format!("{} inputs", inputs.len())).expected(format!("at most {MAX_OPERANDS}")));
        }
        let optional = |i: i32| {
            if i == -1 {
                Ok(None)
            } else {
                index(i, "an input").map(Some)
            }
        };
        let intermediates = all(&operator, 8, "intermediate")?;
        room.take(4 * (inputs.len() + intermediates.len()), crowded)?;
        Ok(Operator {
            code,
            inputs: inputs.to_vec().into_iter().map(optional).collect::<Result<_>>()?,
            outputs: all(&operator, 2, "output")?,
            intermediates,
            options: operator.table(4)?,
            custom: operator.scalars::<u8>(5)?.bytes(),
        })
    })?;
    let inputs = all(&graph, 1, "input")?;
    let outputs = all(&graph, 2, "output")?;
    Ok(Subgraph {
        first,
        inputs,
        outputs,
        operators,
        tensors,
    })
}

/// Reads every table of a vector; errors say which one.
fn each<'a, T>(tables: Tables<'a>, what: &str, mut read: impl FnMut(Table<'a>) -> Result<T>) -> Result<Vec<T>> {
    if tables.len() > MAX_TABLES {
        return Err(Error::input(format!("{} {what}s", tables.len())).expected(format!("at most {MAX_TABLES}")));
    }
    (0..tables.len())
        .map(|i| {
            tables
                .get(i)
                .and_then(&mut read)
                .map_err(|e| e.at(format_args!("{what} {i}")))
        })
        .collect()
}

#[rustfmt::skip]
const TYPE_NAMES: &[&str] = &[
    "FLOAT32", "FLOAT16", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64", "INT8", "FLOAT64", "COMPLEX128", "UINT64",
    "RESOURCE", "VARIANT", "UINT32", "UINT16", "INT4", "BFLOAT16", "INT2", "UINT4",
];

/// `BuiltinOperator` of the schema, by number.
#[rustfmt::skip]
const BUILTIN_NAMES: &[&str] = &[
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D", "MUL", "RELU",
    "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH",
    "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB",
    "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP",
    "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM",
    "ARG_MAX", "MINIMUM", "LESS", "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE", "SIN",
    "TRANSPOSE_CONV", "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT",
    "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT",
    "LOGICAL_AND", "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE", "FILL",
    "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS",
    "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU",
    "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM",
    "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D",
    "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "REDUCE_ALL",
    "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU", "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "ATAN2",
    "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD",
    "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP",
    "STABLEHLO_CONCATENATE", "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE",
    "STABLEHLO_CUSTOM_CALL", "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE",
    "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE",
    "STABLEHLO_OR", "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT",
    "STABLEHLO_SUBTRACT", "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT",
    "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA",
    "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT", "STABLEHLO_WHILE", "STABLEHLO_GATHER",
    "STABLEHLO_TRANSPOSE", "DILATE", "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE",
    "STABLEHLO_SHIFT_LEFT", "STABLEHLO_CBRT", "STABLEHLO_CASE",
];
