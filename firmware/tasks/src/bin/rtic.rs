//! The classifier under RTIC: a software task of the lowest priority, with a timer's interrupt above it and a heartbeat beside it.
#![no_std]
#![no_main]

use semihosting as _;

#[rtic::app(device = arenite_tasks::mps2, peripherals = false, dispatchers = [GPIO2])]
mod app {
    use arenite_tasks::{Qemu, mps2};

    #[shared]
    struct Shared {
        beats: u32,
    }

    #[local]
    struct Local {
        board: Qemu,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        // Several in each step of the network.
        mps2::start_timer(4000);
        // Nothing else has spawned it.
        classify::spawn().unwrap();
        (Shared { beats: 0 }, Local { board: Qemu::default() })
    }

    #[task(binds = TIMER0, priority = 2)]
    fn tick(_: tick::Context) {
        mps2::clear_timer();
        // One that still waits for its turn is enough.
        let _ = beat::spawn();
    }

    /// Of the classifier's priority: it has a turn only where the classifier gives one.
    #[task(priority = 1, shared = [beats])]
    async fn beat(mut cx: beat::Context) {
        cx.shared.beats.lock(|beats| *beats += 1);
    }

    #[task(priority = 1, local = [board], shared = [beats])]
    async fn classify(mut cx: classify::Context) {
        let result = arenite_tasks::classify(cx.local.board).await;
        let beats = cx.shared.beats.lock(|beats| *beats);
        arenite_tasks::end(result, beats)
    }
}
