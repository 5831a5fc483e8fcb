//! Random networks of what passes move and fold.

use arenite_host::graph::{Activation, BinaryOp, Op, ReduceKind, TensorId};
use arenite_host::stage::Stage;
use arenite_tests::properties;
use proptest::prelude::*;

use super::network::Network;

proptest! {
    #![proptest_config(properties::config("canonical", 1.0))]

    /// Checked where the passes are run.
    #[test]
    fn random_networks_compute_what_they_did(seed in any::<u64>(), operators in 2usize..14) {
        let (mut net, x) = Network::new(&[1, 1, 1], seed);
        let rank = net.within(2, 5);
        let shape: Vec<usize> = (0..rank).map(|_| net.within(1, 6)).collect();
        net.graph.tensor_mut(x).shape = shape;
        let mut made = vec![x];
        for _ in 0..operators {
            let last = made.len() - 1;
            let x = made[last - net.within(0, 3).min(last)];
            made.extend(add(&mut net, &made, x));
        }
        let mut outputs: Vec<TensorId> = made[1..].to_vec();
        let extra = net.within(0, made.len());
        outputs.retain(|id| {
            let read = net.graph.nodes.iter().any(|node| node.inputs.contains(&Some(*id)));
            !read || *id == made[extra]
        });
        if !outputs.is_empty() {
            net.behind(Stage::Fuse, &outputs);
        }
    }
}

/// An operator on `x`, where its shape allows.
fn add(net: &mut Network, made: &[TensorId], x: TensorId) -> Option<TensorId> {
    let shape = net.shape(x);
    let rank = shape.len();
    Some(match net.within(0, 16) {
        0 | 1 => net.relu(x),
        2 if rank >= 2 => {
            let axis = net.within(1, rank);
            net.batch_norm(x, axis)
        }
        3..=5 => {
            let kinds = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div];
            let kind = kinds[net.within(0, 4)];
            let own: Vec<usize> = shape
                .iter()
                .map(|&n| if net.within(0, 2) == 0 { n } else { 1 })
                .collect();
            let own = own[net.within(0, rank)..].to_vec();
            let constant = net.constant(&own, 0.5, 2.0);
            if kind == BinaryOp::Add && net.within(0, 2) == 0 {
                let activation = Activation::None;
                net.op(Op::Binary { kind, activation }, &[constant, x], &shape)
            } else {
                net.binary(kind, x, constant)
            }
        }
        6 | 7 => {
            let mut perm: Vec<usize> = (0..rank).collect();
            for at in (1..rank).rev() {
                let other = net.within(0, at + 1);
                perm.swap(at, other);
            }
            net.transpose(x, &perm)
        }
        8 => {
            // Extents of 1 added, dropped, or both.
            let mut other: Vec<usize> = shape.iter().copied().filter(|&n| n != 1).collect();
            let wanted = net.within(other.len().max(1), 5);
            while other.len() < wanted {
                let at = net.within(0, other.len() + 1);
                other.insert(at, 1);
            }
            net.reshape(x, &other)
        }
        9 => {
            let all = shape.iter().product::<usize>();
            net.reshape(x, &[1, all])
        }
        10 | 11 if rank == 3 => {
            let (out, padding) = (net.within(1, 4), net.within(0, 2));
            let kernel = net.within(1, shape[2] + 1);
            net.conv1d(x, out, kernel, padding)
        }
        10 | 11 if rank == 4 => {
            let groups = if net.within(0, 2) == 0 { shape[1] } else { 1 };
            let kernel = [net.within(1, shape[2] + 1), net.within(1, shape[3] + 1)];
            let (out, padding) = (net.within(1, 3), net.within(0, 2));
            net.conv(x, (out, groups), kernel, padding)
        }
        12 if rank >= 2 => {
            let (out, bias) = (net.within(1, 5), net.within(0, 2) == 0);
            net.linear(x, out, bias)
        }
        13 => {
            let same: Vec<TensorId> = made.iter().copied().filter(|&id| net.shape(id) == shape).collect();
            let other = same[net.within(0, same.len())];
            net.binary(BinaryOp::Add, x, other)
        }
        14 if rank >= 2 => {
            let axes = vec![net.within(1, rank)];
            let mut kept = shape.clone();
            kept[axes[0]] = 1;
            let kind = ReduceKind::Mean;
            let keep_dims = true;
            net.op(Op::Reduce { kind, axes, keep_dims }, &[x], &kept)
        }
        15 => {
            let pads: Vec<(usize, usize)> = (0..rank).map(|_| (net.within(0, 2), net.within(0, 2))).collect();
            let wide: Vec<usize> = shape.iter().zip(&pads).map(|(n, (a, b))| n + a + b).collect();
            if wide.iter().product::<usize>() > 600 {
                return None;
            }
            net.op(Op::Pad { pads, value: 0.5 }, &[x], &wide)
        }
        _ => {
            let axis = net.within(0, rank);
            let mut wide = shape.clone();
            wide[axis] *= 2;
            if wide.iter().product::<usize>() > 600 {
                return None;
            }
            let activation = Activation::None;
            net.op(Op::Concat { axis, activation }, &[x, x], &wide)
        }
    })
}
