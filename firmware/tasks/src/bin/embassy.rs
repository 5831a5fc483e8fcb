//! The classifier under Embassy's executor, beside a task that waits for a time; the time is the board's timer's.
#![no_std]
#![no_main]

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Waker;

use arenite_tasks::mps2::{self, Interrupt, interrupt};
use arenite_tasks::{Qemu, classify, end};
use critical_section::Mutex;
use embassy_executor::Spawner;
use embassy_time::{Duration, Ticker};
use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;
use semihosting as _;

/// Counts the timer's interrupts; whom they wake stands in the queue.
struct Ticks {
    count: Mutex<Cell<u64>>,
    queue: Mutex<RefCell<Queue>>,
}

embassy_time_driver::time_driver_impl!(static TICKS: Ticks = Ticks {
    count: Mutex::new(Cell::new(0)),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

impl Driver for Ticks {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.count.borrow(cs).get())
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        // Every tick looks at the queue: there is no alarm to set.
        critical_section::with(|cs| self.queue.borrow_ref_mut(cs).schedule_wake(at, waker));
    }
}

#[interrupt]
fn TIMER0() {
    mps2::clear_timer();
    critical_section::with(|cs| {
        let now = TICKS.count.borrow(cs).get() + 1;
        TICKS.count.borrow(cs).set(now);
        // Wakes those whose time has come.
        TICKS.queue.borrow_ref_mut(cs).next_expiration(now);
    });
}

static BEATS: AtomicU32 = AtomicU32::new(0);

#[embassy_executor::task]
async fn beat() {
    let mut ticker = Ticker::every(Duration::from_millis(2));
    loop {
        ticker.next().await;
        BEATS.fetch_add(1, Ordering::Relaxed);
    }
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    mps2::start_timer(TICK_HZ as u32);
    // SAFETY: its handler is there, and nothing masks by priority.
    unsafe { cortex_m::peripheral::NVIC::unmask(Interrupt::TIMER0) };
    spawner.spawn(beat().unwrap());
    let result = classify(&mut Qemu::default()).await;
    end(result, BEATS.load(Ordering::Relaxed))
}
