//! Images whose rows come over a serial port: visual wake words on a board of 16 KiB, stack included, where no image is ever whole.

use arenite::Target;
use arenite_host::board::{Board, Firmware, ready};
use arenite_host::pack::{Options, pack};
use arenite_tests::emulated::Emulated;
use arenite_tests::golden::{Archive, options};
use arenite_tests::oracle::compared;
use arenite_tests::{shared, skip};

#[test]
fn visual_wake_words_over_a_serial_port_in_16_kib() {
    const NAME: &str = "visual_wake_words_over_a_serial_port_in_16_kib";
    let Some(models) = shared().map(|shared| shared.join("data/models")) else {
        return skip(NAME, "no shared data");
    };
    let board = Board::find("microbit").expect("a board");
    if let Err(reason) = ready(board) {
        return skip(NAME, &reason.to_string());
    }
    assert_eq!(board.ram.size, 16 << 10);
    let folder = tempfile::tempdir().expect("a folder");
    let by_rows = Options {
        stream_input: true,
        ..options(&models.join("vww_96_int8.tflite"), folder.path(), Target::Portable)
    };
    let packed = pack(&by_rows, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let firmware = Firmware::build_camera(board, &by_rows.output).unwrap_or_else(|error| panic!("{error}"));
    let mut qemu = Emulated::start(board, &firmware, folder.path());
    let mut archive = Archive::open(&models.join("golden/vww_96_int8.npz"));
    let [images, expected] = ["in_rand_0", "out_rand_tflm_0"].map(|key| archive.runs(key).0);
    let both = images.iter().zip(&expected).take(2);
    for (image, expected) in both.clone() {
        assert!(image.len() > board.ram.size as usize);
        assert_eq!(&qemu.asked(image, expected.len()), expected);
    }
    compared("TensorFlow Lite Micro", both.count(), 2);
    eprintln!("an arena of {} bytes", packed.summary.arena_bytes);
}
