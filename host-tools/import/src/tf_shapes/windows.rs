//! Strides, paddings and pooling windows that explain the shapes, and the LRN constants that nothing explains.

use std::collections::BTreeMap;

use super::edges::{Edges, Layout};
use super::rows::{Kernel, Node, Trace, at};
use crate::assume::Assumptions;
use crate::error::{Error, ErrorKind, Result};
use crate::solve::{Axis, same};

/// Rows and columns of each convolution and pooling, by index of the node.
pub(super) type Windows = BTreeMap<usize, (Axis, Axis)>;

/// Constants of every LRN of the network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lrn {
    pub(super) radius: usize,
    pub(super) bias: f32,
    pub(super) alpha: f32,
    pub(super) beta: f32,
}

/// The largest pooling kernel that is considered.
const LARGEST_POOL: usize = 64;

/// A window as `--assume` spells it: `3x3/2/VALID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spec {
    kernel: [usize; 2],
    stride: [usize; 2],
    is_same: bool,
}

/// Finds the window of every convolution and pooling.
pub(super) fn find(trace: &Trace<'_>, edges: &Edges<'_>, assumptions: &mut Assumptions<'_>) -> Result<Windows> {
    let mut windows = Windows::new();
    let mut poolings: Vec<(usize, Vec<Spec>)> = Vec::new();
    for &index in &edges.order {
        let node = &trace.forward[index];
        match (node.op, node.parameter.as_deref()) {
            (Kernel::Conv2d, Some(&[kh, kw, ..])) => {
                let sizes = sizes(node, edges.layouts[index]);
                let fits = |spec: &Spec| spec.axes(sizes);
                let mut specs = strides(sizes, [kh, kw]);
                if specs.iter().any(|s| s.stride[0] == s.stride[1]) {
                    specs.retain(|s| s.stride[0] == s.stride[1]);
                }
                let spec = choose(node, specs, &fits, assumptions)?;
                if let Some(axes) = spec.axes(sizes) {
                    windows.insert(index, axes);
                }
            }
            (Kernel::MaxPool | Kernel::AvgPool, _) => {
                let sizes = sizes(node, edges.layouts[index]);
                let kernels = 1..=sizes.0[0].max(sizes.0[1]).min(LARGEST_POOL);
                let specs = kernels.flat_map(|k| strides(sizes, [k, k]));
                // A stride larger than the kernel would skip elements; a window larger than the input is none.
                let plain = |s: &Spec| s.stride[0] == s.stride[1] && s.stride[0] <= s.kernel[0];
                poolings.push((index, specs.filter(plain).collect()));
            }
            _ => {}
        }
    }
    let has_convolution = trace.forward.iter().any(|n| n.op == Kernel::Conv2d);
    if has_convolution {
        let reason = "TensorFlow 1 states a dilated convolution as SpaceToBatchND around a plain one";
        assumptions.record("dilation", 1, "every convolution", reason);
    }
    pooling_windows(trace, edges, poolings, &mut windows, assumptions)?;
    Ok(windows)
}

/// The LRN constants: documented defaults.
pub(super) fn lrn(trace: &Trace<'_>, assumptions: &mut Assumptions<'_>) -> Result<Lrn> {
    let names: Vec<_> = trace
        .forward
        .iter()
        .filter(|n| n.op == Kernel::Lrn)
        .map(|n| n.name)
        .collect();
    let (radius, bias, alpha, beta) = (2, 2.0, 1e-4, 0.75);
    if names.is_empty() {
        return Ok(Lrn {
            radius,
            bias,
            alpha,
            beta,
        });
    }
    let names = names.join(", ");
    let reason = "not in the trace; the public AlexNet benchmark of that time used it";
    let mut number = |key: &str, default: f32| assumptions.or_default(key, default, &names, reason);
    let lrn = Lrn {
        bias: number("lrn.bias", bias)?,
        alpha: number("lrn.alpha", alpha)?,
        beta: number("lrn.beta", beta)?,
        radius: assumptions.or_default("lrn.depth_radius", radius, &names, reason)?,
    };
    if ![lrn.bias, lrn.alpha, lrn.beta].iter().all(|v| v.is_finite()) || lrn.radius > 1 << 16 {
        return Err(Error::new(
            ErrorKind::Usage,
            "the LRN constants must be finite, the radius at most 65536",
        ));
    }
    Ok(lrn)
}

/// One window for all poolings, where one explains them all; else one for each.
fn pooling_windows(
    trace: &Trace<'_>,
    edges: &Edges<'_>,
    poolings: Vec<(usize, Vec<Spec>)>,
    windows: &mut Windows,
    assumptions: &mut Assumptions<'_>,
) -> Result<()> {
    let nodes: Vec<&Node<'_>> = poolings.iter().map(|(index, _)| &trace.forward[*index]).collect();
    let Some((_, first)) = poolings.first() else {
        return Ok(());
    };
    let names = nodes.iter().map(|n| n.name).collect::<Vec<_>>().join(", ");
    let given = assumptions.given::<String>("pool.window", &names)?;
    let all_axes = |spec: &Spec| -> Option<Vec<(Axis, Axis)>> {
        let sizes = poolings
            .iter()
            .map(|(index, _)| sizes(&trace.forward[*index], edges.layouts[*index]));
        sizes.map(|sizes| spec.axes(sizes)).collect()
    };
    let mut common: Vec<Spec> = first.clone();
    common.retain(|spec| poolings.iter().all(|(_, specs)| specs.contains(spec)));
    if let Some(text) = &given {
        common.retain(|spec| spec.spelled() == *text);
        if common.is_empty() {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("--assume pool.window={text} does not fit {names}"),
            )
            .expected("KERNELxKERNEL/STRIDE/SAME or …/VALID"));
        }
    }
    common.dedup_by(|a, b| all_axes(a) == all_axes(b));
    let apply = |spec: &Spec, windows: &mut Windows| {
        for ((index, _), axes) in poolings.iter().zip(all_axes(spec).unwrap_or_default()) {
            windows.insert(*index, axes);
        }
    };
    match common.as_slice() {
        [only] => {
            if given.is_none() {
                let reason = "the only window, the same for all poolings, that explains their shapes";
                assumptions.record("pool.window", only.spelled(), &names, reason);
            }
            apply(only, windows);
            return Ok(());
        }
        [] => {}
        several if nodes.len() == 1 || !any_given(&nodes, assumptions)? => {
            let all: Vec<_> = several.iter().map(Spec::spelled).collect();
            let example = all.first().cloned().unwrap_or_default();
            return Err(Error::new(
                ErrorKind::Ambiguous,
                format!("several windows explain {names}: {}", all.join(", ")),
            )
            .at(format!("line {}", nodes.first().map_or(0, |n| n.line)))
            .help(format!(
                "choose with --assume pool.window={example}, or for each with --assume NAME.window=…"
            )));
        }
        _ => {}
    }
    for (index, specs) in poolings {
        let node = &trace.forward[index];
        let sizes = sizes(node, edges.layouts[index]);
        let spec = choose(node, specs, &|spec| spec.axes(sizes), assumptions)?;
        if let Some(axes) = spec.axes(sizes) {
            windows.insert(index, axes);
        }
    }
    Ok(())
}

fn any_given(nodes: &[&Node<'_>], assumptions: &mut Assumptions<'_>) -> Result<bool> {
    let mut any = false;
    for node in nodes {
        any |= assumptions
            .given::<String>(&format!("{}.window", node.name), node.name)?
            .is_some();
    }
    Ok(any)
}

/// The only spec that fits, up to spellings of the same window; reported as derived.
fn choose(
    node: &Node<'_>,
    mut specs: Vec<Spec>,
    axes: &dyn Fn(&Spec) -> Option<(Axis, Axis)>,
    assumptions: &mut Assumptions<'_>,
) -> Result<Spec> {
    let mut seen = Vec::new();
    specs.retain(|spec| {
        let axes = axes(spec);
        let is_new = axes.is_some() && !seen.contains(&axes);
        seen.push(axes);
        is_new
    });
    let key = format!("{}.window", node.name);
    if specs.is_empty() {
        return Err(at(
            node.line,
            format!(
                "no stride and padding turn {:?} into {:?} in `{}`",
                node.input, node.output, node.name
            ),
        ));
    }
    let derived = specs.len() == 1;
    let candidates: Vec<(String, Spec)> = specs.into_iter().map(|spec| (spec.spelled(), spec)).collect();
    let spec = assumptions.choose(&key, &candidates, &format!("line {} (`{}`)", node.line, node.name))?;
    if derived {
        assumptions.record(
            &key,
            spec.spelled(),
            node.name,
            "the only stride and padding that explain the shapes",
        );
    }
    Ok(spec)
}

/// Rows and columns of input and output.
fn sizes(node: &Node<'_>, layout: Layout) -> ([usize; 2], [usize; 2]) {
    let extents = |shape: &[usize]| match (layout, shape) {
        (Layout::Nchw, &[_, _, h, w]) | (Layout::Nhwc, &[_, h, w, _]) => [h, w],
        _ => [0, 0],
    };
    (extents(&node.input), extents(&node.output))
}

/// All strides, SAME and VALID, that turn the input's extents into the output's.
fn strides((input, output): ([usize; 2], [usize; 2]), kernel: [usize; 2]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for is_same in [true, false] {
        let rows = axis_strides(input[0], output[0], kernel[0], is_same);
        let columns = axis_strides(input[1], output[1], kernel[1], is_same);
        for &row in &rows {
            for &column in &columns {
                specs.push(Spec {
                    kernel,
                    stride: [row, column],
                    is_same,
                });
            }
        }
    }
    specs
}

/// Strides that make `m` windows of `n` elements. A single window has no stride: it is written as `n`.
fn axis_strides(n: usize, m: usize, kernel: usize, is_same: bool) -> Vec<usize> {
    if m == 1 {
        return if is_same || kernel <= n {
            vec![n.max(1)]
        } else {
            Vec::new()
        };
    }
    let room = match (is_same, n.checked_sub(kernel)) {
        (true, _) => n.saturating_sub(1),
        (false, Some(room)) => room,
        (false, None) => return Vec::new(),
    };
    // Both paddings make floor(room / stride) + 1 windows: SAME of n - 1, VALID of n - kernel.
    let Some(steps) = m.checked_sub(1).filter(|&steps| steps > 0) else {
        return Vec::new();
    };
    let largest = room / steps;
    let mut strides: Vec<usize> = (1..=largest).rev().take_while(|s| room / s == steps).collect();
    strides.reverse();
    strides
}

impl Spec {
    /// As `--assume` spells it.
    fn spelled(&self) -> String {
        let [kh, kw] = self.kernel;
        let stride = match self.stride {
            [h, w] if h == w => h.to_string(),
            [h, w] => format!("{h}x{w}"),
        };
        format!("{kh}x{kw}/{stride}/{}", if self.is_same { "SAME" } else { "VALID" })
    }

    /// The padding that it means for these extents; `None` where it does not give the output.
    fn axes(&self, (input, output): ([usize; 2], [usize; 2])) -> Option<(Axis, Axis)> {
        let axis = |i: usize| {
            let mut axis = if self.is_same {
                same(input[i], self.kernel[i], self.stride[i], 1)?
            } else {
                Axis {
                    kernel: self.kernel[i],
                    stride: self.stride[i],
                    dilation: 1,
                    before: 0,
                    after: 0,
                }
            };
            (axis.windows(input[i], false)? == output[i]).then_some(axis)
        };
        Some((axis(0)?, axis(1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_by_hand() {
        assert_eq!(axis_strides(224, 56, 11, true), [4]);
        assert!(axis_strides(224, 56, 11, false).is_empty());
        assert_eq!(axis_strides(56, 27, 3, false), [2]);
        assert_eq!(axis_strides(13, 13, 3, true), [1]);
        assert_eq!(axis_strides(7, 1, 7, false), [7]);
    }

    #[test]
    fn the_same_window_spelled_twice_is_one() {
        let spec = |is_same| Spec {
            kernel: [2, 2],
            stride: [2, 2],
            is_same,
        };
        let sizes = ([8, 8], [4, 4]);
        assert_eq!(spec(true).axes(sizes), spec(false).axes(sizes));
        assert_eq!(spec(true).spelled(), "2x2/2/SAME");
    }
}
