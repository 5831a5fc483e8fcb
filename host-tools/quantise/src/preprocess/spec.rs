//! The words of `--preprocess`.

use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::Layout;

/// Preprocessing of a picture, from `--preprocess`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preprocess {
    /// The picture is unsigned bytes; otherwise it is of the network's own type.
    pub bytes: bool,
    /// Rows and columns of the picture; the network's own where it is none.
    pub size: Option<[usize; 2]>,
    /// Changes of its extents, in order.
    pub geometry: Vec<Geometry>,
    /// Subtracted from the pixels, for all channels or for each.
    pub mean: Vec<f32>,
    /// Factors of the differences, for all channels or for each.
    pub scale: Vec<f32>,
    /// The axes of the network's input, where its extents do not tell.
    pub layout: Option<Layout>,
}

/// A change of a picture's extents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Geometry {
    /// The rows and columns that stay, and the first of each; in the middle where it is none.
    Crop([usize; 2], Option<[usize; 2]>),
    /// Bilinear, with pixels as areas (TensorFlow's `half_pixel_centers`, PyTorch's `align_corners=False`).
    Resize([usize; 2]),
}

/// The most rows or columns of a picture.
const MOST: usize = 65_535;

impl FromStr for Preprocess {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut found = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for word in text.split_whitespace() {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (word, None),
            };
            let repeats = !matches!(key, "crop" | "resize");
            if repeats && seen.contains(&key) {
                return Err(wrong(format!("{key} twice")).expected("each once"));
            }
            seen.push(key);
            match (key, value) {
                ("u8", None) => found.bytes = true,
                ("size", Some(value)) => found.size = Some(extents(key, value)?),
                ("crop", Some(value)) => found.geometry.push(crop(value)?),
                ("resize", Some(value)) => found.geometry.push(Geometry::Resize(extents(key, value)?)),
                ("mean", Some(value)) => found.mean = numbers(key, value, |_| true)?,
                ("scale", Some(value)) => found.scale = numbers(key, value, |scale| scale != 0.0)?,
                ("layout", Some("nhwc")) => found.layout = Some(Layout::Nhwc),
                ("layout", Some("nchw")) => found.layout = Some(Layout::Nchw),
                _ => {
                    return Err(wrong(format!("`{word}`")).expected(
                        "u8, size=HxW, crop=HxW, crop=HxW+ROW+COLUMN, resize=HxW, mean=M or mean=M,M,M, scale=S or scale=S,S,S, layout=nhwc or layout=nchw",
                    ));
                }
            }
        }
        if seen.is_empty() {
            return Err(wrong("nothing is asked for".into()).expected("such as 'u8 mean=127.5 scale=0.00784314'"));
        }
        if !found.geometry.is_empty() && found.size.is_none() {
            return Err(wrong("crop or resize without the picture's own extents".into()).expected("size=HxW as well"));
        }
        Ok(found)
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Usage, format!("--preprocess: {message}"))
}

/// `HxW`.
fn extents(key: &str, value: &str) -> Result<[usize; 2]> {
    let extent = |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n));
    let both = value
        .split_once('x')
        .and_then(|(rows, columns)| Some([extent(rows)?, extent(columns)?]));
    both.ok_or_else(|| {
        wrong(format!("{key}={value}")).expected(format!("rows x columns of 1 to {MOST}, such as 96x96"))
    })
}

/// `HxW`, `HxW+ROW+COLUMN`.
fn crop(value: &str) -> Result<Geometry> {
    let Some((size, from)) = value.split_once('+') else {
        return Ok(Geometry::Crop(extents("crop", value)?, None));
    };
    let first = |text: &str| text.parse().ok().filter(|n| *n <= MOST);
    let from = from
        .split_once('+')
        .and_then(|(row, column)| Some([first(row)?, first(column)?]));
    let from = from.ok_or_else(|| wrong(format!("crop={value}")).expected("such as crop=96x96+10+20"))?;
    Ok(Geometry::Crop(extents("crop", size)?, Some(from)))
}

/// `N` or `N,N,N`.
fn numbers(key: &str, value: &str, allowed: impl Fn(f32) -> bool) -> Result<Vec<f32>> {
    let each = value
        .split(',')
        .map(|text| text.parse().ok().filter(|n: &f32| n.is_finite() && allowed(*n)));
    let all: Option<Vec<f32>> = each.collect();
    all.ok_or_else(|| {
        let expected = match key {
            "scale" => "finite numbers that are not zero, one or one for each channel",
            _ => "finite numbers, one or one for each channel",
        };
        wrong(format!("{key}={value}")).expected(expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Preprocess {
        text.parse().unwrap_or_else(|e: Error| panic!("{text}: {e}"))
    }

    #[test]
    fn words_in_any_order() {
        let found = parsed("scale=0.5 u8 size=240x320 crop=200x200+8+60 resize=96x80 mean=1,2,3 layout=nchw");
        let expected = Preprocess {
            bytes: true,
            size: Some([240, 320]),
            geometry: vec![Geometry::Crop([200, 200], Some([8, 60])), Geometry::Resize([96, 80])],
            mean: vec![1.0, 2.0, 3.0],
            scale: vec![0.5],
            layout: Some(Layout::Nchw),
        };
        assert_eq!(found, expected);
        assert_eq!(
            parsed("u8"),
            Preprocess {
                bytes: true,
                ..Preprocess::default()
            }
        );
        let in_the_middle = parsed("size=9x8 crop=3x4").geometry;
        assert_eq!(in_the_middle, [Geometry::Crop([3, 4], None)]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("", "nothing is asked for"),
            ("u8 u8", "u8 twice"),
            ("u8=1", "`u8=1`"),
            ("i16", "`i16`"),
            ("mean", "`mean`"),
            ("mean=x", "mean=x"),
            ("mean=1,", "mean=1,"),
            ("mean=inf", "mean=inf"),
            ("scale=0", "not zero"),
            ("scale=nan", "scale=nan"),
            ("size=9", "size=9"),
            ("size=0x9", "size=0x9"),
            ("size=9x65536", "1 to 65535"),
            ("size=9x9 crop=4x4+1", "crop=4x4+1"),
            ("size=9x9 crop=4x4+1+-2", "crop=4x4+1+-2"),
            ("resize=9x9", "size=HxW as well"),
            ("layout=hwc", "`layout=hwc`"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Preprocess>().expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
