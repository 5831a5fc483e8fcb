//! The classifier in a loop of one's own, on a RISC-V core without compare-and-swap: a step, then whatever else there is to do.
#![no_std]
#![no_main]

use core::pin::pin;
use core::task::Poll;

use arenite_tasks::{Qemu, classify, end};
use embassy_futures::poll_once;
use riscv as _;
use semihosting as _;

#[riscv_rt::entry]
fn main() -> ! {
    let mut board = Qemu::default();
    let mut task = pin!(classify(&mut board));
    let mut turns = 0;
    loop {
        match poll_once(task.as_mut()) {
            Poll::Ready(result) => end(result, turns),
            // Here the rest of the program has its turn: a watchdog, a port.
            Poll::Pending => turns += 1,
        }
    }
}
