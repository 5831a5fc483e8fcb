//! Calls that sample images and sequences at other places.

use super::call::{Call, Made};
use crate::error::Result;
use crate::onnx::Attribute;

/// How the places of samples are found.
struct Way {
    mode: &'static str,
    transform: &'static str,
    nearest: &'static str,
}

pub(super) fn nearest(call: &mut Call<'_>) -> Made {
    resized(
        call,
        &Way {
            mode: "nearest",
            transform: "asymmetric",
            nearest: "floor",
        },
    )
}

/// By the element at the sample's centre.
pub(super) fn nearest_exact(call: &mut Call<'_>) -> Made {
    resized(
        call,
        &Way {
            mode: "nearest",
            transform: "half_pixel",
            nearest: "round_prefer_ceil",
        },
    )
}

fn transform(call: &Call<'_>) -> Result<&'static str> {
    Ok(if call.flag("align_corners", false)? {
        "align_corners"
    } else {
        "pytorch_half_pixel"
    })
}

pub(super) fn linear(call: &mut Call<'_>) -> Made {
    let transform = transform(call)?;
    resized(
        call,
        &Way {
            mode: "linear",
            transform,
            nearest: "floor",
        },
    )
}

pub(super) fn cubic(call: &mut Call<'_>) -> Made {
    let transform = transform(call)?;
    resized(
        call,
        &Way {
            mode: "cubic",
            transform,
            nearest: "floor",
        },
    )
}

fn resized(call: &mut Call<'_>, way: &Way) -> Made {
    let name = if call.has("input") { "input" } else { "self" };
    let (x, rank) = (call.x(name)?, call.rank(name)?);
    let axes: Vec<i64> = (2..rank as i64).collect();
    let attributes = [
        ("mode", Attribute::Text(way.mode)),
        ("coordinate_transformation_mode", Attribute::Text(way.transform)),
        ("nearest_mode", Attribute::Text(way.nearest)),
        ("axes", Attribute::Ints(&axes)),
    ];
    let mut factors = call.floats("scale_factors")?.filter(|factors| !factors.is_empty());
    if factors.is_none() {
        let each = ["scales_d", "scales_h", "scales_w", "scales"];
        let given: Vec<&str> = each.into_iter().filter(|name| call.has(name)).collect();
        if !given.is_empty() && given.len() == axes.len() {
            factors = given
                .iter()
                .map(|name| call.float(name, 1.0).map(Some))
                .collect::<Result<_>>()?;
        }
    }
    if let Some(factors) = factors {
        let data: Vec<f32> = factors.iter().map(|&factor| factor as f32).collect();
        let factors = call.real_list(&data);
        return Ok(call.add("Resize", &[&x, "", &factors], &attributes));
    }
    let sizes = call.ints("output_size")?;
    let sizes = sizes.ok_or_else(|| call.refused("output_size", "the size of the result, or factors"))?;
    let sizes = call.whole_list(&sizes);
    Ok(call.add("Resize", &[&x, "", "", &sizes], &attributes))
}
