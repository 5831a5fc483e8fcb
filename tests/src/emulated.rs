//! A board whose serial port is a pipe.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use arenite_host::board::{Board, Firmware, find_program};

/// An emulator, which ends with its test.
pub struct Emulated {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Emulated {
    /// Starts a program on its board, in a folder for what it writes.
    ///
    /// # Panics
    /// Where the emulator does not start.
    pub fn start(board: &Board, firmware: &Firmware, folder: &Path) -> Self {
        let mut child = Command::new(find_program(board.qemu).expect("it is installed"))
            .args(board.machine)
            .args(["-display", "none", "-serial", "stdio", "-monitor", "none"])
            .args(["-icount", &format!("shift={},sleep=off", board.icount_shift)])
            .args(["-semihosting-config", "enable=on,target=native"])
            .arg("-kernel")
            .arg(firmware.path())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (to, from) = (
            child.stdin.take().expect("a pipe"),
            child.stdout.take().expect("a pipe"),
        );
        Self { child, to, from }
    }

    /// Sends bytes to the board's port, and waits for so many back.
    ///
    /// # Panics
    /// Where the board takes or sends no more.
    pub fn asked(&mut self, bytes: &[u8], answer: usize) -> Vec<u8> {
        self.to.write_all(bytes).expect("it takes bytes");
        self.to.flush().expect("it takes bytes");
        let mut read = vec![0; answer];
        self.from.read_exact(&mut read).expect("an answer");
        read
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
