//! Writing seeded weights as `.safetensors`, for frameworks to evaluate the same network.

use std::io::Write;
use std::path::Path;

use super::Weights;
use super::keys::params;
use crate::error::{Error, Result};
use crate::files::{Draft, Output};
use crate::graph::{Expr, Graph};

/// Writes every parameter of an imported graph, under its traced name and shape, as `--weights seeded:N` would give it.
///
/// # Errors
/// [`crate::ErrorKind::Io`] where it can't be written.
pub fn export(graph: &Graph, seed: u64, path: &Path) -> Result<()> {
    draft(graph, seed, &Output::to(path)?)?.publish()
}

/// The file that [`export`] writes, before it appears.
pub fn draft(graph: &Graph, seed: u64, output: &Output) -> Result<Draft> {
    let path = output.path();
    let weights = Weights::seeded(seed, graph);
    let params = params(graph);
    let mut header = serde_json::Map::new();
    let mut end = 0u64;
    for (key, shape) in &params {
        let start = end;
        end += shape.iter().map(|&n| n as u64).product::<u64>() * 4;
        let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, end]});
        header.insert(key.to_string(), entry);
    }
    let mut header = serde_json::Value::Object(header).to_string();
    // The data starts at a multiple of eight.
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));

    let io = |e: std::io::Error| Error::io(path, "write the weights", &e);
    let draft = output.draft().map_err(io)?;
    let mut out = std::io::BufWriter::with_capacity(1 << 20, draft.file());
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(header.as_bytes()).map_err(io)?;
    let mut bytes = Vec::new();
    for (key, shape) in params {
        let param = Expr::Param {
            key: key.to_string(),
            shape: shape.to_vec(),
        };
        weights.stream(&param, &mut |chunk| {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|v| v.to_le_bytes()));
            out.write_all(&bytes).map_err(io)
        })?;
    }
    out.flush().map_err(io)?;
    drop(out);
    Ok(draft)
}
