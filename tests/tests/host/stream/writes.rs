//! Writing an SPI NOR flash, over a mock that does what chips do: it writes nothing that was not permitted before, goes on at the start of a page behind its
//! end, clears bits and never sets them, and is busy for a while.

use std::cell::RefCell;
use std::rc::Rc;

use arenite::Target;
use arenite::slots::{Layout, MappedFlash, SlotError, Slots, Unsigned};
use arenite_host::model::Aligned;
use arenite_host::pack::{Options, pack};
use arenite_stream::{Chip, NorError, NorFlash, Shadow};
use arenite_tests::digits_options;
use arenite_tests::variants::unprovoked;
use embedded_hal::spi::{ErrorKind as BusError, ErrorType, Operation, SpiDevice};
use embedded_storage::nor_flash::{NorFlash as _, NorFlashError, NorFlashErrorKind, ReadNorFlash as _};

/// Winbond's W25Q128, which has the most memory that three bytes of an address reach.
const SMALL: Chip = Chip {
    id: [0xef, 0x40, 0x18],
    bytes: 16 << 20,
    polls: 20,
};
/// ISSI's IS25WP256.
const LARGE: Chip = Chip {
    id: [0x9d, 0x70, 0x19],
    bytes: 32 << 20,
    polls: 20,
};
/// Where the tests write: in a large chip beyond what three bytes reach.
const fn base(chip: Chip) -> u32 {
    if chip.bytes > SMALL.bytes { 17 << 20 } else { 1 << 20 }
}
/// Bytes of memory that the mock has from there on.
const BYTES: usize = 0x2_0000;
const SECTOR: u32 = 4096;
/// Answers "busy" that a write or an erase takes.
const WORK: u32 = 7;

#[derive(Debug)]
struct Mock {
    chip: Chip,
    memory: Vec<u8>,
    enabled: bool,
    busy: u32,
    /// Whether it stays busy from the next change on.
    hangs: bool,
    /// Whether it does not let itself be written at all.
    locked: bool,
    /// A sector of which it says that it writes and erases it, and does not.
    protected: Option<u32>,
    transactions: usize,
    fails: Option<usize>,
    /// Write and erase commands that it did.
    writes: usize,
    erases: usize,
}

#[derive(Debug, Clone)]
struct Bus(Rc<RefCell<Mock>>);

impl ErrorType for Bus {
    type Error = BusError;
}

impl SpiDevice for Bus {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), BusError> {
        let mut mock = self.0.borrow_mut();
        mock.transactions += 1;
        if mock.fails == Some(mock.transactions - 1) {
            return Err(BusError::ModeFault);
        }
        match operations {
            [Operation::Write(command), Operation::Read(answer)] => mock.answer(command, answer),
            [Operation::Write([0x06])] => {
                assert_eq!(mock.busy, 0, "it takes no command while it is busy");
                mock.enabled = !mock.locked;
            }
            [Operation::Write(command), Operation::Write(bytes)] => mock.change(command, bytes),
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}

impl Mock {
    /// The place of an address, which has as many bytes as the chip takes, behind the command that it has for them.
    fn place(&self, command: &[u8], [near, far]: [u8; 2]) -> usize {
        let [name, address @ ..] = command else {
            panic!("no command");
        };
        let large = self.chip.bytes > 1 << 24;
        assert_eq!((*name, address.len()), if large { (far, 4) } else { (near, 3) });
        address.iter().fold(0, |at, byte| at << 8 | usize::from(*byte)) - base(self.chip) as usize
    }

    fn answer(&mut self, command: &[u8], answer: &mut [u8]) {
        match command {
            [0x9f] => answer.copy_from_slice(&self.chip.id),
            [0x05] => {
                answer[0] = u8::from(self.busy > 0) | u8::from(self.enabled) << 1;
                self.busy = self.busy.saturating_sub(u32::from(self.busy != u32::MAX));
                // A change that is done permits no further one.
                self.enabled &= self.busy == 0;
            }
            _ => {
                assert_eq!(self.busy, 0, "it reads nothing while it is busy");
                let at = self.place(command, [0x03, 0x13]);
                answer.copy_from_slice(&self.memory[at..at + answer.len()]);
            }
        }
    }

    fn change(&mut self, command: &[u8], bytes: &[u8]) {
        assert!(self.busy == 0 && self.enabled, "a change that is not permitted");
        self.enabled = false;
        self.busy = if self.hangs { u32::MAX } else { WORK };
        let erases = matches!(command, [0x20 | 0x21, ..]);
        let at = self.place(command, if erases { [0x20, 0x21] } else { [0x02, 0x12] });
        if self.protected == Some(at as u32 / SECTOR) {
            return;
        }
        if erases {
            assert!(at.is_multiple_of(SECTOR as usize) && bytes.is_empty());
            self.memory[at..at + SECTOR as usize].fill(0xff);
            self.erases += 1;
        } else {
            assert!(!bytes.is_empty() && bytes.len() <= 256);
            for (index, byte) in bytes.iter().enumerate() {
                self.memory[at - at % 256 + (at + index) % 256] &= byte;
            }
            self.writes += 1;
        }
    }
}

/// A chip full of zeros, which nothing can be written to before it is erased.
fn mock(chip: Chip) -> Bus {
    Bus(Rc::new(RefCell::new(Mock {
        chip,
        memory: vec![0; BYTES],
        enabled: false,
        busy: 0,
        hangs: false,
        locked: false,
        protected: None,
        transactions: 0,
        fails: None,
        writes: 0,
        erases: 0,
    })))
}

fn opened(bus: &Bus) -> NorFlash<Bus> {
    let chip = bus.0.borrow().chip;
    NorFlash::open(bus.clone(), chip).expect("it is the chip")
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 29 + at / 11) as u8).collect()
}

#[test]
fn writes_are_split_at_pages_and_erases_are_of_sectors() {
    for chip in [SMALL, LARGE] {
        let (bus, start) = (mock(chip), base(chip));
        let mut flash = opened(&bus);
        assert_eq!(flash.capacity(), chip.bytes as usize);
        flash.erase(start + SECTOR, start + 3 * SECTOR).expect("whole sectors");
        flash.erase(start, start).expect("nothing");
        assert_eq!(bus.0.borrow().erases, 2);
        let mut expected = vec![0; BYTES];
        expected[SECTOR as usize..3 * SECTOR as usize].fill(0xff);
        assert_eq!(bus.0.borrow().memory, expected);
        // From within a page, over borders of pages, to within one, and what begins or ends at one.
        let mut at = SECTOR + 200;
        for (count, pages) in [
            (0, 0),
            (1, 1),
            (55, 1),
            (256, 1),
            (257, 2),
            (255, 1),
            (600, 3),
            (1000, 5),
            (424, 2),
        ] {
            let before = bus.0.borrow().writes;
            flash.write(start + at, &bytes(count)).expect("erased");
            assert_eq!(bus.0.borrow().writes - before, pages, "{count} bytes at {at}");
            expected[at as usize..][..count].copy_from_slice(&bytes(count));
            at += count as u32;
        }
        assert_eq!(bus.0.borrow().memory, expected);
        let mut found = vec![0; 2848];
        flash.read(start + SECTOR + 200, &mut found).expect("within");
        assert_eq!(found, expected[SECTOR as usize + 200..][..2848]);
    }
}

#[test]
fn every_way_to_fail_is_told() {
    type Failure = NorError<BusError>;
    let mut provoked = Vec::new();
    let mut expect = |found: Result<(), Failure>, error: Failure, kind: NorFlashErrorKind| {
        assert_eq!(found, Err(error));
        assert_eq!(error.kind(), kind, "{error}");
        provoked.push(format!("{error:?}"));
    };
    use NorFlashErrorKind::{NotAligned, Other, OutOfBounds};
    for chip in [SMALL, LARGE] {
        let (bus, start, end) = (mock(chip), base(chip), chip.bytes);
        let mut flash = opened(&bus);
        let set = |change: fn(&mut Mock)| change(&mut bus.0.borrow_mut());

        // Nothing of these reaches the chip.
        let before = bus.0.borrow().transactions;
        for (from, to, offset) in [
            (1, SECTOR, 1),
            (0, SECTOR - 1, SECTOR - 1),
            (SECTOR, SECTOR + 256, SECTOR + 256),
        ] {
            let unaligned = NorError::Unaligned { offset: start + offset };
            expect(flash.erase(start + from, start + to), unaligned, NotAligned);
        }
        let beyond = |offset| NorError::Beyond { offset, bytes: end };
        expect(flash.erase(end, end + SECTOR), beyond(end), OutOfBounds);
        expect(flash.erase(SECTOR, 0), beyond(SECTOR), OutOfBounds);
        expect(flash.erase(0, u32::MAX), beyond(0), OutOfBounds);
        expect(flash.write(end - 3, &[0; 4]), beyond(end - 3), OutOfBounds);
        expect(flash.write(u32::MAX, &[0; 2]), beyond(u32::MAX), OutOfBounds);
        expect(flash.read(end - 3, &mut [0; 4]), beyond(end - 3), OutOfBounds);
        assert_eq!(bus.0.borrow().transactions, before);
        assert_eq!(flash.write(end, &[]), Ok(()));

        // Bytes that are not erased take no others.
        let not_written = |offset| NorError::NotWritten { offset: start + offset };
        expect(flash.write(start + 70, &[0, 0, 1]), not_written(72), Other);
        flash.erase(start, start + SECTOR).expect("a sector");
        bus.0.borrow_mut().protected = Some(0);
        expect(flash.write(start + 300, &bytes(400)), not_written(300), Other);
        bus.0.borrow_mut().protected = None;
        flash.write(start + 4000, &[7]).expect("erased");
        bus.0.borrow_mut().protected = Some(0);
        expect(flash.erase(start, start + SECTOR), not_written(4000), Other);
        bus.0.borrow_mut().protected = None;

        set(|mock| mock.locked = true);
        expect(flash.write(start + 300, &[1]), NorError::Locked, Other);
        expect(flash.erase(start, start + SECTOR), NorError::Locked, Other);
        set(|mock| mock.locked = false);

        // Each transfer may fail, and the same is done once more.
        let work = |flash: &mut NorFlash<Bus>| {
            flash.erase(start, start + SECTOR)?;
            flash.write(start + 250, &bytes(300))
        };
        let mut failures = 0;
        loop {
            (bus.0.borrow_mut().transactions, bus.0.borrow_mut().fails) = (0, Some(failures));
            match work(&mut flash) {
                Ok(()) => break,
                failed => expect(failed, NorError::Bus(BusError::ModeFault), Other),
            }
            failures += 1;
            // Its power stays, and it ends what it began.
            set(|mock| (mock.busy, mock.fails) = (0, None));
        }
        set(|mock| mock.fails = None);
        assert!(failures > 100, "{failures}");
        assert_eq!(bus.0.borrow().memory[250..550], bytes(300));

        // Busy for ever: a write, an erase, and a chip that is opened in the midst of one.
        set(|mock| mock.hangs = true);
        expect(flash.write(start + 600, &[1]), NorError::Busy, Other);
        expect(flash.write(start + 600, &[1]), NorError::Busy, Other);
        set(|mock| mock.busy = 0);
        expect(flash.erase(start, start + SECTOR), NorError::Busy, Other);
        let again = NorFlash::open(bus.clone(), chip).map(|_| ());
        expect(again, NorError::Busy, Other);
        set(|mock| (mock.busy, mock.hangs) = (WORK, false));
        let mut flash = opened(&bus);
        flash.erase(start, start + SECTOR).expect("it is done");

        let other = Chip { id: [1, 2, 3], ..chip };
        let wrong = NorFlash::open(bus.clone(), other).map(|_| ());
        expect(wrong, NorError::WrongChip { found: chip.id }, Other);
    }
    assert_eq!(
        unprovoked("firmware/stream/src/nor.rs", "NorError<E>", provoked),
        [""; 0]
    );
}

/// Bytes of a slot.
const SLOT: u32 = 0x4000;

fn layout(start: u32) -> Layout {
    Layout {
        slots: [start..start + SLOT, start + SLOT..start + 2 * SLOT],
        journal: start + 2 * SLOT..start + 2 * SLOT + 2 * SECTOR,
        trials: 3,
    }
}

type Kept<'c> = Slots<Shadow<'c, NorFlash<Bus>>>;

/// A start of a program, whose memory has room for a copy of the slots.
fn start_of<'c>(bus: &Bus, copy: &'c mut [u8]) -> Result<Kept<'c>, NorError<BusError>> {
    let start = base(bus.0.borrow().chip);
    let shadow = Shadow::open(opened(bus), start, copy)?;
    Ok(Slots::open(shadow, layout(start), Unsigned).expect("a layout of this flash"))
}

/// A network with a self-test of two runs.
fn model(target: Target) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (samples, output) = (folder.path().join("samples.npy"), folder.path().join("model.bin"));
    let array = ndarray::Array::from_shape_fn((2, 1, 1, 8, 8), |(run, _, _, y, x)| {
        ((3 * (8 * y + x) + run) % 17) as f32
    });
    ndarray_npy::write_npy(&samples, &array).expect("written");
    let options = Options {
        target,
        self_test: Some(samples),
        ..digits_options("mlp", &output)
    };
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    std::fs::read(&output).expect("a model")
}

/// Slots in a flash that is no memory: what they check and run is what the flash gave back.
#[test]
fn slots_work_in_a_copy_of_what_the_flash_holds() {
    let (old, new) = (model(Target::Portable), model(Target::CortexM4));
    for chip in [SMALL, LARGE] {
        let (bus, start) = (mock(chip), base(chip));
        let mut copy = Aligned::new(2 * SLOT as usize);
        let target = |slots: &Kept<'_>| {
            let model = slots.model().expect("a model");
            assert_eq!(model.self_test(Aligned::new(4096).bytes()), Ok(2));
            model.target_name().to_owned()
        };
        let update = |slots: &mut Kept<'_>, file: &[u8]| {
            let mut update = slots.begin(file.len() as u32)?;
            file.chunks(777).try_for_each(|piece| slots.write(&mut update, piece))?;
            slots.finish(update, Aligned::new(4096).bytes(), &mut [])
        };
        bus.0.borrow_mut().memory.fill(0xff);
        bus.0.borrow_mut().memory[..old.len()].copy_from_slice(&old);
        {
            let mut slots = start_of(&bus, copy.bytes()).expect("a bus");
            assert_eq!((slots.counter(), target(&slots).as_str()), (Some(0), "portable"));
            let before = bus.0.borrow().writes;
            assert_eq!(update(&mut slots, &new), Ok(2));
            // A page at a time, and one for the record.
            assert_eq!(bus.0.borrow().writes - before, new.len().div_ceil(256) + 1);
            slots.start().expect("started");
            slots.confirm().expect("confirmed");
            assert_eq!((slots.active(), target(&slots).as_str()), (Some(1), "cortex-m4"));
            // A chip that does not take what it is given: nothing is switched.
            bus.0.borrow_mut().protected = Some(1);
            let other = SlotError::Flash(NorFlashErrorKind::Other);
            assert_eq!(update(&mut slots, &old), Err(other));
            bus.0.borrow_mut().protected = None;
            assert_eq!((slots.active(), target(&slots).as_str()), (Some(1), "cortex-m4"));
        }
        let at = SLOT as usize;
        assert_eq!(bus.0.borrow().memory[at..at + new.len()], new);
        // Another start; the copy has what is in the flash now, and the other slot holds half of a model.
        let mut again = start_of(&bus, copy.bytes()).expect("a bus");
        assert_eq!((again.active(), target(&again).as_str()), (Some(1), "cortex-m4"));
        assert_eq!(update(&mut again, &old), Ok(2));
        let shadow = again.release();
        assert_eq!(shadow.mapped(start + 5, old.len() as u32 - 5), Some(&old[5..]));
        // Ranges that are not copied are not there as memory: before the range, behind it.
        assert_eq!(shadow.mapped(start - 1, 2), None);
        assert_eq!(shadow.mapped(start + 2 * SLOT - 1, 2), None);
        drop(shadow);
        // A bus that fails while the copy is read.
        bus.0.borrow_mut().transactions = 0;
        bus.0.borrow_mut().fails = Some(3);
        assert_eq!(
            start_of(&bus, copy.bytes()).map(|_| ()),
            Err(NorError::Bus(BusError::ModeFault))
        );
    }
}
