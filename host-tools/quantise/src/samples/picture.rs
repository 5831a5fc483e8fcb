//! Pictures as bytes: PNG of every colour type and depth, JPEG as cameras write it.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::Path;

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::caught::caught;

/// The most bytes that a decoder may take.
const LARGEST: u64 = 1 << 30;

/// Beginnings of files and the formats that they are; where a mask stands, of the bits in it.
const SIGNATURES: [(&[u8], &[u8], &str); 22] = [
    (b"\x89PNG\r\n\x1a\n", b"", PNG),
    (b"\xff\xd8\xff", b"", JPEG),
    (b"GIF89a", b"", "Gif"),
    (b"GIF87a", b"", "Gif"),
    (b"RIFF\0\0\0\0WEBP", b"\xff\xff\xff\xff\0\0\0\0", "WebP"),
    (b"MM\0*", b"", "Tiff"),
    (b"II*\0", b"", "Tiff"),
    (b"DDS ", b"", "Dds"),
    (b"BM", b"", "Bmp"),
    (b"\0\0\x01\0", b"", "Ico"),
    (b"#?RADIANCE", b"", "Hdr"),
    (b"\0\0\0\0ftypavif", b"\xff\xff\0\0", "Avif"),
    (b"\x76\x2f\x31\x01", b"", "OpenExr"),
    (b"qoif", b"", "Qoi"),
    (b"P1", b"", "Pnm"),
    (b"P2", b"", "Pnm"),
    (b"P3", b"", "Pnm"),
    (b"P4", b"", "Pnm"),
    (b"P5", b"", "Pnm"),
    (b"P6", b"", "Pnm"),
    (b"P7", b"", "Pnm"),
    (b"farbfeld", b"", "Farbfeld"),
];
const PNG: &str = "Png";
const JPEG: &str = "Jpeg";

/// Parts of red, green and blue in luminance: the middle row of the matrix from sRGB to XYZ, in f32.
const LUMINANCE: [f32; 3] = [0.21264784, 0.7151792, 0.07217304];

/// An open file, and what its first bytes, or else its name, say of its format.
pub(super) struct Opened {
    file: BufReader<File>,
    format: &'static str,
}

/// A decoded picture.
pub(super) struct Picture {
    pub(super) wide: usize,
    pub(super) high: usize,
    /// 1: grey, 2: grey and alpha, 3: red, green and blue, 4: these and alpha.
    channels: usize,
    elements: Elements,
}

enum Elements {
    U8(Vec<u8>),
    U16(Vec<u16>),
}

/// Opens a file.
///
/// # Errors
/// The system's.
pub(super) fn open(path: &Path) -> io::Result<Opened> {
    let mut file = BufReader::new(File::open(path)?);
    let mut start = Vec::new();
    file.by_ref().take(16).read_to_end(&mut start)?;
    file.rewind()?;
    let is = |(signature, mask, _): &&(&[u8], &[u8], &str)| {
        let masks = mask.iter().chain(std::iter::repeat(&0xff));
        let mut bytes = start.iter().zip(*signature).zip(masks);
        start.len() >= signature.len() && bytes.all(|((byte, wanted), mask)| byte & mask == *wanted)
    };
    let is_png = || path.extension().is_some_and(|end| end.eq_ignore_ascii_case("png"));
    let format = match SIGNATURES.iter().find(is) {
        Some((.., format)) => format,
        None if is_png() => PNG,
        None => JPEG,
    };
    Ok(Opened { file, format })
}

impl Opened {
    /// Decodes it.
    ///
    /// # Errors
    /// In words, why it is no picture.
    pub(super) fn decode(self) -> Result<Picture, String> {
        let (file, format) = (self.file, self.format);
        let decode = move || match format {
            PNG => png(file),
            JPEG => jpeg(file),
            other => Err(format!("The image format {other} is not supported")),
        };
        caught(decode).unwrap_or_else(|| Err(damaged(format, "the decoder gives up on it")))
    }
}

fn damaged(format: &str, error: impl Display) -> String {
    format!("Format error decoding {format}: {error}")
}

const TOO_LARGE: &str = "Memory limit exceeded";

/// That the picture's own bytes are within the limit.
fn limited(extents: [usize; 2], bytes_a_pixel: usize) -> Result<usize, String> {
    let [wide, high] = extents.map(|extent| extent as u64);
    let bytes = wide.saturating_mul(high).saturating_mul(bytes_a_pixel as u64);
    let bytes = Some(bytes).filter(|bytes| *bytes <= LARGEST);
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| TOO_LARGE.to_owned())
}

fn png(file: BufReader<File>) -> Result<Picture, String> {
    let told = |error: png::DecodingError| match error {
        png::DecodingError::IoError(error) => error.to_string(),
        png::DecodingError::Format(_) => damaged(PNG, error),
        png::DecodingError::Parameter(_) => format!("The parameter is malformed: {error}"),
        png::DecodingError::LimitsExceeded => TOO_LARGE.to_owned(),
    };
    let limits = png::Limits {
        bytes: usize::try_from(LARGEST).unwrap_or(usize::MAX),
    };
    let mut decoder = png::Decoder::new_with_limits(file, limits);
    decoder.set_ignore_text_chunk(false);
    decoder.read_header_info().map_err(told)?;
    // Palettes as colours, grey of fewer bits as bytes, transparent colours as alpha.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(told)?;
    let (color, depth) = reader.output_color_type();
    let [wide, high] = [reader.info().width, reader.info().height].map(|extent| extent as usize);
    let channels = match color {
        png::ColorType::Grayscale => 1,
        png::ColorType::GrayscaleAlpha => 2,
        png::ColorType::Rgb => 3,
        png::ColorType::Rgba => 4,
        png::ColorType::Indexed => return Err(damaged(PNG, "a palette is left")),
    };
    let is_wide = depth == png::BitDepth::Sixteen;
    let mut bytes = vec![0; limited([wide, high], channels * if is_wide { 2 } else { 1 })?];
    reader.next_frame(&mut bytes).map_err(told)?;
    let elements = if is_wide {
        let pairs = bytes.as_chunks().0;
        Elements::U16(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
    } else {
        Elements::U8(bytes)
    };
    Ok(Picture {
        wide,
        high,
        channels,
        elements,
    })
}

fn jpeg(mut file: BufReader<File>) -> Result<Picture, String> {
    let told = |error: DecodeErrors| match error {
        DecodeErrors::Unsupported(what) => {
            let what = format!("{what:?}");
            format!("The decoder for {JPEG} does not support the format features {what}")
        }
        DecodeErrors::LargeDimensions(_) => "Image size exceeds limit".to_owned(),
        error => damaged(JPEG, error),
    };
    let mut input = Vec::new();
    file.read_to_end(&mut input).map_err(|error| error.to_string())?;
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut headers = JpegDecoder::new_with_options(ZCursor::new(input.as_slice()), options);
    headers.decode_headers().map_err(told)?;
    let no_header = || damaged(JPEG, "no header");
    let (wide, high) = headers.dimensions().ok_or_else(no_header)?;
    // Others are converted.
    let (channels, space) = match headers.input_colorspace().ok_or_else(no_header)? {
        ColorSpace::Luma => (1, ColorSpace::Luma),
        ColorSpace::LumaA => (2, ColorSpace::LumaA),
        ColorSpace::RGBA => (4, ColorSpace::RGBA),
        _ => (3, ColorSpace::RGB),
    };
    let mut bytes = vec![0; limited([wide, high], channels)?];
    let options = options.jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(input.as_slice()), options);
    decoder.decode_into(&mut bytes).map_err(told)?;
    Ok(Picture {
        wide,
        high,
        channels,
        elements: Elements::U8(bytes),
    })
}

impl Picture {
    /// Its bytes with `wanted` channels: 1, 3 or 4.
    pub(super) fn into_bytes(self, wanted: usize) -> Vec<u8> {
        match self.elements {
            Elements::U8(elements) if self.channels == wanted => elements,
            Elements::U8(elements) => converted(&elements, [self.channels, wanted], |e| e, 255.0),
            Elements::U16(elements) => converted(&elements, [self.channels, wanted], narrowed, 65535.0),
        }
    }
}

/// The nearest of the 8-bit values.
fn narrowed(element: u16) -> u8 {
    ((u32::from(element) + 128) / 257) as u8
}

/// Pixels of `channels[0]` channels as ones of `channels[1]`.
fn converted<E: Copy + Into<f32>>(
    elements: &[E],
    channels: [usize; 2],
    narrow: impl Fn(E) -> u8,
    most: f32,
) -> Vec<u8> {
    let part = 1.0 / most;
    let luminance = |colors: [E; 3]| {
        let parts = colors.into_iter().zip(LUMINANCE);
        let sum = parts.fold(0.0, |sum, (value, factor)| sum + value.into() * part * factor);
        (sum * 255.0).round() as u8
    };
    let pixels = elements.chunks_exact(channels[0]);
    let mut bytes = Vec::with_capacity(pixels.len() * channels[1]);
    for pixel in pixels {
        let alpha = match pixel {
            [_, alpha] | [_, _, _, alpha] => narrow(*alpha),
            _ => u8::MAX,
        };
        let colors = match *pixel {
            [red, green, blue] | [red, green, blue, _] if channels[1] == 1 => [luminance([red, green, blue]); 3],
            [red, green, blue] | [red, green, blue, _] => [red, green, blue].map(&narrow),
            [grey] | [grey, _] => [narrow(grey); 3],
            _ => continue,
        };
        bytes.extend(&[colors[0], colors[1], colors[2], alpha][..channels[1]]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use png::{BitDepth, ColorType};

    use super::*;

    /// Colours of more samples than the first component: the JPEG decoder panics.
    #[test]
    fn a_decoder_that_panics_is_an_error() {
        let error = picture("p.jpg", include_bytes!("jpeg/gives-up.jpg")).err();
        assert_eq!(
            error.as_deref(),
            Some("Format error decoding Jpeg: the decoder gives up on it")
        );
    }

    const WIDE: usize = 9;
    const HIGH: usize = 5;

    fn picture(name: &str, bytes: &[u8]) -> Result<Picture, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        open(&path).expect("opened").decode()
    }

    /// A file of these samples, of `depth` bits each, and of a palette and its alpha where it has one.
    fn png_of(color: ColorType, depth: BitDepth, samples: &[u16], palette: Option<&[[u8; 4]]>) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, WIDE as u32, HIGH as u32);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if let Some(palette) = palette {
            let colors: Vec<u8> = palette.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
            encoder.set_palette(colors);
            encoder.set_trns(palette.iter().map(|[.., alpha]| *alpha).collect::<Vec<_>>());
        }
        let mut packed = Vec::new();
        for row in samples.chunks(samples.len() / HIGH) {
            let bits = row
                .iter()
                .flat_map(|sample| (0..depth as u32).rev().map(move |bit| sample >> bit & 1));
            let bits: Vec<u16> = bits.collect();
            packed.extend(bits.chunks(8).map(|bits| {
                let byte = bits.iter().fold(0, |byte, bit| byte << 1 | bit);
                (byte << (8 - bits.len())) as u8
            }));
        }
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&packed).expect("pixels");
        drop(writer);
        file
    }

    /// Returns the expected pixel with 1, 3 and 4 channels, from parts of 1 as the format defines them.
    fn expected(pixels: &[[f64; 4]], channels: usize, is_grey: bool) -> Vec<u8> {
        let byte = |part: f64| (part * 255.0).round() as u8;
        let of = |&[red, green, blue, alpha]: &[f64; 4]| match channels {
            1 if is_grey => vec![byte(red)],
            1 => vec![byte(0.212_648 * red + 0.715_179 * green + 0.072_173 * blue)],
            3 => [red, green, blue].map(byte).to_vec(),
            _ => [red, green, blue, alpha].map(byte).to_vec(),
        };
        pixels.iter().flat_map(of).collect()
    }

    #[test]
    fn png_of_every_colour_type_and_depth() {
        let depths = [
            BitDepth::One,
            BitDepth::Two,
            BitDepth::Four,
            BitDepth::Eight,
            BitDepth::Sixteen,
        ];
        let mut seen = 0;
        for color in [
            ColorType::Grayscale,
            ColorType::GrayscaleAlpha,
            ColorType::Rgb,
            ColorType::Rgba,
            ColorType::Indexed,
        ] {
            for depth in depths {
                let few = (depth as u8) < 8;
                let exists = match color {
                    ColorType::Grayscale => true,
                    ColorType::Indexed => depth != BitDepth::Sixteen,
                    _ => !few,
                };
                if !exists {
                    continue;
                }
                let most = ((1_u32 << depth as u32) - 1) as u16;
                let count = WIDE * HIGH * color.samples();
                let samples: Vec<u16> = (0..count as u64)
                    .map(|at| (at * 40_503 % 65_521) as u16)
                    .map(|sample| if most == u16::MAX { sample } else { sample % (most + 1) })
                    .collect();
                let palette: Vec<[u8; 4]> = (0..=most.min(255))
                    .map(|at| [3, 7, 11, 13].map(|factor| (at * factor % 256) as u8))
                    .collect();
                let indexed = color == ColorType::Indexed;
                let file = png_of(color, depth, &samples, indexed.then_some(&palette));
                let part = |sample: u16| f64::from(sample) / f64::from(most);
                let pixels = samples.chunks_exact(color.samples()).map(|pixel| match *pixel {
                    [index] if indexed => palette[usize::from(index)].map(|value| f64::from(value) / 255.0),
                    [grey] => [part(grey), part(grey), part(grey), 1.0],
                    [grey, alpha] => [part(grey), part(grey), part(grey), part(alpha)],
                    [red, green, blue] => [part(red), part(green), part(blue), 1.0],
                    [red, green, blue, alpha] => [red, green, blue, alpha].map(part),
                    _ => unreachable!(),
                });
                let pixels: Vec<[f64; 4]> = pixels.collect();
                let is_grey = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
                for channels in [1, 3, 4] {
                    // The content says what it is, whatever the name.
                    let picture = picture("a.jpg", &file).expect("a picture");
                    assert_eq!([picture.wide, picture.high], [WIDE, HIGH]);
                    let expected = expected(&pixels, channels, is_grey);
                    assert_eq!(picture.into_bytes(channels), expected, "{color:?} {depth:?} {channels}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, 3 * (5 + 2 + 2 + 2 + 4));
    }

    /// Digests of what the crate `image` 0.25.10 made of these files. Other processors have other loops.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn jpeg_of_every_kind() {
        let files: [(&str, &[u8], [u32; 3]); 5] = [
            (
                "grey",
                include_bytes!("jpeg/grey.jpg"),
                [0x9ca7_ca01, 0x34bf_31d2, 0xd7d5_ca8b],
            ),
            (
                "colours",
                include_bytes!("jpeg/colours.jpg"),
                [0xf483_603e, 0x9b5d_eedc, 0xd754_dc01],
            ),
            (
                "halves-progressive",
                include_bytes!("jpeg/halves-progressive.jpg"),
                [0x2c37_d7dd, 0x24bc_4318, 0xc521_6e35],
            ),
            (
                "cmyk",
                include_bytes!("jpeg/cmyk.jpg"),
                [0xa132_e774, 0xea7c_6c40, 0x538c_49c6],
            ),
            (
                "ycck",
                include_bytes!("jpeg/ycck.jpg"),
                [0x87d7_fdf4, 0x9d05_1b53, 0x6e9a_f735],
            ),
        ];
        for (name, file, digests) in files {
            for (channels, digest) in [1, 3, 4].into_iter().zip(digests) {
                let picture = picture("a.png", file).expect("a picture");
                assert_eq!([picture.wide, picture.high], [17, 10], "{name}");
                let found = crc32fast::hash(&picture.into_bytes(channels));
                assert_eq!(found, digest, "{name} {channels}");
            }
        }
    }

    #[test]
    fn what_is_no_picture_is_told() {
        let told = |name: &str, bytes: &[u8]| picture(name, bytes).err().expect("no picture");
        assert_eq!(told("a.png", b"\x89PNG"), "unexpected end of file");
        assert_eq!(
            told("a.PNG", b"no picture"),
            "Format error decoding Png: Invalid PNG signature."
        );
        let no_jpeg = told("a.jpg", b"no picture");
        assert!(no_jpeg.starts_with("Format error decoding Jpeg: "), "{no_jpeg}");
        let webp = b"RIFF\x12\0\0\0WEBPVP8 ";
        assert_eq!(told("a.png", webp), "The image format WebP is not supported");
        assert_eq!(told("a.jpeg", b"BM"), "The image format Bmp is not supported");
    }

    /// Headers alone, so that nothing but the limit stops them.
    #[test]
    fn more_than_the_limit_is_refused() {
        let jpeg = |high: u16, wide: u16| {
            let mut file = b"\xff\xd8\xff\xc0\0\x0b\x08".to_vec();
            file.extend(high.to_be_bytes());
            file.extend(wide.to_be_bytes());
            file.extend(b"\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0\0\xff\xd9");
            file
        };
        let told = picture("a.jpg", &jpeg(65_535, 65_535)).err();
        assert_eq!(told.as_deref(), Some("Memory limit exceeded"));
        assert_eq!(limited([32_768, 32_768], 1), Ok(1 << 30));
        assert_eq!(limited([32_768, 32_769], 1), Err(TOO_LARGE.to_owned()));
        assert_eq!(limited([usize::MAX, usize::MAX], 8), Err(TOO_LARGE.to_owned()));
    }
}
