//! Functions that a page calls. `cargo xtask playground` makes the page; `page/worker.js` is the other end.
//!
//! Everything passes through two buffers. The page writes what it has to say into the memory that `room` gives, calls, and reads
//! the answer at `answer_at`. An error is an answer as well; after a panic the page asks for `last_words` and starts anew.
#![cfg(target_arch = "wasm32")]

mod requests;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arenite_host::files::system;

/// Bytes of the page's request.
static ROOM: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// Bytes of the answer.
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// Message of a panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To be called first: from now on a panic leaves word.
#[unsafe(no_mangle)]
pub extern "C" fn start() {
    std::panic::set_hook(Box::new(|panic| *held(&PANIC) = panic.to_string()));
}

/// Memory for so many bytes, in place of what was there.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut room = held(&ROOM);
    *room = vec![0; bytes];
    room.as_mut_ptr()
}

/// Takes a file: its name is the first bytes, so many, and its content the rest.
#[unsafe(no_mangle)]
pub extern "C" fn give(name: usize) {
    let mut bytes = std::mem::take(&mut *held(&ROOM));
    let content = bytes.split_off(name.min(bytes.len()));
    system::give(Path::new(&*String::from_utf8_lossy(&bytes)), content);
}

/// Forgets all files.
#[unsafe(no_mangle)]
pub extern "C" fn forget() {
    system::forget();
}

/// Does what the JSON in the room asks for; 1 where the answer is what was asked for, 0 where it is what is wrong.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> u32 {
    let request = std::mem::take(&mut *held(&ROOM));
    let (good, answer) = match requests::answer(&request) {
        Ok(answer) => (1, answer),
        Err(error) => (0, error.to_string().into_bytes()),
    };
    *held(&ANSWER) = answer;
    good
}

/// Puts what a panic said into the answer.
#[unsafe(no_mangle)]
pub extern "C" fn last_words() {
    *held(&ANSWER) = std::mem::take(&mut *held(&PANIC)).into_bytes();
}

/// Where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    held(&ANSWER).as_ptr()
}

/// The bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_bytes() -> usize {
    held(&ANSWER).len()
}
