//! `--dtype` and the options of `pack` that go with it: what a network computes with, and what its weights are stored in.

use std::path::PathBuf;

use arenite::DType;

use super::regions::parse_size;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::LowBits;
use crate::quantize::{AUTO, Activations, Aims, Request, WeightOnly};

/// The options.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ElementTypeOptions {
    /// The element type: f32, int8, or int16x8 (int16 with int8 weights); the network's own by default. Integers of an f32 network want --calibrate.
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,
    /// Sample inputs for the ranges of the activations: .npz or .npy, or a folder of PNG and JPEG pictures (with --preprocess) or of WAV recordings.
    #[arg(long, value_name = "FILE|FOLDER")]
    calibrate: Option<PathBuf>,
    /// Leaves this layer in f32; repeatable. `auto` leaves what has no form on integers, and says what that is.
    #[arg(long, value_name = "NAME|auto")]
    keep_f32: Vec<String>,
    /// Rounds weights for the least error of their layer's output on the samples.
    #[arg(long)]
    optimise_rounding: bool,
    /// Stores weights in 16, 8 or 4 bits: with --dtype f32 they are widened as they are read, and of 32 none are; with int8, 4.
    #[arg(long, value_name = "BITS", value_parser = ["32", "16", "8", "4"])]
    weight_bits: Option<String>,
    /// Neighbouring weights of an output channel that share a scale, or with int8 a factor; all of them by default.
    #[arg(long, value_name = "N", requires = "weight_bits", value_parser = clap::value_parser!(u32).range(1..))]
    group: Option<u32>,
    /// Chooses the precision of each layer, so that the file takes at most so much: flash=256K. Wants --dtype int8 and --calibrate.
    #[arg(long, value_name = "flash=SIZE")]
    budget: Option<String>,
    /// Chooses the precision of each layer, so that the answers on the samples have at least this signal-to-noise ratio in dB, in the smallest file.
    #[arg(long, value_name = "DB")]
    target_snr: Option<f64>,
}

/// Combined request of the options.
#[derive(Debug, Default)]
pub(super) struct ElementType {
    /// `--dtype`.
    pub dtype: Option<DType>,
    /// Quantises an f32 network.
    pub quantize: Option<Request>,
    /// Stores an f32 network's weights in fewer bits.
    pub weight_only: Option<WeightOnly>,
}

impl ElementTypeOptions {
    /// Returns the request of these options.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for options that do not go together, [`ErrorKind::Unsupported`] for what is not built.
    pub(super) fn read(&self) -> Result<ElementType> {
        let usage = |message: &str| Error::new(ErrorKind::Usage, message);
        let both = [Activations::Int8, Activations::Int16];
        let activations = both
            .into_iter()
            .find(|kind| Some(kind.option()) == self.dtype.as_deref());
        let dtype = match (self.dtype.as_deref(), activations) {
            (None, _) => None,
            (Some("f32"), _) => Some(DType::F32),
            (_, Some(activations)) => Some(activations.dtype()),
            (Some(other), None) => {
                return Err(usage(&format!("--dtype {other}")).expected("f32, int8 or int16x8"));
            }
        };
        let mut asked = ElementType {
            dtype,
            ..ElementType::default()
        };
        let mixed = self.aims()?;
        if mixed.is_some() && (dtype != Some(DType::I8) || self.calibrate.is_none()) {
            return Err(usage("--budget and --target-snr without --dtype int8 and --calibrate")
                .expected("--dtype int8 --calibrate FILE")
                .help("inputs and outputs are int8, and each layer gets the precision that is worth its bytes"));
        }
        let mut low_bits = None;
        if let Some(bits) = self.low_bits() {
            if bits.bits > 8 && bits.group.is_some() {
                return Err(usage(&format!("--group with --weight-bits {}", bits.bits))
                    .help("leave it out: floating-point numbers share no scale"));
            }
            match dtype {
                Some(DType::F32) if self.keep_f32.iter().any(|name| name == AUTO) => {
                    return Err(usage("--keep-f32 auto with --dtype f32")
                        .expected("the names of layers")
                        .help("leave it out: weights of every kind of layer have a form in few bits"));
                }
                Some(DType::F32) if bits == LowBits::WIDE && !self.keep_f32.is_empty() => {
                    return Err(usage("--keep-f32 with --weight-bits 32").help("leave it out: all weights are f32"));
                }
                Some(DType::F32) => {
                    asked.weight_only = Some(WeightOnly {
                        bits,
                        keep_f32: self.keep_f32.clone(),
                    });
                }
                Some(DType::I8) if bits.bits != 4 => {
                    return Err(usage(&format!("--dtype int8 --weight-bits {}", bits.bits))
                        .help("leave --weight-bits out: int8 weights have 8 bits"));
                }
                Some(DType::I8) if self.calibrate.is_none() => {
                    return Err(usage("--dtype int8 --weight-bits 4 without --calibrate")
                        .help("--calibrate FILE quantises an f32 network; weights that are int8 already stay so"));
                }
                Some(DType::I8) => low_bits = Some(bits),
                Some(_) => {
                    let option = format!(
                        "--weight-bits with --dtype {}",
                        self.dtype.as_deref().unwrap_or_default()
                    );
                    return Err(Error::unsupported(format!(
                        "{option} is not built yet: it comes with weights of four bits under int16"
                    ))
                    .help("leave it out, or pass --dtype int8"));
                }
                None => {
                    return Err(usage("--weight-bits without --dtype").expected("--dtype f32 or --dtype int8"));
                }
            }
        }
        match (&self.calibrate, activations) {
            (Some(samples), Some(activations)) => {
                asked.quantize = Some(Request {
                    samples: samples.clone(),
                    activations,
                    low_bits,
                    mixed,
                    keep_f32: self.keep_f32.clone(),
                    optimise_rounding: self.optimise_rounding,
                    estimate: true,
                    threads: None,
                    grid: None,
                    float_ports: [false; 2],
                    integer_inputs: false,
                });
                Ok(asked)
            }
            (Some(_), None) => Err(usage("--calibrate without --dtype int8 or int16x8")
                .help("pass --dtype int8 or --dtype int16x8, or leave it out")),
            (None, _) if !self.keep_f32.is_empty() && asked.weight_only.is_none() => {
                Err(usage("--keep-f32 without --calibrate").help("leave it out: nothing is quantised"))
            }
            (None, _) if self.optimise_rounding => {
                Err(usage("--optimise-rounding without --calibrate").help("leave it out: nothing is quantised"))
            }
            (None, _) => Ok(asked),
        }
    }

    /// `--budget` and `--target-snr`.
    fn aims(&self) -> Result<Option<Aims>> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let flash = match &self.budget {
            None => None,
            Some(text) => match text.split_once('=') {
                Some(("flash", size)) => Some(parse_size("--budget flash", size)?),
                _ => {
                    return Err(usage(format!("--budget {text}"))
                        .expected("flash=SIZE, such as flash=256K")
                        .help("--fit NAME=SIZE is for the arena"));
                }
            },
        };
        if let Some(snr) = self.target_snr.filter(|snr| !snr.is_finite()) {
            return Err(usage(format!("--target-snr {snr}")).expected("a number of dB, such as 30"));
        }
        let asked = flash.is_some() || self.target_snr.is_some();
        Ok(asked.then_some(Aims {
            flash,
            snr_db: self.target_snr,
        }))
    }

    fn low_bits(&self) -> Option<LowBits> {
        let bits = self.weight_bits.as_deref()?.parse().ok()?;
        let group = self.group.map(|group| group as usize);
        Some(LowBits { bits, group })
    }
}
