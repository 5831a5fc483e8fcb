//! A Chainer graph dump of one training step.

use std::fmt::Write;

use super::{Chain, Layer, Random};

/// Writes `chain` with its loss and its backward half; buffers are numbered and records ordered by `seed`.
pub fn write(chain: &Chain, seed: u64) -> String {
    let mut random = Random::new(seed);
    // (elements of the whole buffer, name)
    let mut buffers: Vec<(usize, String)> = vec![(chain.batch * chain.image.iter().product::<usize>(), "0".into())];
    let mut records = Vec::new();
    let shapes = chain.shapes();
    let mut x = 0;
    for (rank, (layer, pair)) in chain.layers.iter().zip(shapes.windows(2)).enumerate() {
        let mut inputs = vec![x];
        let mut parameters = |weights: usize, bias: usize| {
            for (elements, name) in [(weights, "W"), (bias, "b")] {
                inputs.push(buffers.len());
                buffers.push((elements, format!("/net/layer{rank}/{name}")));
            }
        };
        let (class, attributes) = match *layer {
            Layer::Conv {
                out,
                kernel,
                stride,
                pad,
                groups,
                dilation,
            } => {
                parameters(out * pair[0][0] / groups * kernel[0] * kernel[1], out);
                let ([sy, sx], [ph, pw], [dy, dx]) = (stride, pad, dilation);
                let attributes = format!(
                    "\"sy\": {sy}, \"sx\": {sx}, \"ph\": {ph}, \"pw\": {pw}, \"cover_all\": false, \
                     \"dy\": {dy}, \"dx\": {dx}, \"groups\": {groups}, "
                );
                ("Convolution2DFunction", attributes)
            }
            Layer::Relu => ("ReLU", String::new()),
            Layer::MaxPool {
                kernel,
                stride,
                ceiling,
            } => {
                let ([kh, kw], [sy, sx]) = (kernel, stride);
                let attributes = format!(
                    "\"kh\": {kh}, \"kw\": {kw}, \"sy\": {sy}, \"sx\": {sx}, \"ph\": 0, \"pw\": 0, \
                     \"cover_all\": {ceiling}, \"return_indices\": false, "
                );
                ("MaxPooling2D", attributes)
            }
            Layer::Flatten => ("Reshape", format!("\"shape\": [{}, -1], ", chain.batch)),
            Layer::Dropout => ("Dropout", "\"dropout_ratio\": 0.5, ".into()),
            Layer::Linear { out } => {
                parameters(out * pair[0].iter().product::<usize>(), out);
                ("LinearFunction", String::new())
            }
            Layer::Lrn => panic!("the Chainer writer knows no LRN"),
        };
        x = buffers.len();
        buffers.push((chain.batch * pair[1].iter().product::<usize>(), "_".into()));
        records.push((class, attributes, inputs, x, rank));
    }
    let labels = buffers.len();
    buffers.push((chain.batch, "1".into()));
    buffers.push((1, "_".into()));
    records.push((
        "SoftmaxCrossEntropy",
        "\"normalize\": true, \"ignore_label\": -1, \"reduce\": \"mean\", ".into(),
        vec![x, labels],
        labels + 1,
        chain.layers.len(),
    ));

    let mut numbers: Vec<usize> = (0..buffers.len()).collect();
    random.shuffle(&mut numbers);
    let mut text = Vec::new();
    for (class, attributes, inputs, output, rank) in &records {
        let json = format!("{{{attributes}\"_output_count\": 1, \"rank\": {rank}, \"lazy_grad_sum\": false}}");
        let ids: Vec<usize> = inputs.iter().map(|&i| numbers[i]).collect();
        let mut forward = format!("forward\n{} 1\n", ids.len());
        let mut backward = format!(
            "backward\n{} {}\n{} gradient\n",
            ids.len() + 1,
            ids.len(),
            numbers[*output]
        );
        for id in &ids {
            writeln!(forward, "{id} _").unwrap();
            writeln!(backward, "{id} input").unwrap();
        }
        writeln!(forward, "{}\n{class}\n{json}", numbers[*output]).unwrap();
        for id in &ids {
            writeln!(backward, "{id}").unwrap();
        }
        writeln!(backward, "{class}\n{json}").unwrap();
        text.extend([forward, backward]);
    }
    random.shuffle(&mut text);
    let mut table: Vec<(usize, &(usize, String))> = numbers.iter().copied().zip(&buffers).collect();
    table.sort_by_key(|(number, _)| *number);
    let mut all = format!("{} {}\n", buffers.len(), text.len());
    for (number, (elements, name)) in table {
        writeln!(all, "{number} {} {name}", elements * 4).unwrap();
    }
    all + &text.concat()
}
