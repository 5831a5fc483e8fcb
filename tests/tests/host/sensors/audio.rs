//! From a microphone's DMA to a word: a detector of voices behind TensorFlow Lite Micro's front end, and the keyword model behind the cepstral one.

use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_host::model::ModelFile;
use arenite_sensors::{DoubleBuffer, Frames, Samples, SamplesError};
use arenite_tests::golden::{Archive, packed};
use arenite_tests::{oracle, shared, skip};

use crate::sensors::network::Network;

/// Samples of 10 ms, of a frame of the first front end, and features of one.
const BLOCK: usize = 160;
const FRAME: usize = 480;
const FEATURES: usize = 40;
/// Frames that the detector takes at once.
const FRAMES: usize = 3;

/// Samples between frames of the second front end.
const HOP: usize = 320;

/// The samples of a mono file of 16 bits.
fn clip(shared: &Path, name: &str) -> Vec<i16> {
    let path = shared.join(format!("data/models/audio/{name}_1000ms.wav"));
    let file = std::fs::read(path).expect("a clip");
    let at = file.windows(4).position(|tag| tag == b"data").expect("samples") + 8;
    let (pairs, _) = file[at..].as_chunks::<2>();
    pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
}

fn model(path: PathBuf, folder: &Path) -> ModelFile {
    packed(&path, folder, Target::Portable).unwrap_or_else(|error| panic!("{error}"))
}

/// The front end and the detector, fed by the blocks of a source.
struct Voices<'f> {
    frames: Frames<FRAME, BLOCK, BLOCK>,
    front_end: Network<'f>,
    detector: Network<'f>,
    features: Vec<i8>,
}

impl Voices<'_> {
    /// Returns the class that the detector finds behind this block, if it finds one.
    fn hear<S: Samples>(&mut self, source: &mut S) -> Result<Option<u8>, SamplesError<S::Error>> {
        let mut block = [0; BLOCK];
        if !source.poll(&mut block)? {
            return Ok(None);
        }
        let Some(frame) = self.frames.push(&block) else {
            return Ok(None);
        };
        self.features.extend(self.front_end.run::<i16, i8>(frame));
        if self.features.len() < FRAMES * FEATURES {
            return Ok(None);
        }
        let said: Vec<u8> = self.detector.run(&self.features);
        self.features.clear();
        Ok(said.first().copied())
    }

    /// Behind a gap all that was heard is forgotten.
    fn restart(&mut self) {
        self.frames.restart();
        self.front_end.reset();
        self.detector.reset();
        self.features.clear();
    }
}

#[test]
fn voices_are_heard_through_a_double_buffer_as_by_tensorflow_lite_micro() {
    const TEST: &str = "voices_are_heard_through_a_double_buffer_as_by_tensorflow_lite_micro";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let front_end = model(
        shared.join("data/frontend/tflm_audio_preprocessor_int8.tflite"),
        folder.path(),
    );
    let detector = model(shared.join("data/models/esphome_v2_vad.tflite"), folder.path());
    let mut archive = Archive::open(&shared.join("data/models/golden/esphome_v2_vad.npz"));
    let expected = archive.runs("out_seqreal_tflm_0").0.concat();

    let mut voices = Voices {
        frames: Frames::new(),
        front_end: Network::open(&front_end),
        detector: Network::open(&detector),
        features: Vec::new(),
    };
    let microphone = DoubleBuffer::<BLOCK>::new();
    let mut reader = microphone.reader();
    let samples = clip(&shared, "yes");
    // The program sleeps through two blocks, and later a transfer ends early: both are told, and it begins anew.
    for (blocks, length, error) in [
        (2, BLOCK, SamplesError::Late { lost: BLOCK as u32 }),
        (
            1,
            100,
            SamplesError::Short {
                got: 100,
                expected: BLOCK,
            },
        ),
    ] {
        for block in samples.chunks_exact(BLOCK).take(20) {
            microphone.fill(block);
            voices.hear(&mut reader).expect("in time");
        }
        samples
            .chunks_exact(length)
            .take(blocks)
            .for_each(|block| microphone.fill(block));
        assert_eq!(voices.hear(&mut reader), Err(error));
        voices.restart();
        reader = microphone.reader();
    }
    let mut heard = Vec::new();
    for block in samples.chunks_exact(BLOCK) {
        assert_eq!(voices.hear(&mut reader), Ok(None), "nothing new");
        microphone.fill(block);
        heard.extend(voices.hear(&mut reader).expect("in time"));
    }
    // The reference goes on with another clip.
    assert_eq!(heard.len(), 32);
    assert_eq!(heard, expected[..heard.len()]);
    assert!(heard.iter().any(|&voice| voice > 250) && heard.iter().any(|&voice| voice < 10));
    oracle::compared("TensorFlow Lite Micro", heard.len(), 32);
}

#[test]
fn words_are_heard_through_a_double_buffer() {
    const TEST: &str = "words_are_heard_through_a_double_buffer";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let traced = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/mfcc/mfcc.trace.json");
    let front_end = model(traced, folder.path());
    let keywords = model(shared.join("data/models/kws_ref_model.tflite"), folder.path());
    let input = keywords.load().expect("it loads").input(0).expect("an input");
    let stored = |real: &f32| -> i8 {
        let steps = (real / input.scale).round() as i32 + input.zero_point;
        steps.clamp(-128, 127) as i8
    };
    let (mut front_end, mut keywords) = (Network::open(&front_end), Network::open(&keywords));
    let microphone = DoubleBuffer::<HOP>::new();
    let mut reader = microphone.reader();
    // Answers of the reference; it hears `no` as another word.
    for (name, answer) in [("yes", 9), ("no", 1), ("noise", 11), ("silence", 10)] {
        let samples = clip(&shared, name);
        let largest = f32::from(*samples.iter().max().expect("samples"));
        // The first frame is complete with the second block.
        let mut padded = vec![0; HOP - (FRAME - HOP)];
        padded.extend(samples);
        let (mut spectrogram, mut block) = (Vec::new(), [0; HOP]);
        front_end.reset();
        for hop in padded.chunks_exact(HOP) {
            microphone.fill(hop);
            assert_eq!(reader.poll(&mut block), Ok(true));
            let scaled = block.map(|sample| f32::from(sample) / largest);
            let coefficients: Vec<f32> = front_end.run(&scaled);
            spectrogram.push(coefficients.iter().map(stored).collect::<Vec<i8>>());
        }
        let scores: Vec<i8> = keywords.run(&spectrogram[1..].concat());
        let heard = (0..scores.len()).max_by_key(|&word| scores[word]);
        assert_eq!(heard, Some(answer), "{name}");
    }
}
