//! A plugin for qemu's code translator (plugin API version 1, qemu 4.2 and later) that counts executed instructions by address
//! between two marks.
//!
//! Arguments, all needed: `begin=ADDR`, `end=ADDR` (hexadecimal, the first instructions of two marker functions),
//! `stack=LOW-HIGH` (hexadecimal, where stack writes are watched; `0-0` for none), `most=N` (intervals to report),
//! `out=FILE`. At every end mark it appends to FILE
//!
//! ```text
//! interval INDEX FIRST LOWEST    the first and the lowest address of the stack that was written, 0 for none
//! ADDRESS SIZE COUNT TEXT        for every instruction executed since then; TEXT is the disassembly
//! ```
//!
//! The interval begins after the begin mark's instruction was reached and holds it; the end mark's is not in it. qemu runs an
//! instruction that touches a device twice when it counts instructions, so readings of a timer count double here.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Mutex, PoisonError};

/// The plugin API that this is written for; qemu looks for the symbol.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

#[repr(C)]
struct Block {
    _private: [u8; 0],
}

#[repr(C)]
struct Instruction {
    _private: [u8; 0],
}

type TranslateCallback = extern "C" fn(id: u64, block: *mut Block);
type ExecuteCallback = extern "C" fn(cpu: c_uint, data: *mut c_void);
type MemoryCallback = extern "C" fn(cpu: c_uint, info: u32, address: u64, data: *mut c_void);

const NO_REGISTERS: c_int = 0;
const WRITES: c_int = 2;
const ADD_U64: c_int = 0;

// Declared from qemu's documentation of its plugin API; qemu itself provides them when it loads the plugin.
unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: TranslateCallback);
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    fn qemu_plugin_insn_disas(instruction: *const Instruction) -> *mut c_char;
    fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const u8;
    fn qemu_plugin_register_vcpu_insn_exec_inline(
        instruction: *mut Instruction,
        operation: c_int,
        target: *mut c_void,
        operand: u64,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: ExecuteCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: MemoryCallback,
        flags: c_int,
        access: c_int,
        data: *mut c_void,
    );
    fn free(pointer: *mut c_void);
}

/// All that the plugin knows; `None` before it is installed.
static STATE: Mutex<Option<State>> = Mutex::new(None);

struct State {
    begin: u64,
    end: u64,
    stack: (u64, u64),
    most: u64,
    out: BufWriter<File>,
    seen: BTreeMap<u64, Seen>,
    intervals: u64,
    inside: bool,
    /// First and lowest stack address that was written in this interval.
    written: Option<(u64, u64)>,
}

/// An instruction that was translated at least once.
struct Seen {
    size: usize,
    text: String,
    /// Leaked, because translated code adds to it until qemu ends.
    count: *mut u64,
    at_begin: u64,
}

// SAFETY: the counters are written by the one processor's thread, which is also the one that calls back.
unsafe impl Send for Seen {}

/// qemu's entry; 0 for success.
///
/// # Safety
/// Called by qemu with `argc` C strings at `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _: *const c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let arguments = (0..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: qemu passes as many strings as it says.
        unsafe { CStr::from_ptr(*argv.add(index)) }
            .to_string_lossy()
            .into_owned()
    });
    match State::from_arguments(arguments) {
        Ok(state) => {
            with_state(|slot| *slot = Some(state));
            // SAFETY: the identifier is the one that qemu gave.
            unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
            0
        }
        Err(reason) => {
            eprintln!("arenite-qemu-plugin: {reason}");
            1
        }
    }
}

impl State {
    fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for argument in arguments {
            let (key, value) = argument
                .split_once('=')
                .ok_or(format!("`{argument}` is not KEY=VALUE"))?;
            values.insert(key.to_owned(), value.to_owned());
        }
        let text = |key: &str| values.get(key).cloned().ok_or(format!("`{key}=` is missing"));
        let hexadecimal = |text: &str| {
            u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(|error| format!("`{text}`: {error}"))
        };
        let stack = text("stack")?;
        let (low, high) = stack.split_once('-').ok_or(format!("stack={stack} is not LOW-HIGH"))?;
        let out = text("out")?;
        Ok(Self {
            begin: hexadecimal(&text("begin")?)?,
            end: hexadecimal(&text("end")?)?,
            stack: (hexadecimal(low)?, hexadecimal(high)?),
            most: text("most")?.parse().map_err(|error| format!("most: {error}"))?,
            out: BufWriter::new(File::create(&out).map_err(|error| format!("{out}: {error}"))?),
            seen: BTreeMap::new(),
            intervals: 0,
            inside: false,
            written: None,
        })
    }

    fn begin(&mut self) {
        for seen in self.seen.values_mut() {
            seen.at_begin = seen.executed();
        }
        self.inside = true;
        self.written = None;
    }

    fn end(&mut self) {
        if !self.inside || self.intervals >= self.most {
            return;
        }
        self.inside = false;
        if let Err(error) = self.write() {
            eprintln!("arenite-qemu-plugin: {error}");
        }
        self.intervals += 1;
    }

    fn write(&mut self) -> std::io::Result<()> {
        let (first, lowest) = self.written.unwrap_or_default();
        writeln!(self.out, "interval {} {first:x} {lowest:x}", self.intervals)?;
        for (address, seen) in &self.seen {
            let count = seen.executed() - seen.at_begin;
            if count > 0 {
                writeln!(self.out, "{address:x} {} {count} {}", seen.size, seen.text)?;
            }
        }
        self.out.flush()
    }
}

impl Seen {
    fn executed(&self) -> u64 {
        // SAFETY: leaked when the instruction was first seen; only this thread's translated code writes it.
        unsafe { self.count.read_volatile() }
    }
}

extern "C" fn translated(_: u64, block: *mut Block) {
    with_state(|state| {
        let Some(state) = state else { return };
        // SAFETY: the block is valid during this call, and so are its instructions.
        let count = unsafe { qemu_plugin_tb_n_insns(block) };
        for index in 0..count {
            // SAFETY: as above.
            unsafe { watch(state, qemu_plugin_tb_get_insn(block, index)) };
        }
    });
}

/// # Safety
/// `instruction` is one of the block that is being translated.
unsafe fn watch(state: &mut State, instruction: *mut Instruction) {
    // SAFETY: as the caller promises; qemu copies what it keeps.
    unsafe {
        let address = qemu_plugin_insn_vaddr(instruction);
        // The marks are called first and counted after, so that an interval holds the begin mark and not the end mark.
        if address == state.begin {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, begun, NO_REGISTERS, std::ptr::null_mut());
        }
        if address == state.end {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, ended, NO_REGISTERS, std::ptr::null_mut());
        }
        let seen = state.seen.entry(address).or_insert_with(|| Seen {
            size: qemu_plugin_insn_size(instruction),
            text: describe(instruction),
            count: Box::into_raw(Box::new(0)),
            at_begin: 0,
        });
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, seen.count.cast(), 1);
        if state.stack.1 > 0 {
            qemu_plugin_register_vcpu_mem_cb(instruction, stored, NO_REGISTERS, WRITES, std::ptr::null_mut());
        }
    }
}

/// The disassembly, or the bytes of an instruction that qemu's disassembler does not know.
///
/// # Safety
/// As [`watch`].
unsafe fn describe(instruction: *const Instruction) -> String {
    // SAFETY: qemu returns a string that the caller frees, and as many bytes as the instruction has.
    unsafe {
        let text = qemu_plugin_insn_disas(instruction);
        if !text.is_null() {
            let owned = CStr::from_ptr(text).to_string_lossy().replace(['\t', '\n'], " ");
            free(text.cast());
            if !owned.trim().is_empty() {
                return owned.trim().to_owned();
            }
        }
        let size = qemu_plugin_insn_size(instruction);
        let data = std::slice::from_raw_parts(qemu_plugin_insn_data(instruction), size);
        data.iter()
            .fold("bytes ".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }
}

extern "C" fn begun(_: c_uint, _: *mut c_void) {
    with_state(|state| state.as_mut().map_or((), State::begin));
}

extern "C" fn ended(_: c_uint, _: *mut c_void) {
    with_state(|state| state.as_mut().map_or((), State::end));
}

extern "C" fn stored(_: c_uint, _: u32, address: u64, _: *mut c_void) {
    with_state(|state| {
        if let Some(state) = state
            && state.inside
            && (state.stack.0..state.stack.1).contains(&address)
        {
            let (first, lowest) = state.written.unwrap_or((address, address));
            state.written = Some((first, lowest.min(address)));
        }
    });
}

fn with_state(work: impl FnOnce(&mut Option<State>)) {
    work(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner));
}
