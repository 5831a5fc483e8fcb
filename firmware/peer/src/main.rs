//! Runs a model once on zeros, as microflow compiles it, and counts its instructions. `ARENITE_MODEL` names the .tflite file when it is built.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::{mem, slice};

use arenite_firmware::counter::Counter;
use arenite_firmware::protocol::{Record, exit};
use arenite_firmware::{Exchange, stack};

include!(concat!(env!("OUT_DIR"), "/model.rs"));

arenite_firmware::entry!(main);

fn main(exchange: &mut Exchange) -> i32 {
    let counter = Counter::start();
    let (mut interval, mut output) = (None, None);
    let stack = stack::high_water(&mut || {
        // SAFETY: arrays of int8, for which zero is a value.
        let input = unsafe { mem::zeroed() };
        interval = Some(Counter::time(&mut || {
            output = Some(Model::predict_quantized(black_box(input)));
        }));
    });
    let instructions = interval.map_or(0, |interval| counter.instructions(interval));
    if let Some(output) = &output {
        // SAFETY: the output's bytes; it holds f32 and no padding.
        let bytes = unsafe { slice::from_raw_parts((&raw const *output).cast::<u8>(), size_of_val(output)) };
        if exchange.write_output(bytes).is_err() {
            return exit::IO;
        }
    }
    exchange.record(&Record::Ran { instructions });
    exchange.record(&Record::Finished {
        stack,
        arena_touched: 0,
    });
    exit::DONE
}
