//! A chip on an emulated I2C bus, through the traits that a driver takes: qemu's TMP105, whose temperature is set from here.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use arenite::Target;
use arenite_host::board::find_program;

use crate::tasks::{Program, built, packed};

const SENSOR: Program = Program {
    name: "sensor",
    features: "sensor",
    triple: "thumbv7em-none-eabihf",
    board: "mps2-an386",
    machine: &["-device", "tmp105,id=thermometer,bus=i2c,address=0x48"],
    target: Target::CortexM4,
};

/// Silence after which the program hangs: a line takes milliseconds.
const HANGS: Duration = Duration::from_secs(120);

/// qemu, ended with the test.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn next(lines: &Receiver<String>) -> String {
    lines.recv_timeout(HANGS).expect("a line of the program")
}

/// Asks qemu over its own protocol, and waits for the answer; events come in between.
fn ask(stream: &mut BufReader<UnixStream>, command: &str) {
    writeln!(stream.get_mut(), "{command}").expect("sent");
    let mut answer = String::new();
    while !answer.contains("\"return\"") {
        answer.clear();
        stream.read_line(&mut answer).expect("an answer");
        assert!(
            !answer.contains("\"error\"") && !answer.is_empty(),
            "{command}: {answer}"
        );
    }
}

#[test]
fn a_chip_on_an_emulated_bus_is_read() {
    let Some((file, board)) = built(&SENSOR, &[("ARENITE_MODEL", &packed(SENSOR.target))]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("qmp");
    let mut qemu = Command::new(find_program(board.qemu).expect("it is ready"));
    qemu.args(board.machine).args(SENSOR.machine);
    qemu.args(["-display", "none", "-serial", "none", "-monitor", "none", "-qmp"]);
    qemu.arg(format!("unix:{},server=on,wait=off", socket.display()));
    qemu.args(["-semihosting-config", "enable=on,target=native", "-kernel"]);
    let child = qemu.arg(file).stdout(Stdio::piped()).spawn().expect("qemu starts");
    let mut qemu = Qemu(child);
    let output = BufReader::new(qemu.0.stdout.take().expect("its output"));
    let (said, lines) = channel();
    thread::spawn(move || {
        output
            .lines()
            .map_while(Result::ok)
            .for_each(|line| _ = said.send(line));
    });

    // Nobody is at the accelerometer's address, and the thermometer's register 0 is no accelerometer's name.
    assert_eq!(
        next(&lines),
        "0x53: the bus to the accelerometer: NoAcknowledge(Address)"
    );
    assert_eq!(
        next(&lines),
        "0x48: a chip that calls itself 0x00, expected an ADXL345, 0xe5"
    );
    for line in ["limit 75500", "halves 0", "sixteenths 0"] {
        assert_eq!(next(&lines), line);
    }
    let mut stream = BufReader::new(UnixStream::connect(&socket).expect("qemu listens"));
    ask(&mut stream, r#"{"execute": "qmp_capabilities"}"#);
    // In thousandths; the chip has sixteenths, and rounds down.
    for (degrees, read) in [(23_625, 23_625), (-12_500, -12_500), (99_900, 99_875)] {
        let set = r#"{"execute": "qom-set", "arguments": {"path": "/machine/peripheral/thermometer", "property": "temperature", "value": "#;
        ask(&mut stream, &format!("{set}{degrees}}}}}"));
        assert_eq!(next(&lines), format!("now {read}"));
    }
    assert!(qemu.0.wait().expect("it ends").success());
}
