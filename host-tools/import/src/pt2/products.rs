//! Calls that are products of matrices, and attention.

use super::call::{Call, Made};
use crate::error::Result;
use crate::onnx::{Attribute, ElementType};

pub(super) fn linear(call: &mut Call<'_>) -> Made {
    let (x, w, bias) = (call.x("input")?, call.x("weight")?, call.maybe("bias")?);
    Ok(call.linear(&x, &w, bias.as_deref()))
}

pub(super) fn matmul(call: &mut Call<'_>) -> Made {
    let second = ["other", "mat2", "vec", "tensor"]
        .into_iter()
        .find(|name| call.has(name));
    let (a, b) = (call.x("self")?, call.x(second.unwrap_or("other"))?);
    Ok(call.add("MatMul", &[&a, &b], &[]))
}

/// `beta * self + alpha * mat1 @ mat2`
pub(super) fn addmm(call: &mut Call<'_>) -> Made {
    let (c, a, b) = (call.x("self")?, call.x("mat1")?, call.x("mat2")?);
    let [alpha, beta] = ["alpha", "beta"].map(|name| call.float(name, 1.0));
    let factors = [
        ("alpha", Attribute::Float(alpha? as f32)),
        ("beta", Attribute::Float(beta? as f32)),
    ];
    Ok(call.add("Gemm", &[&a, &b, &c], &factors))
}

/// Likewise, of each matrix of a batch.
pub(super) fn baddbmm(call: &mut Call<'_>) -> Made {
    let (mut c, a, b) = (call.x("self")?, call.x("batch1")?, call.x("batch2")?);
    let mut y = call.add("MatMul", &[&a, &b], &[]);
    let [alpha, beta] = ["alpha", "beta"].map(|name| call.float(name, 1.0));
    for (factor, value) in [(alpha?, &mut y), (beta?, &mut c)] {
        if factor != 1.0 {
            let factor = call.real(factor);
            *value = call.add("Mul", &[value, &factor], &[]);
        }
    }
    Ok(call.add("Add", &[&c, &y], &[]))
}

/// The products of all pairs of elements of two vectors.
pub(super) fn outer(call: &mut Call<'_>) -> Made {
    let (a, b) = (call.x("self")?, call.x("vec2")?);
    let column = call.unsqueezed(&a, &[1]);
    Ok(call.add("Mul", &[&column, &b], &[]))
}

pub(super) fn einsum(call: &mut Call<'_>) -> Made {
    let (equation, operands) = (call.text("equation", "")?, call.list("tensors")?);
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    Ok(call.add("Einsum", &operands, &[("equation", Attribute::Text(&equation))]))
}

/// A weight as its direction and its length along an axis: `g * v / |v|`.
pub(super) fn weight_norm(call: &mut Call<'_>) -> Made {
    let (v, g) = (call.x("v")?, call.x("g")?);
    let rank = call.rank("v")?;
    let axes: Vec<i64> = match call.int("dim", 0)? {
        -1 => (0..rank as i64).collect(),
        axis => (0..rank as i64).filter(|&own| own != axis).collect(),
    };
    let axes = call.whole_list(&axes);
    let length = call.add("ReduceL2", &[&v, &axes], &[]);
    let factor = call.add("Div", &[&g, &length], &[]);
    Ok(call.add("Mul", &[&v, &factor], &[]))
}

/// `softmax(query @ key^T * scale + mask) @ value`, of four axes or three.
pub(super) fn attention(call: &mut Call<'_>) -> Result<Vec<String>> {
    if call.float("dropout_p", 0.0)? != 0.0 {
        return Err(call.refused("dropout_p", "0: export the module in its inference mode (model.eval())"));
    }
    let rank = call.rank("query")?;
    let mut operands = Vec::new();
    for name in ["query", "key", "value", "attn_mask"] {
        let x = match name {
            "attn_mask" => call.maybe(name)?.unwrap_or_default(),
            _ => call.x(name)?,
        };
        operands.push(if rank == 3 && !x.is_empty() && call.rank(name)? == 3 {
            call.unsqueezed(&x, &[0])
        } else {
            x
        });
    }
    let mut attributes = vec![("is_causal", Attribute::Int(i64::from(call.flag("is_causal", false)?)))];
    if call.has("scale") {
        attributes.push(("scale", Attribute::Float(call.float("scale", 1.0)? as f32)));
    }
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    let y = call.add("Attention", &operands, &attributes);
    Ok(vec![if rank == 3 { call.squeezed(&y, &[0]) } else { y }])
}

/// The cosine of the angle between vectors along an axis.
pub(super) fn cosine(call: &mut Call<'_>) -> Made {
    let (a, b) = (call.x("x1")?, call.x("x2")?);
    let (axis, eps) = (call.int("dim", 1)?, call.float("eps", 1e-8)?);
    let (axes, least) = (call.whole_list(&[axis]), call.number(eps, ElementType::FLOAT));
    let keep = || [("keepdims", Attribute::Int(0))];
    let product = call.add("Mul", &[&a, &b], &[]);
    let product = call.add("ReduceSum", &[&product, &axes], &keep());
    let mut lengths = Vec::new();
    for x in [&a, &b] {
        let length = call.add("ReduceL2", &[x, &axes], &keep());
        lengths.push(call.add("Max", &[&length, &least], &[]));
    }
    let both = call.add("Mul", &[&lengths[0], &lengths[1]], &[]);
    Ok(call.add("Div", &[&product, &both], &[]))
}
