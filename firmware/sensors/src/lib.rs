//! From a sensor to a model's input: blocks of samples that are whole and in time, or an error that says so.
//!
//! [`Samples`] is what every source is. [`DoubleBuffer`] makes one of a DMA and its interrupt, [`Adxl345`] is one over `embedded-hal`'s I2C or SPI.
//! [`Frames`] makes frames that overlap of their blocks, as front ends for audio want them.
//!
//! ```
//! use arenite_sensors::{DoubleBuffer, Frames, Samples, SamplesError};
//!
//! static MICROPHONE: DoubleBuffer<160> = DoubleBuffer::new(); // 10 ms at 16 kHz
//!
//! // In the DMA's interrupt handler, for each half that is full:
//! fn dma_interrupt() {
//!     MICROPHONE.half_done(160);
//! }
//!
//! # dma_interrupt();
//! // The DMA writes to MICROPHONE.address(), 320 samples in a circle. In the program:
//! let mut microphone = MICROPHONE.reader();
//! # let mut microphone = { drop(microphone); MICROPHONE.reader_from_start() };
//! let mut frames = Frames::<480, 320, 160>::new();
//! let mut block = [0; 160];
//! match microphone.poll(&mut block) {
//!     Ok(true) => {
//!         if let Some(frame) = frames.push(&block) {
//!             // frontend::run(&mut session, frame)?
//! #           let _ = frame;
//!         }
//!     }
//!     Ok(false) => {} // not yet: something else has its turn
//!     Err(SamplesError::Late { .. } | SamplesError::Short { .. }) => frames.restart(),
//!     Err(SamplesError::Device(never)) => match never {},
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod adxl345;
mod dma;
mod frames;
mod registers;
mod samples;

pub use adxl345::Adxl345;
pub use dma::{DoubleBuffer, Reader};
pub use frames::Frames;
pub use registers::{OverI2c, OverSpi, Registers};
pub use samples::{Samples, SamplesError};
