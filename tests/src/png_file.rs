//! Pictures of 8 bits a channel in PNG files.

use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor};
use std::path::Path;

/// A picture of three channels, or of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels a row.
    pub wide: u32,
    /// Rows.
    pub high: u32,
    /// Channels: red, green and blue, or grey.
    pub channels: usize,
    /// The pixels, row by row.
    pub bytes: Vec<u8>,
}

impl Picture {
    /// A picture of these pixels.
    ///
    /// # Panics
    /// Where there are more or fewer.
    pub fn new([wide, high]: [u32; 2], channels: usize, bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), wide as usize * high as usize * channels);
        Self {
            wide,
            high,
            channels,
            bytes,
        }
    }

    /// Writes it.
    ///
    /// # Panics
    /// Where that fails.
    pub fn write(&self, path: &Path) {
        let file = BufWriter::new(File::create(path).expect("created"));
        let mut encoder = png::Encoder::new(file, self.wide, self.high);
        encoder.set_color(match self.channels {
            1 => png::ColorType::Grayscale,
            _ => png::ColorType::Rgb,
        });
        let mut writer = encoder.write_header().expect("written");
        writer.write_image_data(&self.bytes).expect("written");
        writer.finish().expect("written");
    }

    /// Reads red, green and blue; alpha is left out.
    ///
    /// # Panics
    /// Where the file has other channels, or is none.
    pub fn read(path: &Path) -> Self {
        Self::of(BufReader::new(File::open(path).expect("a file")))
    }

    /// The same of a file's bytes.
    ///
    /// # Panics
    /// As [`Self::read`].
    pub fn decode(bytes: &[u8]) -> Self {
        Self::of(Cursor::new(bytes))
    }

    fn of(file: impl std::io::BufRead + std::io::Seek) -> Self {
        let mut reader = png::Decoder::new(file).read_info().expect("a picture");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("pixels");
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        if info.color_type == png::ColorType::Rgba {
            bytes = bytes
                .chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect();
        } else {
            assert_eq!(info.color_type, png::ColorType::Rgb);
        }
        Self::new([info.width, info.height], 3, bytes)
    }
}
