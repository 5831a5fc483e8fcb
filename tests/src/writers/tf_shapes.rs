//! A TensorFlow 1 step profile, forward and the rows of its gradients that name sources.

use super::{Chain, Layer, Random};

fn row(name: &str, inputs: &[String], output: &str) -> String {
    format!("{name}, {}, {output}, GPU, 0", inputs.join(", "))
}

fn shape(extents: &[usize]) -> String {
    let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
    format!("({})", extents.join("x"))
}

/// Writes a chain of convolutions (bias and ReLU belong to each), LRN and max pooling. A convolution's `pad` is not written: it must be
/// what SAME or VALID means. Rows are sorted by name, or shuffled by `seed`.
pub fn write(chain: &Chain, seed: Option<u64>) -> String {
    let n = chain.batch;
    let [c, h, w] = chain.image;
    let image = shape(&[n, h, w, c]);
    let mut rows = vec![
        row("_SOURCE", &["(1)".into()], "(no output)"),
        row("Variable", &["(1)".into()], &image),
        row("Variable/read", std::slice::from_ref(&image), &image),
        row("PermConstNHWCToNCHW-LayoutOptimizer", &["(1)".into()], "(int32 4x1)"),
    ];
    let shapes = chain.shapes();
    let nchw = |s: &[usize]| shape(&[n, s[0], s[1], s[2]]);
    let nhwc = |s: &[usize]| shape(&[n, s[1], s[2], s[0]]);
    let mut source = "Variable/read".to_string();
    let (mut scope, kernel) = (0, |rows: &mut Vec<String>, name: &str, op: &str| {
        rows.push(row(&format!("{name}:{op}"), &["(no input)".into()], "(no output)"));
    });
    for (layer, pair) in chain.layers.iter().zip(shapes.windows(2)) {
        let (a, b) = (pair[0].as_slice(), pair[1].as_slice());
        match *layer {
            Layer::Conv {
                out, kernel: k, groups, ..
            } => {
                scope += 1;
                let s = format!("conv{scope}");
                let filter = shape(&[k[0], k[1], a[0] / groups, out]);
                let bias = format!("({out}x1)");
                for (name, shape) in [("weights", &filter), ("biases", &bias)] {
                    rows.push(row(&format!("{s}/{name}"), &["(1)".into()], shape));
                    rows.push(row(&format!("{s}/{name}/read"), std::slice::from_ref(shape), shape));
                }
                rows.push(row(&format!("{s}/Conv2D"), &[nchw(a), filter], &nchw(b)));
                rows.push(row(&format!("{s}/BiasAdd"), &[nchw(b), bias], &nchw(b)));
                rows.push(row(&s, &[nchw(b)], &nchw(b)));
                for (name, op) in [
                    (format!("{s}/Conv2D"), "Conv2D"),
                    (format!("{s}/BiasAdd"), "BiasAdd"),
                    (s.clone(), "Relu"),
                ] {
                    kernel(&mut rows, &name, op);
                }
                let gradient = format!("ConstantFolding/gradients/{s}/Conv2D_grad/ShapeN-matshapes-1");
                rows.push(format!("{gradient}, ^{s}/weights/read, ^{source}, (int32 4x1), GPU, 0"));
                let (f, x, y) = (shape(&[k[0], k[1], a[0] / groups, out]), nhwc(a), nhwc(b));
                let gradient = format!("gradients/{s}/Conv2D_grad/Conv2DBackpropFilter");
                rows.push(row(&gradient, &[x, "(int32 4x1)".into(), y.clone()], &f));
                // The image has no gradient.
                if scope > 1 {
                    let gradient = format!("gradients/{s}/Conv2D_grad/Conv2DBackpropInput");
                    rows.push(row(&gradient, &["(int32 4x1)".into(), f.clone(), nchw(b)], &nchw(a)));
                }
                let gradient = format!("gradients/{s}/BiasAdd_grad/BiasAddGrad");
                rows.push(row(&gradient, &[y], &format!("({out}x1)")));
                rows.push(format!("_retval_{gradient}_0_{scope}, ({out}x1), (no output), CPU, 0"));
                rows.push(row(
                    &format!("gradients/{s}_grad/ReluGrad"),
                    &[nchw(b), nchw(b)],
                    &nchw(b),
                ));
                source = s;
            }
            Layer::Relu => assert!(source.starts_with("conv"), "a ReLU belongs to its convolution"),
            Layer::Lrn => {
                let name = format!("lrn{scope}/LRN");
                rows.push(row(&name, &[nhwc(a)], &nhwc(b)));
                kernel(&mut rows, &name, "LRN");
                let gradient = format!("gradients/{name}_grad/LRNGrad");
                rows.push(row(&gradient, &[nhwc(b), nhwc(a), nhwc(b)], &nhwc(a)));
                source = name;
            }
            Layer::MaxPool { .. } => {
                let name = format!("pool{scope}");
                rows.push(row(&name, &[nchw(a)], &nchw(b)));
                kernel(&mut rows, &name, "MaxPool");
                let gradient = format!("gradients/{name}_grad/MaxPoolGrad");
                rows.push(row(&gradient, &[nchw(a), nchw(b), nchw(b)], &nchw(a)));
                source = name;
            }
            _ => panic!("the TensorFlow writer knows no {layer:?}"),
        }
    }
    rows.sort();
    if let Some(seed) = seed {
        Random::new(seed).shuffle(&mut rows);
    }
    rows.join("\n")
}
