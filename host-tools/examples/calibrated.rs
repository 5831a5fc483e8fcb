//! How many samples a second calibration takes, for `tests/oracle/calibration_speed.py`: prints it for the least and the greatest values alone, and for those
//! with histograms, which take a second run of every sample. Packing ends there.
//!
//! `cargo run --release -p arenite-host --example calibrated -- NETWORK SAMPLES.npy OUTPUT`

use std::path::PathBuf;
use std::time::Instant;

use arenite::DType;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::Request;

/// The stage of packing that is timed. Of `all` done in it, half are the first runs.
const STAGE: &str = "calibrating";

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [network, samples, output] = &arguments[..] else {
        eprintln!("usage: calibrated NETWORK SAMPLES.npy OUTPUT");
        std::process::exit(2);
    };
    let request = Request {
        samples: samples.clone(),
        threads: Some(1),
        ..Request::default()
    };
    let options = Options {
        dtype: Some(DType::I8),
        quantize: Some(request),
        ..Options::new(network, output)
    };
    // When the first part of the samples was done, and the last: preparations are not counted.
    let (mut begun, mut ended) = (None, None);
    let packed = pack(&options, &mut |stage, done, all| {
        if stage != STAGE {
            return;
        }
        let now = Instant::now();
        let &mut (first, start) = begun.get_or_insert((done, now));
        if done == all / 2 {
            ended = Some(((done - first) as f64 / (now - start).as_secs_f64(), now));
        }
        if let (Some((rate, end)), true) = (ended, done == all) {
            let second = (now - end).as_secs_f64() / (all / 2) as f64;
            println!("{rate} {}", 1.0 / (1.0 / rate + second));
            std::process::exit(0);
        }
    });
    match packed {
        Ok(_) => eprintln!("calibrated: nothing was calibrated"),
        Err(error) => eprintln!("calibrated: {error}"),
    }
    std::process::exit(1);
}
