//! The picture of locally connected layers and a classifier, as clean text or with the noise of OCR.

use std::fmt::Write;

use super::Random;

/// Locally connected layers, each with its nonlinearity, and a linear classifier.
#[derive(Debug, Clone)]
pub struct Local {
    /// Traced batch.
    pub batch: usize,
    /// Channels, rows, columns.
    pub image: [usize; 3],
    /// Output channels and kernel side of each layer.
    pub layers: Vec<(usize, usize)>,
    /// Classes.
    pub classes: usize,
}

impl Local {
    /// Channels, rows, columns before each layer, and after the last.
    pub fn levels(&self) -> Vec<[usize; 3]> {
        let mut levels = vec![self.image];
        for (out, k) in &self.layers {
            let [_, h, w] = *levels.last().unwrap();
            levels.push([*out, h - k + 1, w - k + 1]);
        }
        levels
    }

    /// Scalars in filters, gains, biases and the classifier.
    pub fn params(&self) -> u64 {
        let levels = self.levels();
        let layers = self.layers.iter().zip(levels.windows(2)).map(|((out, k), pair)| {
            let [_, oh, ow] = pair[1];
            out * pair[0][0] * k * k * oh * ow + 1 + out * oh * ow
        });
        (layers.sum::<usize>() + self.classes * levels.last().unwrap().iter().product::<usize>()) as u64
    }

    /// Writes the forward half, the gradients and the updates.
    pub fn write(&self) -> String {
        let mut text = String::new();
        let n = self.batch;
        let levels = self.levels();
        let image = |level: usize| [&[n], levels[level].as_slice()].concat();
        operator(&mut text, "data", &[("result", &image(0))], "raw_data->");
        data(&mut text, &[("data.raw_output", &image(0))]);
        for (i, (out, k)) in self.layers.iter().enumerate() {
            let ([c, _, _], [_, oh, ow]) = (levels[i], levels[i + 1]);
            let filters = [*out, 1, 1, c, *k, *k, oh, ow];
            let result = image(i + 1);
            data(&mut text, &[(&format!("L{i}.W"), &filters)]);
            text.push_str("->input ->filters\n");
            operator(
                &mut text,
                &format!("L{i}.filter"),
                &[("result", &result), ("input", &image(i)), ("filters", &filters)],
                "output->",
            );
            let bias = [1, *out, oh, ow];
            data(
                &mut text,
                &[
                    (&format!("L{i}.b"), &bias),
                    (&format!("L{i}.filter.output"), &result),
                    (&format!("L{i}.a"), &[1]),
                ],
            );
            for op in ["filterA", "filterNL"] {
                text.push_str("->b ->input\n");
                operator(&mut text, &format!("L{i}.{op}"), &[("result", &result)], "output->");
                data(&mut text, &[(&format!("L{i}.{op}.output"), &result)]);
            }
        }
        let last = levels[self.layers.len()];
        let logits = [n, self.classes, 1, 1];
        data(
            &mut text,
            &[("classifier.weights1", &[&[self.classes], last.as_slice()].concat())],
        );
        text.push_str("->weights ->input\nclassifier.linear1\n");
        writeln!(text, "read_{}", rect(&image(self.layers.len()))).unwrap();
        writeln!(text, "write_{}\noutput->", rect(&logits)).unwrap();
        data(
            &mut text,
            &[
                ("data.labels_output", &[n, 1, 1, 1]),
                ("classifier.linear1.output", &logits),
            ],
        );
        text.push_str("->labels ->input\n");
        operator(
            &mut text,
            "classifier.softmax",
            &[("result", &[1, 1, 1, 1])],
            "probability->",
        );
        data(
            &mut text,
            &[
                ("classifier.softmax.probability", &logits),
                ("classifier.softmax.output", &[1, 1, 1, 1]),
            ],
        );
        text.push_str("->input ->probability\n");
        operator(
            &mut text,
            "classifier.evaluate",
            &[("result", &[4, 1, 1, 1])],
            "output->",
        );
        self.training(&mut text);
        text
    }

    /// From the loss back to the first layer: each gradient is cleared, computed, and those of parameters are applied.
    fn training(&self, text: &mut String) {
        let levels = self.levels();
        let image = |level: usize| [&[self.batch], levels[level].as_slice()].concat();
        let logits = [self.batch, self.classes, 1, 1];
        let node = |text: &mut String, name: String, extents: &[usize]| {
            writeln!(text, "{name}.grad.set_zero").unwrap();
            data(text, &[(&format!("{name}.grad"), extents)]);
        };
        let operator = |text: &mut String, name: String, extents: &[usize]| {
            writeln!(text, "->output.delta\n{name}\nresult_{}", dim(extents)).unwrap();
        };
        node(text, "classifier.softmax.output".into(), &[1, 1, 1, 1]);
        operator(text, "classifier.softmax.grad".into(), &logits);
        node(text, "classifier.linear1.output".into(), &logits);
        operator(text, "classifier.linear1.grad".into(), &image(self.layers.len()));
        let weights = [&[self.classes], levels[self.layers.len()].as_slice()].concat();
        node(text, "classifier.weights1".into(), &weights);
        operator(text, "update_W1".into(), &weights);
        for (i, (out, k)) in self.layers.iter().enumerate().rev() {
            let result = image(i + 1);
            let ([c, _, _], [_, oh, ow]) = (levels[i], levels[i + 1]);
            for op in ["filterNL", "filterA", "filter"] {
                node(text, format!("L{i}.{op}.output"), &result);
                operator(text, format!("L{i}.{op}.grad"), &result);
                let parameters: &[(&str, &[usize])] = match op {
                    "filterA" => &[("a", &[1]), ("b", &[1, *out, oh, ow])],
                    "filter" => &[("W", &[*out, 1, 1, c, *k, *k, oh, ow])],
                    _ => &[],
                };
                for (parameter, extents) in parameters {
                    node(text, format!("L{i}.{parameter}"), extents);
                    operator(text, format!("update_L{i}.{parameter}"), extents);
                }
            }
        }
    }
}

/// Returns the text with OCR's faults in about one of `rarity` characters: letters and digits that look alike, a character twice or not at all, a space too
/// many, a broken arrow.
pub fn noise(text: &str, seed: u64, rarity: usize) -> String {
    let mut random = Random::new(seed);
    let mut noisy = String::new();
    for c in text.chars() {
        if random.below(rarity) != 0 {
            noisy.push(c);
            continue;
        }
        let alike = match c {
            '0' => 'O',
            'O' => '0',
            '1' => 'l',
            'l' | 'i' => '1',
            '5' => 'S',
            's' => '5',
            '8' => 'B',
            _ => c,
        };
        match (alike == c, c, random.below(3)) {
            (false, _, _) => noisy.push(alike),
            (_, '-', _) => noisy.push('='),
            (_, ' ', _) => noisy.push_str("  "),
            (_, 'a'..='z' | '2'..='9', 0) => noisy.extend([c, c]),
            (_, 'a'..='z' | '2'..='9', 1) => {}
            _ => noisy.push(c),
        }
    }
    noisy
}

fn rect(high: &[usize]) -> String {
    let list = |extents: &[usize]| extents.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let low = list(&vec![0; high.len()]);
    format!(
        "rect=Rect(array([{low}], dtype=int32), array([{}], dtype=int32))",
        list(high)
    )
}

fn dim(extents: &[usize]) -> String {
    format!(
        "dim=[{}]",
        extents.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
    )
}

fn operator(text: &mut String, name: &str, arrays: &[(&str, &[usize])], port: &str) {
    writeln!(text, "{name}\nresult_{}", dim(arrays[0].1)).unwrap();
    for (what, extents) in &arrays[1..] {
        writeln!(text, "dist_{what}={}", rect(extents).trim_start_matches("rect=")).unwrap();
    }
    writeln!(
        text,
        "dist_result={}\n{port}",
        rect(arrays[0].1).trim_start_matches("rect=")
    )
    .unwrap();
}

fn data(text: &mut String, nodes: &[(&str, &[usize])]) {
    let line = |part: &dyn Fn(&[usize]) -> String| nodes.iter().map(|(_, e)| part(e)).collect::<Vec<_>>().join(" ");
    let names: Vec<_> = nodes.iter().map(|(name, _)| *name).collect();
    writeln!(text, "{}\n{}", names.join(" "), line(&|e| dim(e))).unwrap();
    writeln!(
        text,
        "{}\n{}",
        line(&|e| format!("read_{}", rect(e))),
        line(&|e| format!("write_{}", rect(e)))
    )
    .unwrap();
}
