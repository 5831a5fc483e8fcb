#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| arenite_fuzz::target("onnx", data));
