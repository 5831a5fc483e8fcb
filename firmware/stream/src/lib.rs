//! Models in a flash that is not memory-mapped.
//!
//! `pack --region spi=16M:stream` writes a network as pieces: models of a few steps each with the constants of these steps, which work in the same arena.
//! A [`Stream`] reads one after the other into a buffer, where it is checked as every model is, and runs it. The next piece finds
//! the results of a step in the arena, so nothing but constants is ever read, and each of them once a run.
//!
//! [`NorFlash`] is a driver of SPI NOR flashes, which writes them as well (`embedded-storage`). Feature `slots`: `Shadow` keeps the slots of `arenite::slots`
//! in one.
//!
//! ```
//! # fn program<S: embedded_hal::spi::SpiDevice>(spi: S) -> Result<(), arenite_stream::StreamError<arenite_stream::NorError<S::Error>>> {
//! use arenite_stream::{Chip, NorFlash, Stream};
//!
//! # #[repr(align(64))] struct Aligned<const N: usize>([u8; N]);
//! # let (mut buffer, mut arena) = (Aligned([0; 16 << 10]), Aligned([0; 8 << 10]));
//! # let (image, mut logits) = ([0.0f32; 64], [0.0f32; 10]);
//! let chip = Chip { id: [0x9d, 0x70, 0x19], bytes: 32 << 20, polls: 1000 }; // ISSI IS25WP256
//! let flash = NorFlash::open(spi, chip).map_err(arenite_stream::StreamError::Source)?;
//! let mut network: Stream<_> = Stream::open(flash, 0, &mut buffer.0, &mut arena.0)?; // reads and checks all of it
//! network.set_values(0, &image)?;
//! network.run()?;
//! network.values(0, &mut logits)?;
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod directory;
mod error;
mod nor;
#[cfg(feature = "slots")]
mod shadow;
mod source;
mod stream;
mod write;

pub use error::StreamError;
pub use nor::{Chip, NorError, NorFlash};
#[cfg(feature = "slots")]
pub use shadow::Shadow;
pub use source::Source;
pub use stream::{Ports, Sizes, Stream};
