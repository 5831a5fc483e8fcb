//! Meaning of integers: the field `quant` of a tensor, for the reader and for the JSON Schema.

use serde_json::{Value, json};

use super::fields::{Fields, Role};
use super::form::{MOST_AXES, axis};
use crate::error::Result;
use crate::files::json::Json;
use crate::graph::{DType, Quant};

/// The version that added the field.
pub(super) const SINCE: i64 = 3;

const QUANT: Fields = Fields::new(&[("scale", true), ("zero_point", false), ("axis", false)]);

/// Scales of no sense are not read: their products would leave f32.
const SCALES: [f64; 2] = [1e-30, 1e30];

/// Types of integers with the zero points that they have. Those of the first two may be computed.
const TYPES: [(&str, DType, [i64; 2]); 3] = [
    ("i8", DType::I8, [-128, 127]),
    ("u8", DType::U8, [0, 255]),
    ("i32", DType::I32, [0, 0]),
];
const COMPUTED: usize = 2;

/// The field of a tensor of this type, role and shape.
pub(super) fn read(json: &Json<'_>, dtype: DType, role: Role, shape: &[usize]) -> Result<Quant> {
    let object = json.object()?;
    QUANT.check(&object)?;
    let stored = matches!(role, Role::Parameter | Role::Constant);
    let types = if stored { &TYPES[..] } else { &TYPES[..COMPUTED] };
    let known = types
        .iter()
        .find(|row| row.1 == dtype && role != Role::State)
        .ok_or_else(|| {
            json.error(format!("`quant` of {} with another role or type", dtype.name()))
                .expected("i8 or u8, of parameters and constants i32 too, and no state")
        })?;
    let scales = object.need("scale")?;
    let scale = scales.array()?.into_iter().map(|item| match item.number()? {
        scale if (SCALES[0]..=SCALES[1]).contains(&scale) => Ok(scale as f32),
        scale => Err(item
            .error(format!("scale {scale}"))
            .expected(format!("{:e} to {:e}", SCALES[0], SCALES[1]))),
    });
    let scale: Vec<f32> = scale.collect::<Result<_>>()?;
    let zero = match object.get("zero_point") {
        None => 0,
        Some(json) => match json.integer()? {
            zero if (known.2[0]..=known.2[1]).contains(&zero) => zero as i32,
            zero => {
                return Err(json
                    .error(format!("zero_point {zero} of {}", known.0))
                    .expected(format!("{} to {}", known.2[0], known.2[1])));
            }
        },
    };
    if scale.is_empty() || (scale.len() > 1 && !stored) {
        let expected = if stored { "one or more" } else { "one" };
        return Err(scales.error(format!("{} scales", scale.len())).expected(expected));
    }
    let along = match object.get("axis") {
        None => 0,
        Some(given) => axis(given, given.integer()?, shape.len())?,
    };
    if scale.len() == 1 {
        return Ok(Quant::per_tensor(scale[0], zero));
    }
    let channels = shape.get(along).copied().unwrap_or(1);
    if channels != scale.len() {
        return Err(scales
            .error(format!("{} scales for {channels} channels", scale.len()))
            .expected("one, or one for each index of the axis"));
    }
    Ok(Quant {
        zero_point: vec![zero; scale.len()],
        scale,
        axis: Some(along),
    })
}

/// The field as JSON Schema.
pub(super) fn field() -> Value {
    QUANT.schema(|name| match name {
        "scale" => {
            let scale = json!({"type": "number", "minimum": SCALES[0], "maximum": SCALES[1]});
            json!({"type": "array", "items": scale, "minItems": 1})
        }
        "zero_point" => json!({"type": "integer", "default": 0}),
        _ => json!({"type": "integer", "minimum": -(MOST_AXES as i64), "maximum": MOST_AXES - 1, "default": 0}),
    })
}

/// Returns the requirements of `quant` on the other fields of a tensor.
pub(super) fn rules() -> impl Iterator<Item = Value> {
    let names: Vec<_> = TYPES.iter().map(|row| row.0).collect();
    let given = json!({
        "if": {"required": ["quant"]},
        "then": {"properties": {"dtype": {"enum": names}, "role": {"enum": ["input", "activation", "parameter", "constant"]}}},
    });
    let computed = json!({
        "if": {"properties": {"role": {"enum": ["input", "activation"]}}, "required": ["quant"]},
        "then": {"properties": {"dtype": {"enum": names[..COMPUTED]}, "quant": {"properties": {"scale": {"maxItems": 1}}}}},
    });
    let zero = TYPES.iter().map(|(name, _, [least, most])| {
        json!({
            "if": {"properties": {"dtype": {"enum": [name]}}, "required": ["quant"]},
            "then": {"properties": {"quant": {"properties": {"zero_point": {"minimum": least, "maximum": most}}}}},
        })
    });
    [given, computed].into_iter().chain(zero)
}
