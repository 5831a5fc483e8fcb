//! Node names of a Keras ResNet's training step, in execution order.

/// Writes the ResNet with this many blocks in each stage, from stage 2 on.
pub fn write(network: &str, blocks: &[usize]) -> String {
    let mut names: Vec<String> = vec!["Cast".into(), "SGD/SGD/Const".into()];
    let mut forward = vec!["conv1_pad/Pad".to_string()];
    let conv_bn = |layer: &str| {
        vec![
            format!("{layer}_conv/Conv2D"),
            format!("{layer}_conv/BiasAdd"),
            format!("{layer}_bn/FusedBatchNormV3"),
        ]
    };
    forward.extend(conv_bn("conv1"));
    forward.extend(["conv1_relu/Relu", "pool1_pad/Pad", "pool1_pool/MaxPool"].map(String::from));
    for (stage, &count) in (2..).zip(blocks) {
        for block in 1..=count {
            let layer = format!("conv{stage}_block{block}");
            for branch in 1..=3 {
                forward.extend(conv_bn(&format!("{layer}_{branch}")));
                if branch < 3 {
                    forward.push(format!("{layer}_{branch}_relu/Relu"));
                }
                if branch == 1 && block == 1 {
                    forward.extend(conv_bn(&format!("{layer}_0")));
                }
            }
            forward.extend([format!("{layer}_add/add"), format!("{layer}_out/Relu")]);
        }
    }
    forward.extend(["avg_pool/Mean", "predictions/MatMul", "predictions/BiasAdd"].map(String::from));
    names.extend(
        forward
            .iter()
            .filter(|f| f.ends_with("Conv2D") || f.ends_with("BiasAdd"))
            .map(|f| format!("{network}/{f}/ReadVariableOp")),
    );
    for f in &forward {
        names.push(format!("{network}/{f}"));
        if let Some(layer) = f.strip_suffix("/FusedBatchNormV3") {
            names.extend([
                format!("{network}/{layer}/AssignNewValue"),
                format!("{network}/{layer}/AssignNewValue_1"),
            ]);
        }
    }
    names.push("SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits".into());
    names.extend(forward.iter().rev().map(|f| format!("gradient_tape/{network}/{f}Grad")));
    // Each convolution, its bias and the classifier have one variable, each batch norm two that are trained and two that are not.
    let variables = forward.iter().flat_map(|f| {
        let (layer, op) = f.split_once('/').unwrap();
        let kinds: &[&str] = match op {
            "Conv2D" | "MatMul" => &["kernel"],
            "BiasAdd" => &["bias"],
            "FusedBatchNormV3" => &["gamma", "beta", "moving_mean", "moving_variance"],
            _ => &[],
        };
        kinds.iter().map(move |kind| format!("{layer}_{kind}"))
    });
    let mut index = 0;
    for variable in variables {
        names.push(format!("HorovodBroadcast.{variable}_0/ReadVariableOp"));
        if variable.contains("_moving_") {
            continue;
        }
        names.push(format!(
            "DistributedGradientTape_Allreduce/cond_{index}/output/_{index}"
        ));
        names.push(format!("SGD/SGD/update_{index}/ResourceApplyGradientDescent"));
        index += 1;
    }
    names.join("\n")
}

/// Parameters of that network with the batch-norm statistics, from Keras's filter counts.
pub fn params(blocks: &[usize]) -> u64 {
    let conv_bn = |kernel: u64, c: u64, out: u64| kernel * kernel * c * out + out + 4 * out;
    let (mut c, mut sum) = (64, conv_bn(7, 3, 64));
    for (stage, &count) in (0..).zip(blocks) {
        let f = 64u64 << stage;
        for block in 0..count {
            if block == 0 {
                sum += conv_bn(1, c, 4 * f);
            }
            sum += conv_bn(1, c, f) + conv_bn(3, f, f) + conv_bn(1, f, 4 * f);
            c = 4 * f;
        }
    }
    sum + c * 1000 + 1000
}
