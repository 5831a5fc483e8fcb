//! Small ONNX files, and what becomes of them.

use std::path::Path;

use arenite::Target;
use arenite_host::import::ImportOptions;
use arenite_host::import::onnx::import;
use arenite_host::model::run;
use arenite_tests::golden::packed;
use arenite_tests::onnx::Writer;

/// An attribute of one float.
pub(crate) fn float(name: &str, value: f32) -> Vec<u8> {
    let mut attribute = Writer::default().bytes(1, name.as_bytes()).done();
    attribute.push(2 << 3 | 5);
    attribute.extend(value.to_le_bytes());
    attribute.extend(Writer::default().int(20, 1).done());
    attribute
}

/// An attribute of one integer.
pub(crate) fn int(name: &str, value: i64) -> Vec<u8> {
    Writer::default()
        .bytes(1, name.as_bytes())
        .int(3, value)
        .int(20, 2)
        .done()
}

/// An attribute of text.
pub(crate) fn text(name: &str, value: &str) -> Vec<u8> {
    Writer::default()
        .bytes(1, name.as_bytes())
        .bytes(4, value.as_bytes())
        .int(20, 3)
        .done()
}

/// An attribute of integers.
pub(crate) fn ints(name: &str, values: &[i64]) -> Vec<u8> {
    let list = values
        .iter()
        .fold(Writer::default().bytes(1, name.as_bytes()), |list, &value| {
            list.int(8, value)
        });
    list.int(20, 7).done()
}

/// An initializer of `TensorProto.DataType` `elem`.
pub(crate) fn initializer(name: &str, elem: i64, shape: &[i64], raw: &[u8]) -> Vec<u8> {
    let tensor = shape
        .iter()
        .fold(Writer::default(), |tensor, &extent| tensor.int(1, extent));
    tensor.int(2, elem).bytes(8, name.as_bytes()).bytes(9, raw).done()
}

/// An initializer of floats.
pub(crate) fn floats(name: &str, shape: &[i64], values: &[f32]) -> Vec<u8> {
    initializer(
        name,
        1,
        shape,
        &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
    )
}

/// An initializer of int64.
pub(crate) fn longs(name: &str, values: &[i64]) -> Vec<u8> {
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    initializer(name, 7, &[values.len() as i64], &raw)
}

/// An initializer of this element type, whose elements stand one by one as int32.
pub(crate) fn typed(name: &str, elem: i64, shape: &[i64], values: &[i64]) -> Vec<u8> {
    let tensor = shape
        .iter()
        .fold(Writer::default(), |tensor, &extent| tensor.int(1, extent));
    let tensor = values.iter().fold(tensor, |tensor, &value| tensor.int(5, value));
    tensor.int(2, elem).bytes(8, name.as_bytes()).done()
}

/// The bytes of f32.
pub(crate) fn stored(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The bytes of int32.
pub(crate) fn stored_ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A `ValueInfoProto` of this element type.
pub(crate) fn value(name: &str, elem: i64, shape: &[i64]) -> Vec<u8> {
    let extents = shape.iter().fold(Writer::default(), |extents, &extent| {
        extents.bytes(1, &Writer::default().int(1, extent).done())
    });
    let tensor = Writer::default().int(1, elem).bytes(2, &extents.done()).done();
    let kind = Writer::default().bytes(1, &tensor).done();
    Writer::default().bytes(1, name.as_bytes()).bytes(2, &kind).done()
}

/// A file under construction: nodes, initializers, inputs, outputs, shapes of values between.
#[derive(Default, Clone)]
pub(crate) struct File {
    graph: Writer,
}

impl File {
    pub(crate) fn node(self, op: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Self {
        let node = attributes
            .iter()
            .fold(Writer::node(op, inputs, output), |node, a| node.bytes(5, a));
        self.with(1, &node.done())
    }

    /// A node that is written already.
    pub(crate) fn raw(self, node: &[u8]) -> Self {
        self.with(1, node)
    }

    pub(crate) fn holding(self, tensor: &[u8]) -> Self {
        self.with(5, tensor)
    }

    pub(crate) fn input(self, value: &[u8]) -> Self {
        self.with(11, value)
    }

    pub(crate) fn output(self, value: &[u8]) -> Self {
        self.with(12, value)
    }

    pub(crate) fn stating(self, value: &[u8]) -> Self {
        self.with(13, value)
    }

    /// An attribute that is this graph: a branch.
    pub(crate) fn attribute(&self, name: &str) -> Vec<u8> {
        let attribute = Writer::default().bytes(1, name.as_bytes());
        attribute.bytes(6, &self.graph.clone().done()).int(20, 5).done()
    }

    fn with(self, field: u64, message: &[u8]) -> Self {
        Self {
            graph: self.graph.bytes(field, message),
        }
    }

    pub(crate) fn bytes(&self, opset: i64) -> Vec<u8> {
        Writer::model(&self.graph.clone().done(), opset)
    }
}

/// Imports a file; returns the outputs' shapes, or the refusal.
pub(crate) fn imported(file: &[u8], options: &ImportOptions) -> Result<Vec<Vec<usize>>, String> {
    let imported = import(Path::new("nowhere/m.onnx"), file, options).map_err(|e| e.to_string())?;
    let graph = imported.graph;
    Ok(graph.outputs.iter().map(|&id| graph.tensor(id).shape.clone()).collect())
}

/// Packs a file and runs it: the first output's bytes, or the refusal.
pub(crate) fn computed(file: &[u8], input: &[u8]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, file).expect("written");
    let packed = packed(&path, folder.path(), Target::Portable).map_err(|e| e.to_string())?;
    let model = packed.load().expect("it loads");
    let outputs = run(&model, &[vec![input.to_vec()]], true, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
    Ok(outputs[0][0].clone())
}
