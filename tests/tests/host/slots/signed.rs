//! With keys, only what they signed is taken, and only with a higher counter.

use arenite::slots::{Signed, SlotError, Slots};
use arenite::{LoadError, Target, TrustedKey, VerifyError};
use arenite_host::sign::{self, Signer};
use ed25519_dalek::SigningKey;

use crate::slots::flash::{Cut, Mock};
use crate::slots::{LAYOUT, NEW, OLD, SECTOR, TRIALS, factory, model, used, write};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn trusted(seed: u8) -> TrustedKey {
    let public = key(seed).verifying_key();
    (sign::key_id(&public), public.to_bytes())
}

fn signed(target: Target, seed: u8, counter: u64) -> Vec<u8> {
    model(target, 2, Some(Signer::new(key(seed), counter)))
}

fn open<'f, 'k, const W: usize>(
    flash: &'f mut Mock<W, SECTOR>,
    keys: &'k [TrustedKey],
) -> Slots<&'f mut Mock<W, SECTOR>, Signed<'k>> {
    flash.power(None);
    Slots::open(flash, LAYOUT, Signed(keys)).expect("power")
}

/// The debug output of a refusal that signed slots alone have.
pub(crate) fn refused() -> String {
    let keys = [trusted(1)];
    let mut flash = factory::<8>(&signed(Target::Portable, 1, 5));
    let error = write(&mut open(&mut flash, &keys), &signed(Target::CortexM4, 2, 9)).expect_err("another key");
    format!("{error:?}")
}

#[test]
fn only_signed_files_of_a_higher_counter_are_taken() {
    let keys = [trusted(1), trusted(3)];
    let mut flash = factory::<8>(&signed(Target::Portable, 1, 5));
    let mut slots = open(&mut flash, &keys);
    assert_eq!(used(&slots), OLD);
    let at_least = 6;
    let unbelieved = |error| Err(SlotError::Verify(error));
    // No record says so yet: the counter is that of the model in use.
    for found in [0, 5] {
        let old = signed(Target::CortexM4, 1, found);
        assert_eq!(
            write(&mut slots, &old),
            unbelieved(VerifyError::OldCounter { found, at_least })
        );
    }
    let key = trusted(2).0;
    assert_eq!(
        write(&mut slots, &signed(Target::CortexM4, 2, 9)),
        unbelieved(VerifyError::UnknownKey { key })
    );
    assert_eq!(
        write(&mut slots, &model(Target::CortexM4, 2, None)),
        unbelieved(VerifyError::NotSigned)
    );
    let mut changed = signed(Target::CortexM4, 1, 9);
    changed[1000] ^= 4;
    let key = trusted(1).0;
    assert_eq!(write(&mut slots, &changed), unbelieved(VerifyError::Signature { key }));
    assert_eq!(used(&slots), OLD);

    assert_eq!(write(&mut slots, &signed(Target::CortexM4, 3, 9)), Ok(2));
    slots.start().expect("started");
    assert_eq!((slots.on_trial(), used(&slots)), (true, NEW.into()));
    slots.confirm().expect("confirmed");
    // The confirmed counter is kept over starts, and what is no higher is refused.
    let mut slots = open(&mut flash, &keys);
    let at_least = 10;
    for found in [5, 9] {
        let old = signed(Target::Portable, 1, found);
        assert_eq!(
            write(&mut slots, &old),
            unbelieved(VerifyError::OldCounter { found, at_least })
        );
    }
    assert_eq!(write(&mut slots, &signed(Target::Portable, 1, 10)), Ok(2));
    assert_eq!(used(&open(&mut flash, &keys)), OLD);
}

#[test]
fn a_trial_that_fails_raises_no_counter() {
    let keys = [trusted(1)];
    let mut flash = factory::<8>(&signed(Target::Portable, 1, 5));
    let mut slots = open(&mut flash, &keys);
    assert_eq!(write(&mut slots, &signed(Target::CortexM4, 1, 70)), Ok(2));
    for _ in 0..TRIALS {
        slots.start().expect("started");
        assert_eq!(used(&slots), NEW);
    }
    slots.start().expect("started");
    assert_eq!((slots.on_trial(), used(&slots)), (false, OLD.into()));
    // Counter 6 would have been too old, had the trial counted.
    assert_eq!(write(&mut slots, &signed(Target::CortexM4, 1, 6)), Ok(2));
}

/// A file that is put into a slot by another way is not started, signed slots or not.
#[test]
fn what_lies_in_a_slot_is_believed_at_no_start() {
    let keys = [trusted(1)];
    let mut flash = factory::<8>(&signed(Target::Portable, 2, 5));
    assert_eq!(open(&mut flash, &keys).model().err(), Some(SlotError::Empty));
    let mut flash = factory::<8>(&model(Target::Portable, 2, None));
    assert_eq!(open(&mut flash, &keys).active(), None);
    // Nor is a signed file taken for a model by slots that ask for no signature.
    let mut flash = factory::<8>(&signed(Target::Portable, 1, 5));
    let mut slots = crate::slots::open(&mut flash);
    assert_eq!(slots.active(), None);
    let refused = write(&mut slots, &signed(Target::Portable, 1, 5));
    assert_eq!(refused, Err(SlotError::Load(LoadError::NotABlob)));
}

/// A record that is half written counts for nothing, its counter least of all: it would keep every later update out.
#[test]
fn a_power_cut_leaves_the_counter() {
    let keys = [trusted(1)];
    let mut written = factory::<4>(&signed(Target::Portable, 1, 5));
    assert_eq!(
        write(&mut open(&mut written, &keys), &signed(Target::CortexM4, 1, 8)),
        Ok(2)
    );
    let (next, older) = (signed(Target::Portable, 1, 9), signed(Target::Portable, 1, 5));
    let mut cuts = 0;
    for at in 0.. {
        for cut in [Cut::Before, Cut::Within(0x0123_4567_89AB_CDEF)] {
            let mut flash = written.clone();
            flash.power(Some((at, cut)));
            let confirmed = Slots::open(&mut flash, LAYOUT, Signed(&keys)).and_then(|mut slots| slots.confirm());
            if !flash.is_dead() {
                assert_eq!(confirmed, Ok(()));
                // Two records of eight words each.
                assert_eq!(cuts, 2 * 16);
                return;
            }
            cuts += 1;
            let mut slots = open(&mut flash, &keys);
            slots.confirm().expect("confirmed");
            assert_eq!(used(&slots), NEW);
            let (found, at_least) = (5, 9);
            let refused = VerifyError::OldCounter { found, at_least };
            assert_eq!(write(&mut slots, &older), Err(SlotError::Verify(refused)));
            assert_eq!(write(&mut slots, &next), Ok(2), "{at}, {cut:?}");
        }
    }
}
