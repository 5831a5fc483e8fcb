//! LSTM, GRU and Elman's network, of several layers and both directions.

use super::call::Call;
use crate::error::Result;
use crate::onnx::Attribute;

/// A recurrent operator of ONNX, and the places of its gates among PyTorch's.
struct Cell {
    op: &'static str,
    gates: &'static [i64],
    activation: Option<&'static str>,
}

pub(super) fn lstm(call: &mut Call<'_>) -> Result<Vec<String>> {
    // PyTorch: input, forget, cell, output. ONNX: input, output, forget, cell.
    recurrent(
        call,
        &Cell {
            op: "LSTM",
            gates: &[0, 3, 1, 2],
            activation: None,
        },
    )
}

pub(super) fn gru(call: &mut Call<'_>) -> Result<Vec<String>> {
    // PyTorch: reset, update, new. ONNX: update, reset, hidden.
    recurrent(
        call,
        &Cell {
            op: "GRU",
            gates: &[1, 0, 2],
            activation: None,
        },
    )
}

pub(super) fn rnn_tanh(call: &mut Call<'_>) -> Result<Vec<String>> {
    recurrent(
        call,
        &Cell {
            op: "RNN",
            gates: &[0],
            activation: Some("Tanh"),
        },
    )
}

pub(super) fn rnn_relu(call: &mut Call<'_>) -> Result<Vec<String>> {
    recurrent(
        call,
        &Cell {
            op: "RNN",
            gates: &[0],
            activation: Some("Relu"),
        },
    )
}

fn recurrent(call: &mut Call<'_>, cell: &Cell) -> Result<Vec<String>> {
    if call.has("data") {
        return Err(call.refused("data", "sequences of one length, not packed ones"));
    }
    let states = match cell.op {
        "LSTM" => call.list("hx")?,
        _ => vec![call.x("hx")?],
    };
    let (parameters, layers) = (call.list("params")?, call.int("num_layers", 1)?);
    let has_bias = call.flag("has_biases", true)?;
    let directions = if call.flag("bidirectional", false)? { 2 } else { 1 };
    let each = if has_bias { 4 } else { 2 };
    let count = usize::try_from(layers).unwrap_or(0);
    if count == 0 || count.checked_mul(directions * each) != Some(parameters.len()) || states.is_empty() {
        return Err(call.refused(
            "params",
            "weights and biases of each layer and direction, without projections",
        ));
    }
    if call.float("dropout", 0.0)? != 0.0 && call.flag("train", false)? {
        return Err(call.refused("train", "false: export the module in its inference mode (model.eval())"));
    }
    let hidden = call.extent("params", 0)? / cell.gates.len() as i64;
    let batch_first = call.flag("batch_first", false)?;
    let mut x = call.x("input")?;
    if call.rank("input")? != 3 {
        return Err(call.refused("input", "sequences, batch and elements: three axes"));
    }
    if batch_first {
        x = call.transposed(&x, &[1, 0, 2]);
    }
    let mut last: Vec<Vec<String>> = vec![Vec::new(); states.len()];
    for layer in 0..count {
        let at = layer * directions * each;
        let own = &parameters[at..at + directions * each];
        let stacked = |call: &mut Call<'_>, place: usize| {
            let parts: Vec<String> = (0..directions)
                .map(|d| gates(call, &own[d * each + place], cell.gates))
                .collect();
            lifted(call, &parts)
        };
        let (w, r) = (stacked(call, 0), stacked(call, 1));
        let bias = if has_bias {
            let parts: Vec<String> = (0..directions)
                .map(|d| {
                    let [a, b] = [2, 3].map(|place| gates(call, &own[d * each + place], cell.gates));
                    call.add("Concat", &[&a, &b], &[("axis", Attribute::Int(0))])
                })
                .collect();
            lifted(call, &parts)
        } else {
            String::new()
        };
        let first = (layer * directions) as i64;
        let mut operands = vec![x, w, r, bias, String::new()];
        for state in &states {
            operands.push(call.sliced(state, 0, [first, first + directions as i64, 1]));
        }
        let mut attributes = vec![
            ("hidden_size", Attribute::Int(hidden)),
            (
                "direction",
                Attribute::Text(if directions == 2 { "bidirectional" } else { "forward" }),
            ),
        ];
        if cell.op == "GRU" {
            attributes.push(("linear_before_reset", Attribute::Int(1)));
        }
        let names: Vec<&str> = cell.activation.into_iter().collect();
        let names = names.repeat(directions);
        if !names.is_empty() {
            attributes.push(("activations", Attribute::Texts(&names)));
        }
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let results = call.adds(cell.op, &operands, &attributes, 1 + states.len());
        // [length, directions, batch, hidden] as [length, batch, directions * hidden]
        let y = call.transposed(&results[0], &[0, 2, 1, 3]);
        x = call.reshaped(&y, &[0, 0, -1]);
        for (all, result) in last.iter_mut().zip(&results[1..]) {
            all.push(result.clone());
        }
    }
    if batch_first {
        x = call.transposed(&x, &[1, 0, 2]);
    }
    let mut results = vec![x];
    for all in last {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        results.push(call.add("Concat", &all, &[("axis", Attribute::Int(0))]));
    }
    Ok(results)
}

/// Rows of a parameter, the gates in ONNX's order.
fn gates(call: &mut Call<'_>, parameter: &str, order: &[i64]) -> String {
    if order.len() == 1 {
        return parameter.to_string();
    }
    let parts = call.adds(
        "Split",
        &[parameter],
        &[
            ("axis", Attribute::Int(0)),
            ("num_outputs", Attribute::Int(order.len() as i64)),
        ],
        order.len(),
    );
    let parts: Vec<&str> = order.iter().map(|&gate| parts[gate as usize].as_str()).collect();
    call.add("Concat", &parts, &[("axis", Attribute::Int(0))])
}

/// Parameters one behind the other along a new axis.
fn lifted(call: &mut Call<'_>, parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| call.unsqueezed(part, &[0])).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    call.add("Concat", &parts, &[("axis", Attribute::Int(0))])
}
