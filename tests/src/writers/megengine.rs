//! A MegEngine profile of inference.

use serde_json::{Map, Value, json};

use super::{Chain, Layer};

struct Dump {
    operators: Map<String, Value>,
    variables: Map<String, Value>,
    chunks: Map<String, Value>,
    footprints: Map<String, Value>,
    sequence: Vec<String>,
    next: usize,
}

impl Dump {
    fn variable(&mut self, name: &str, shape: Option<&[usize]>, value: Value) -> String {
        let id = self.next.to_string();
        self.next += 1;
        let tag = |result: Value| json!({"deps": [], "inferred_result": result});
        let tags = json!({"VALUE": tag(value), "SHAPE": tag(json!(shape))});
        self.variables.insert(
            id.clone(),
            json!({"name": name, "id": id, "mem_plan": null, "static_infer_tags": tags}),
        );
        id
    }

    fn operator(&mut self, kind: &str, name: &str, inputs: &[&str], outputs: &[String]) -> String {
        let id = self.next.to_string();
        self.next += 1;
        let operator = json!({"id": id, "type": kind, "name": name, "input": inputs, "output": outputs, "extra": {}});
        self.operators.insert(id.clone(), operator);
        id
    }

    fn constant(&mut self, shape: &[usize]) -> String {
        let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
        let name = format!("const{{{}}}[{}]", extents.join(","), self.next);
        let variable = self.variable(&name, Some(shape), json!("Large Array"));
        let operator = self.operator("ImmutableTensor", &name, &[], std::slice::from_ref(&variable));
        let bytes = 4 * shape.iter().product::<usize>();
        self.chunks
            .insert(format!("chk{variable}"), json!({"owner_var": variable, "size": bytes}));
        let footprint =
            json!({"param": {}, "in_shapes": [], "out_shapes": [shape], "memory": bytes, "computation": null});
        self.footprints.insert(operator.clone(), footprint);
        self.sequence.push(operator);
        variable
    }

    fn compute(
        &mut self,
        kind: &str,
        param: &Value,
        inputs: &[(&str, &[usize])],
        shape: &[usize],
        macs: usize,
    ) -> String {
        let name = format!("{kind}[{}]", self.next);
        let output = self.variable(&name, Some(shape), Value::Null);
        let workspace = self.variable(&format!("{name}:workspace"), Some(&[64]), Value::Null);
        let ids: Vec<&str> = inputs.iter().map(|(id, _)| *id).collect();
        let operator = self.operator(kind, &name, &ids, &[output.clone(), workspace]);
        let shapes: Vec<&[usize]> = inputs.iter().map(|(_, shape)| *shape).collect();
        let elements = shapes.iter().chain([&shape]).map(|s| s.iter().product::<usize>());
        let bytes = 4 * elements.sum::<usize>();
        let footprint = json!({"param": param, "in_shapes": shapes, "out_shapes": [shape], "memory": bytes, "computation": 2 * macs});
        self.footprints.insert(operator.clone(), footprint);
        self.sequence.push(operator);
        output
    }
}

/// Writes `chain` as inference, batch norm folded, biases as elementwise additions.
pub fn write(chain: &Chain) -> String {
    let mut dump = Dump {
        operators: Map::new(),
        variables: Map::new(),
        chunks: Map::new(),
        footprints: Map::new(),
        sequence: Vec::new(),
        next: 0,
    };
    let mut x = dump.variable("data", None, Value::Null);
    let source = dump.operator("InputCallback", "data", &[], std::slice::from_ref(&x));
    dump.footprints.insert(
        source.clone(),
        json!({"param": {}, "in_shapes": [], "out_shapes": [[]], "memory": 0, "computation": null}),
    );
    dump.sequence.push(source);
    let shapes: Vec<Vec<usize>> = (chain.shapes().into_iter())
        .map(|shape| std::iter::once(chain.batch).chain(shape).collect())
        .collect();
    for (layer, pair) in chain.layers.iter().zip(shapes.windows(2)) {
        let (a, b) = (pair[0].as_slice(), pair[1].as_slice());
        let elements: usize = b.iter().product();
        let bias = |dump: &mut Dump, x: &str, shape: &[usize]| {
            let constant = dump.constant(shape);
            dump.compute("Elemwise", &json!({"mode": "ADD"}), &[(&constant, shape), (x, b)], b, 0)
        };
        x = match *layer {
            Layer::Conv {
                out,
                kernel,
                stride,
                pad,
                groups,
                dilation,
            } => {
                let mut weights = vec![out / groups, a[1] / groups, kernel[0], kernel[1]];
                if groups > 1 {
                    weights.insert(0, groups);
                }
                let w = dump.constant(&weights);
                let param = json!({"compute_mode": "DEFAULT", "format": "NCHW", "mode": "CROSS_CORRELATION",
                    "sparse": if groups > 1 { "GROUP" } else { "DENSE" }, "stride_w": stride[1], "stride_h": stride[0],
                    "pad_w": pad[1], "pad_h": pad[0], "dilate_w": dilation[1], "dilate_h": dilation[0]});
                let macs = elements * a[1] / groups * kernel[0] * kernel[1];
                let y = dump.compute("ConvolutionForward", &param, &[(&x, a), (&w, &weights)], b, macs);
                bias(&mut dump, &y, &[1, out, 1, 1])
            }
            Layer::Relu => dump.compute("Elemwise", &json!({"mode": "RELU"}), &[(&x, a)], b, 0),
            Layer::MaxPool {
                kernel,
                stride,
                ceiling,
            } => {
                assert!(!ceiling, "MegEngine pools in floor mode");
                let param = json!({"format": "NCHW", "mode": "MAX", "window_w": kernel[1], "window_h": kernel[0],
                    "stride_w": stride[1], "stride_h": stride[0], "pad_w": 0, "pad_h": 0});
                dump.compute("PoolingForward", &param, &[(&x, a)], b, 0)
            }
            Layer::Flatten => {
                // Shape arithmetic: [shape_of(x)[0], -1].
                let all = dump.variable("shape_of", Some(&[a.len()]), json!(a));
                dump.operator("GetVarShape", "shape_of", &[&x], std::slice::from_ref(&all));
                let index = dump.variable("const<0>", Some(&[1]), json!([0]));
                dump.operator("ImmutableTensor", "const<0>", &[], std::slice::from_ref(&index));
                let first = dump.variable("subtensor", Some(&[1]), json!([a[0]]));
                dump.operator("Subtensor", "subtensor", &[&all, &index], std::slice::from_ref(&first));
                let rest = dump.variable("const<-1>", Some(&[1]), json!([-1]));
                dump.operator("ImmutableTensor", "const<-1>", &[], std::slice::from_ref(&rest));
                let shape = dump.variable("concat", Some(&[2]), json!([a[0], -1]));
                dump.operator("Concat", "concat", &[&first, &rest], std::slice::from_ref(&shape));
                dump.compute("Reshape", &json!({"axis": 1}), &[(&x, a), (&shape, &[])], b, 0)
            }
            Layer::Linear { out } => {
                let weights = [out, a[1]];
                let w = dump.constant(&weights);
                let param =
                    json!({"format": "DEFAULT", "compute_mode": "DEFAULT", "transposeA": false, "transposeB": true});
                let y = dump.compute("MatrixMul", &param, &[(&x, a), (&w, &weights)], b, elements * a[1]);
                bias(&mut dump, &y, &[out])
            }
            Layer::Dropout | Layer::Lrn => panic!("the MegEngine writer knows no {layer:?}"),
        };
    }
    let result = dump.variable("output_callback", None, Value::Null);
    let sink = dump.operator("OutputCallback", "output_callback", &[&x], &[result]);
    dump.sequence.push(sink.clone());
    let last = shapes.last().unwrap();
    dump.footprints.insert(
        sink,
        json!({"param": {}, "in_shapes": [last], "out_shapes": [[]], "memory": 0, "computation": null}),
    );
    json!({
        "profiler": {"opr_internal_pf": {}, "opr_footprint": dump.footprints},
        "graph_exec": {"comp_seq": dump.sequence, "operator": dump.operators, "var": dump.variables, "mem_chunk": dump.chunks},
    })
    .to_string()
}
