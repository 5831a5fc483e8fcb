//! Power that fails at every single write and erase of an update, and what the next start finds.

use std::fs;
use std::path::Path;

use arenite::slots::{SlotError, Slots, Unsigned};

use crate::slots::flash::{Cut, Mock};
use crate::slots::{LAYOUT, NEW, OLD, SECTOR, TRIALS, factory, models, open, used, write};

/// Updates as a program does with a new file: up to the confirmed model.
fn update<const W: usize>(flash: &mut Mock<W, SECTOR>, file: &[u8]) -> Result<(), SlotError> {
    let mut slots = Slots::open(flash, LAYOUT, Unsigned)?;
    // The model on trial works.
    slots.confirm()?;
    write(&mut slots, file)?;
    slots.start()?;
    slots.confirm()
}

/// Gives up as a program does whose new model does not work: it is started on trial as often as it may be, and once more.
fn give_up<const W: usize>(flash: &mut Mock<W, SECTOR>, file: &[u8]) -> Result<(), SlotError> {
    let mut slots = Slots::open(flash, LAYOUT, Unsigned)?;
    slots.roll_back()?;
    write(&mut slots, file)?;
    (0..=TRIALS).try_for_each(|_| slots.start())
}

/// Counts of power cuts and their outcomes.
#[derive(Debug, Default)]
struct Counts {
    cuts: u64,
    /// After how many of them the model of before was used, and the new one.
    old: u64,
    new: u64,
}

/// Subject of the cuts: a flash, the work on it, the file for the work.
struct Case<const W: usize> {
    flash: Mock<W, SECTOR>,
    /// Whether the model in use is the one of the target [`OLD`]; then the file is the other one.
    old: bool,
    file: Vec<u8>,
    work: fn(&mut Mock<W, SECTOR>, &[u8]) -> Result<(), SlotError>,
    /// Whether the work confirms the new model.
    confirms: bool,
}

impl<const W: usize> Case<W> {
    /// A flash after `updates` updates, and the file for the next one.
    fn after(updates: usize, confirms: bool) -> Self {
        let (old, new) = models();
        let mut flash = factory::<W>(&old);
        for at in 0..updates {
            update(&mut flash, if at % 2 == 0 { &new } else { &old }).expect("an update");
        }
        let even = updates.is_multiple_of(2);
        assert_eq!(used(&open(&mut flash)), if even { OLD } else { NEW });
        Self {
            flash,
            old: even,
            file: if even { new } else { old },
            work: if confirms { update } else { give_up },
            confirms,
        }
    }

    /// Cuts the power of the work at each of its operations, before it and within it, and of the start that follows at each of its own. After each there is
    /// a model, and an update brings the new one.
    fn cut_everywhere(&self, counts: &mut Counts) {
        let new = if self.old { NEW } else { OLD };
        for at in 0.. {
            for cut in [Cut::Before, Cut::Within(0x9E37_79B9_7F4A_7C15)] {
                let mut flash = self.flash.clone();
                flash.power(Some((at, cut)));
                let result = (self.work)(&mut flash, &self.file);
                if !flash.is_dead() {
                    assert_eq!(result, Ok(()));
                    return;
                }
                assert!(result.is_err(), "no power, and nobody saw it");
                self.starts_again(&flash, counts);
                for second in 0.. {
                    let mut flash = flash.clone();
                    flash.power(Some((second, cut)));
                    // As a program without power: whatever comes of it.
                    let _ = Slots::open(&mut flash, LAYOUT, Unsigned);
                    if !flash.is_dead() {
                        break;
                    }
                    self.starts_again(&flash, counts);
                }
                flash.power(None);
                assert_eq!(update(&mut flash, &self.file), Ok(()), "{at}, {cut:?}");
                assert_eq!(used(&open(&mut flash)), new, "{at}, {cut:?}");
            }
        }
    }

    /// The power is back, on the flash as the cut left it.
    fn starts_again(&self, flash: &Mock<W, SECTOR>, counts: &mut Counts) {
        counts.cuts += 1;
        let mut flash = flash.clone();
        let slots = open(&mut flash);
        if (used(&slots) == OLD) == self.old {
            assert!(!slots.on_trial(), "the model of before has been confirmed");
            counts.old += 1;
        } else {
            assert!(slots.on_trial() || self.confirms, "nobody has confirmed it");
            counts.new += 1;
        }
    }
}

#[test]
fn there_is_a_model_after_every_power_cut() {
    let mut counts = Counts::default();
    // A half of the journal takes eight records, an update three: the halves are full at every place of one.
    for updates in 0..8 {
        for confirms in [true, false] {
            Case::<32>::after(updates, confirms).cut_everywhere(&mut counts);
        }
    }
    Case::<4>::after(2, true).cut_everywhere(&mut counts);
    println!("{counts:?}");
    assert_eq!(counts.cuts, counts.old + counts.new);
    assert!(counts.new > 10);
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/firmware.md");
    let text = fs::read_to_string(document).expect("docs/firmware.md");
    let stated = format!(
        "{},{:03} power cuts, 0 models lost",
        counts.cuts / 1000,
        counts.cuts % 1000
    );
    assert!(text.contains(&stated), "docs/firmware.md is to say: {stated}");
}
