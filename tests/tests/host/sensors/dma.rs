//! The double buffer between a DMA and a program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use arenite_sensors::{DoubleBuffer, Frames, Samples, SamplesError};

#[test]
fn blocks_come_in_order_and_once() {
    static BUFFER: DoubleBuffer<4> = DoubleBuffer::new();
    let mut reader = BUFFER.reader();
    let mut block = [0; 4];
    assert_eq!(reader.poll(&mut block), Ok(false));
    for at in 0..5 {
        BUFFER.fill(&[at; 4]);
        assert_eq!(reader.poll(&mut block), Ok(true));
        assert_eq!(block, [at; 4]);
        assert_eq!(reader.poll(&mut block), Ok(false));
    }
}

/// As hardware does: it writes the samples by their address, in a circle, and an interrupt follows each half.
#[test]
fn a_dma_writes_by_the_address() {
    static BUFFER: DoubleBuffer<3> = DoubleBuffer::new();
    let address = BUFFER.address();
    let mut reader = BUFFER.reader();
    for (half, samples) in [[1, 2, 3], [4, 5, 6], [7, 8, 9]].into_iter().enumerate() {
        for (at, sample) in samples.into_iter().enumerate() {
            // SAFETY: six samples of a static whose elements are atomics.
            unsafe { address.add(3 * (half % 2) + at).write_volatile(sample) };
        }
        BUFFER.half_done(3);
        let mut block = [0; 3];
        assert_eq!(reader.poll(&mut block), Ok(true));
        assert_eq!(block, samples);
    }
}

#[test]
fn late_and_short_blocks_are_errors() {
    let buffer = DoubleBuffer::<4>::new();
    let mut reader = buffer.reader();
    let mut block = [0; 4];
    for lost in 1..6u32 {
        // `lost` blocks more than one: all but the newest are gone.
        (0..=lost as i16).for_each(|at| buffer.fill(&[at; 4]));
        assert_eq!(reader.poll(&mut block), Err(SamplesError::Late { lost: 4 * lost }));
        assert_eq!(reader.poll(&mut block), Ok(true));
        assert_eq!(block, [lost as i16; 4]);
    }
    buffer.fill(&[1, 2]);
    assert_eq!(
        reader.poll(&mut block),
        Err(SamplesError::Short { got: 2, expected: 4 })
    );
    assert_eq!(reader.poll(&mut block), Ok(false));
    buffer.fill(&[7; 4]);
    assert_eq!(
        reader.poll(&mut [0; 5]),
        Err(SamplesError::Short { got: 4, expected: 5 })
    );
    buffer.fill(&[8; 4]);
    assert_eq!(reader.poll(&mut block), Ok(true));
    assert_eq!(
        SamplesError::<std::convert::Infallible>::Late { lost: 4 }.to_string(),
        "4 samples or more were lost: take blocks more often, or longer ones"
    );
}

/// A DMA that is far too fast: what is taken is one half as it was written, whatever else was missed.
#[test]
fn no_block_is_of_two_halves() {
    static BUFFER: DoubleBuffer<512> = DoubleBuffer::new();
    static ENDED: AtomicBool = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..200_000u32 {
                BUFFER.fill(&[at as i16; 512]);
                if at % 64 == 0 {
                    thread::yield_now();
                }
            }
            ENDED.store(true, Ordering::Release);
        });
        let mut reader = BUFFER.reader();
        let (mut taken, mut late) = (0, 0);
        let mut block = [0; 512];
        while !ENDED.load(Ordering::Acquire) {
            match reader.poll(&mut block) {
                Ok(true) => {
                    assert!(block.iter().all(|sample| *sample == block[0]), "{block:?}");
                    taken += 1;
                }
                Ok(false) => {}
                Err(SamplesError::Late { lost }) => {
                    assert!(lost > 0);
                    late += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        println!("{taken} blocks taken, {late} times late");
        assert!(late > 0);
    });
}

#[test]
fn frames_overlap_by_what_a_hop_leaves() {
    let mut frames = Frames::<6, 4, 2>::new();
    let mut found = Vec::new();
    for at in (0..14).step_by(2) {
        found.extend(frames.push(&[at, at + 1]).copied());
    }
    assert_eq!(found, [[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9], [8, 9, 10, 11, 12, 13]]);
    // Behind a gap a frame begins anew.
    assert_eq!(frames.push(&[90, 91]), None);
    frames.restart();
    assert_eq!(frames.push(&[20, 21]), None);
    assert_eq!(frames.push(&[22, 23]), None);
    assert_eq!(frames.push(&[24, 25]), Some(&[20, 21, 22, 23, 24, 25]));
}
