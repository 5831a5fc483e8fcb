//! Takes models over the board's first serial port, runs them, and keeps updates in two slots. The flash of the slots is memory here: qemu's boards have none
//! that a program can write.
#![no_std]
#![no_main]

use arenite::slots::{Layout, Slots, Unsigned};
use arenite_firmware::counter::Counter;
use arenite_firmware::memory::Areas;
use arenite_firmware::protocol::{Purpose, exit};
use arenite_firmware::uart::Uart;
use arenite_firmware::{Exchange, NAME};
use arenite_serial::{Device, InSlots, MemoryFlash, serve};

arenite_firmware::entry!(main);

/// Bytes of a slot.
const SLOT: u32 = 1 << 20;
/// Of the journal, two sectors.
const JOURNAL: u32 = 2 * MemoryFlash::SECTOR;
const FLASH: u32 = 2 * SLOT + JOURNAL;
/// For a model, its arena and its state.
const MEMORY: usize = 8 << 20;

fn main(_: &mut Exchange) -> i32 {
    // SAFETY: called once a program.
    let mut areas = unsafe { Areas::new((0, 0)) };
    let mut take = |bytes| areas.take(bytes, Purpose::Arena);
    let (Ok(flash), Ok(memory)) = (take(FLASH as usize), take(MEMORY)) else {
        return exit::REFUSED;
    };
    // SAFETY: each piece was just taken, and gives its bytes once.
    let (flash, memory) = unsafe { (flash.bytes(), memory.bytes()) };
    let layout = Layout {
        slots: [0..SLOT, SLOT..2 * SLOT],
        journal: 2 * SLOT..FLASH,
        trials: 3,
    };
    let Ok(slots) = Slots::open(MemoryFlash::erased(flash), layout, Unsigned) else {
        return exit::REFUSED;
    };
    let counter = Counter::start();
    let device = Device {
        name: NAME,
        memory,
        measure: &mut |work| counter.count(work),
    };
    serve(&mut Uart::start(), device, &mut InSlots::new(slots));
    exit::DONE
}
