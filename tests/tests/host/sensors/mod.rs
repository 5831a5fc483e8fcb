//! From a sensor to a result: sources of samples, their errors, and networks behind them. The buses and the DMA are mocks; in qemu, `tasks.rs`.

mod audio;
mod chip;
mod dma;
mod gestures;
mod network;
