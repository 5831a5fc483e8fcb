#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| arenite_tests::attacks::target("llama2c", data));
