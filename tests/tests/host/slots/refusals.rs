//! Each error of slots, provoked; what was in use stays so.

use arenite::slots::{Layout, SlotError, Slots, Unsigned};
use arenite::{LoadError, SelfTestError, Target};
use arenite_host::model::Aligned;
use arenite_tests::variants::unprovoked;

use crate::slots::flash::{Cut, Mock};
use crate::slots::{LAYOUT, OLD, SECTOR, SLOT, factory, model, models, open, state, used, write};

/// Layouts that are none of a flash with sectors of 256 bytes.
fn layouts() -> [Layout; 9] {
    let sector = SECTOR as u32;
    let with = |slots, journal| Layout {
        slots,
        journal,
        ..LAYOUT
    };
    let [first, second] = LAYOUT.slots;
    [
        with([first.clone(), first.start..second.end], LAYOUT.journal),
        with([first.clone(), SLOT + 8..2 * SLOT], LAYOUT.journal),
        with([first.clone(), SLOT..2 * SLOT - 8], LAYOUT.journal),
        with([0..0, second.clone()], LAYOUT.journal),
        with([first.clone(), second.clone()], SLOT..SLOT + 2 * sector),
        with([first.clone(), second.clone()], 2 * SLOT..2 * SLOT + 3 * sector),
        with([first.clone(), second.clone()], 2 * SLOT..2 * SLOT + 1000 * sector),
        Layout { trials: 0, ..LAYOUT },
        Layout { trials: 255, ..LAYOUT },
    ]
}

#[test]
fn every_error_is_provoked() {
    let mut provoked = Vec::new();
    let mut expect = |found: Option<SlotError>, error: SlotError| {
        assert_eq!(found, Some(error), "{error}");
        provoked.push(format!("{error:?}"));
    };
    let (old, new) = models();
    let mut flash = factory::<8>(&old);
    for layout in layouts() {
        let refused = Slots::open(&mut flash, layout.clone(), Unsigned).err();
        assert_eq!(refused, Some(SlotError::Layout), "{layout:?}");
    }
    expect(
        Slots::open(&mut flash, layouts()[0].clone(), Unsigned).err(),
        SlotError::Layout,
    );

    let mut empty = Mock::<8, SECTOR>::erased(LAYOUT.journal.end as usize);
    let mut none = open(&mut empty);
    expect(none.model().err(), SlotError::Empty);
    expect(none.confirm().err(), SlotError::Empty);
    expect(none.roll_back().err(), SlotError::Empty);

    let mut slots = open(&mut flash);
    let (length, slot) = (SLOT + 1, SLOT);
    expect(slots.begin(length).err(), SlotError::TooLarge { length, slot });

    let mut first = slots.begin(100).expect("room");
    slots.write(&mut first, &[1; 60]).expect("room");
    let (stated, written) = (100, 101);
    expect(
        slots.write(&mut first, &[1; 41]).err(),
        SlotError::Length { stated, written },
    );
    let mut second = slots.begin(100).expect("room");
    expect(slots.write(&mut first, &[1; 40]).err(), SlotError::Stale);
    let untested = |_: &arenite::Model<'_>| Ok(());
    expect(slots.finish_after(first, untested).err(), SlotError::Stale);
    slots.write(&mut second, &[1; 99]).expect("room");
    let (stated, written) = (100, 99);
    expect(
        slots.finish_after(second, untested).err(),
        SlotError::Length { stated, written },
    );
    let third = slots.begin(0).expect("room");
    slots.start().expect("started");
    expect(slots.finish_after(third, untested).err(), SlotError::Stale);

    // The written bytes do not load, or do not pass.
    expect(write(&mut slots, &[7; 500]).err(), SlotError::Load(LoadError::NotABlob));
    let missing = model(Target::CortexM4, 0, None);
    expect(
        write(&mut slots, &missing).err(),
        SlotError::SelfTest(SelfTestError::Missing),
    );
    let mut damaged = new.clone();
    damaged[700] ^= 1;
    assert!(matches!(
        write(&mut slots, &damaged),
        Err(SlotError::Load(LoadError::Checksum { .. }))
    ));
    let output = SelfTestError::Output {
        run: 0,
        output: 0,
        expected: 1,
        found: 2,
    };
    let mut update = slots.begin(new.len() as u32).expect("room");
    slots.write(&mut update, &new).expect("written");
    let failed = slots.finish_after(update, |_| Err::<(), _>(SlotError::SelfTest(output)));
    expect(failed.err(), SlotError::SelfTest(output));
    assert_eq!(state(&slots), (Some(0), false, OLD.into()));

    assert_eq!(write(&mut slots, &new), Ok(3));
    slots.start().expect("started");
    expect(slots.begin(10).err(), SlotError::OnTrial);
    slots.roll_back().expect("rolled back");

    // A flash that fails at a piece and works again: what was held is not written as if nothing were.
    let mut update = slots.begin(100).expect("room");
    slots.write(&mut update, &[1; 41]).expect("room");
    slots.flash().power(Some((0, Cut::Before)));
    let kind = embedded_storage::nor_flash::NorFlashErrorKind::Other;
    expect(slots.write(&mut update, &[1; 50]).err(), SlotError::Flash(kind));
    slots.flash().power(None);
    expect(slots.write(&mut update, &[1; 9]).err(), SlotError::Stale);
    expect(slots.finish_after(update, untested).err(), SlotError::Stale);

    // No power, and a flash that wants other units.
    slots.flash().power(Some((0, Cut::Before)));
    expect(slots.begin(10).err(), SlotError::Flash(kind));
    assert_eq!(state(&open(&mut flash)), (Some(0), false, OLD.into()));

    provoked.push(crate::slots::signed::refused());
    assert_eq!(unprovoked("core/src/slots/error.rs", "SlotError", provoked), [""; 0]);
}

/// A self-test that finds a wrong output, by a file whose vectors were changed and sealed anew.
#[test]
fn a_model_that_computes_something_else_is_not_used() {
    let (old, mut new) = models();
    let at = arenite::Header::parse(&new).expect("a model").self_test;
    new[(at.offset + at.len) as usize - 1] ^= 0x40;
    arenite::blob::seal(&mut new);
    let mut flash = factory::<8>(&old);
    let mut slots = open(&mut flash);
    let refused = write(&mut slots, &new).expect_err("another output");
    assert!(
        matches!(refused, SlotError::SelfTest(SelfTestError::Output { .. })),
        "{refused}"
    );
    slots.start().expect("started");
    assert_eq!(used(&slots), OLD);
    // A file without vectors may be tested otherwise.
    let plain = model(Target::CortexM4, 0, None);
    let mut update = slots.begin(plain.len() as u32).expect("room");
    slots.write(&mut update, &plain).expect("written");
    let tested = slots.finish_after(update, |model| {
        let mut arena = Aligned::new(model.arena_bytes(0));
        let mut session = arenite::Session::new(*model, arena.bytes(), &mut [])
            .map_err(|error| SlotError::SelfTest(SelfTestError::Session(error)))?;
        session
            .set_values(0, &[0.5f32; 64])
            .map_err(|error| SlotError::SelfTest(SelfTestError::Run(error)))?;
        session
            .run()
            .map_err(|error| SlotError::SelfTest(SelfTestError::Run(error)))
    });
    assert_eq!(tested, Ok(()));
}
