//! A division by constants is a product with their inverses: always where these are exact, and before a network is quantised, for integers have no
//! such quotient.

use std::sync::Arc;

use super::constants::{binary, constant, filled, known, value};
use crate::error::Result;
use crate::graph::data::ExprOp;
use crate::graph::{BinaryOp, Expr, Graph, Op};

/// Divisors that are powers of two.
pub(super) fn exact(graph: &mut Graph) -> Result<()> {
    let power = |divisor: f32| divisor.to_bits() & 0x7f_ffff == 0 && has_inverse(divisor);
    inverted(graph, |divisor| {
        known(divisor).is_some_and(|values| values.into_iter().all(power))
    });
    Ok(())
}

/// All divisors but those that are known to have no inverse.
pub(super) fn any(graph: &mut Graph) -> Result<()> {
    inverted(graph, |divisor| {
        known(divisor).is_none_or(|values| values.into_iter().all(has_inverse))
    });
    Ok(())
}

fn has_inverse(divisor: f32) -> bool {
    divisor.is_normal() && (1.0 / divisor).is_normal()
}

fn inverted(graph: &mut Graph, fits: impl Fn(&Expr) -> bool) {
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let (
            &Op::Binary {
                kind: BinaryOp::Div,
                activation,
            },
            &[Some(_), Some(divisor)],
        ) = (&node.op, &node.inputs[..])
        else {
            continue;
        };
        let Some(expr) = value(graph, divisor) else { continue };
        if !fits(&expr) {
            continue;
        }
        let name = format!("{} (inverse for {})", graph.tensor(divisor).name, node.name);
        let ones = filled(1.0, expr.shape());
        let inverse = constant(graph, name, binary(ExprOp::Div, ones, Arc::clone(&expr)));
        let node = &mut graph.nodes[index];
        node.inputs[1] = Some(inverse);
        node.op = Op::Binary {
            kind: BinaryOp::Mul,
            activation,
        };
    }
}
