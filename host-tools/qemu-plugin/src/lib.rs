//! A plugin for qemu's code translator (plugin API version 1, qemu 4.2 and later) that counts executed instructions by address
//! between two marks.
//!
//! Arguments, all needed but the last two: `begin=ADDR`, `end=ADDR` (hexadecimal, the first instructions of two marker functions),
//! `stack=LOW-HIGH` (hexadecimal, where stack writes are watched; `0-0` for none), `most=N` (intervals to report),
//! `out=FILE`, `flash=…` (a slow flash with caches, as `memory.rs` reads it), `wait=ADDR-ADDR` (hexadecimal, the first instructions of two marker functions
//! between which a core of several waits). At every end mark it appends to FILE
//!
//! ```text
//! interval INDEX FIRST LOWEST    the first and the lowest address of the stack that was written, 0 for none
//! ADDRESS SIZE COUNT SPLIT CROSSING BYTES TEXT   for every instruction executed since then
//! edge ADDRESS INSTRUCTIONS ADDRESS INSTRUCTIONS COUNT   for every two blocks that were executed one behind the other
//! flash JUMPS SEQUENTIAL DATA    how often the slow flash had to be read, where there is one
//! core INDEX WORKED WAITED       instructions of each core, those between the marks of waiting apart, where there are such
//! ```
//!
//! BYTES is the instruction as it lies in memory, TEXT its disassembly. SPLIT is how many accesses beside the first one its unaligned accesses take
//! on a bus that has them aligned (a word at an even address is two halfwords, at an odd one a byte, a halfword and a byte), CROSSING how many
//! of its accesses cross a multiple of eight bytes. `0 0` is the block before the first one.
//!
//! The interval begins after the begin mark's instruction was reached and holds it; the end mark's is not in it. qemu runs an
//! instruction that touches a device twice when it counts instructions, so readings of a timer count double here.

mod blocks;
mod memory;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Mutex, PoisonError};

use blocks::Blocks;
use memory::Flash;

/// The plugin API that this is written for; qemu looks for the symbol.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

#[repr(C)]
struct Translation {
    _private: [u8; 0],
}

#[repr(C)]
struct Instruction {
    _private: [u8; 0],
}

type TranslateCallback = extern "C" fn(id: u64, block: *mut Translation);
type ExecuteCallback = extern "C" fn(cpu: c_uint, data: *mut c_void);
type MemoryCallback = extern "C" fn(cpu: c_uint, info: u32, address: u64, data: *mut c_void);

const NO_REGISTERS: c_int = 0;
const READS_AND_WRITES: c_int = 3;
const ADD_U64: c_int = 0;

// Declared from qemu's documentation of its plugin API; qemu itself provides them when it loads the plugin.
unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: TranslateCallback);
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Translation,
        callback: ExecuteCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_vaddr(block: *const Translation) -> u64;
    fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    fn qemu_plugin_mem_is_store(info: u32) -> bool;
    fn qemu_plugin_tb_n_insns(block: *const Translation) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Translation, index: usize) -> *mut Instruction;
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
    blocks: Blocks,
    flash: Option<Flash>,
    wait: Option<(u64, u64)>,
    /// By index.
    cores: Vec<Core>,
    intervals: u64,
    inside: bool,
    /// First and lowest stack address that was written in this interval.
    written: Option<(u64, u64)>,
}

/// State of a core.
#[derive(Debug, Clone, Copy, Default)]
struct Core {
    waits: bool,
    /// Instructions of this interval, while it does not wait and while it does.
    counts: [u64; 2],
}

/// An instruction that was translated at least once.
struct Seen {
    size: usize,
    bytes: String,
    text: String,
    /// Leaked, because translated code adds to it until qemu ends.
    counts: *mut Counts,
    at_begin: Counts,
}

/// Counts of an instruction.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Counts {
    /// Executions; first, for translated code adds to it.
    executed: u64,
    /// Accesses on a bus beside the first one, for lack of alignment.
    split: u64,
    /// Accesses across a multiple of eight bytes.
    crossing: u64,
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
            blocks: Blocks::new(),
            flash: match values.get("flash") {
                Some(text) => Some(memory::parse(text).ok_or(format!("flash={text} is none"))?),
                None => None,
            },
            wait: match values.get("wait") {
                Some(text) => {
                    let (begin, end) = text.split_once('-').ok_or(format!("wait={text} is not ADDR-ADDR"))?;
                    Some((hexadecimal(begin)?, hexadecimal(end)?))
                }
                None => None,
            },
            cores: Vec::new(),
            intervals: 0,
            inside: false,
            written: None,
        })
    }

    fn begin(&mut self) {
        for seen in self.seen.values_mut() {
            seen.at_begin = seen.counts();
        }
        self.blocks.begin();
        if let Some(flash) = &mut self.flash {
            flash.reads = memory::Reads::default();
        }
        for core in &mut self.cores {
            core.counts = [0; 2];
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

    fn core(&mut self, cpu: c_uint) -> &mut Core {
        let index = cpu as usize;
        if self.cores.len() <= index {
            self.cores.resize(index + 1, Core::default());
        }
        &mut self.cores[index]
    }

    fn write(&mut self) -> std::io::Result<()> {
        let (first, lowest) = self.written.unwrap_or_default();
        writeln!(self.out, "interval {} {first:x} {lowest:x}", self.intervals)?;
        for (address, seen) in &self.seen {
            let (now, before) = (seen.counts(), seen.at_begin);
            let count = now.executed - before.executed;
            if count > 0 {
                let (split, crossing) = (now.split - before.split, now.crossing - before.crossing);
                let (size, bytes, text) = (seen.size, &seen.bytes, &seen.text);
                writeln!(self.out, "{address:x} {size} {count} {split} {crossing} {bytes} {text}")?;
            }
        }
        self.blocks.write(&mut self.out)?;
        if let Some(flash) = &self.flash {
            let reads = flash.reads;
            writeln!(self.out, "flash {} {} {}", reads.jumps, reads.sequential, reads.data)?;
        }
        if self.wait.is_some() {
            for (index, core) in self.cores.iter().enumerate() {
                let [worked, waited] = core.counts;
                writeln!(self.out, "core {index} {worked} {waited}")?;
            }
        }
        self.out.flush()
    }
}

impl Seen {
    fn counts(&self) -> Counts {
        // SAFETY: leaked when the instruction was first seen; only this thread's translated code and callbacks write it.
        unsafe { self.counts.read_volatile() }
    }
}

extern "C" fn translated(_: u64, block: *mut Translation) {
    with_state(|state| {
        let Some(state) = state else { return };
        // SAFETY: the block is valid during this call, and so are its instructions.
        let count = unsafe { qemu_plugin_tb_n_insns(block) };
        for index in 0..count {
            // SAFETY: `index < count`: an instruction of the block, valid during this call.
            unsafe { watch(state, qemu_plugin_tb_get_insn(block, index)) };
        }
        // SAFETY: the block and its instructions are valid during this call; the list's block, which is registered, lives until qemu ends.
        unsafe {
            let address = qemu_plugin_tb_vaddr(block);
            let last = qemu_plugin_tb_get_insn(block, count - 1);
            let bytes = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last) as u64 - address;
            let entered_block = state.blocks.translated(address, count, bytes);
            qemu_plugin_register_vcpu_tb_exec_cb(block, entered, NO_REGISTERS, entered_block.cast());
        }
    });
}

/// # Safety
/// `instruction` is one of the block that is being translated.
unsafe fn watch(state: &mut State, instruction: *mut Instruction) {
    // SAFETY: an instruction of the block that is being translated (fn docs); qemu copies what it keeps.
    unsafe {
        let address = qemu_plugin_insn_vaddr(instruction);
        // The marks are called first and counted after, so that an interval holds the begin mark and not the end mark.
        if address == state.begin {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, begun, NO_REGISTERS, std::ptr::null_mut());
        }
        if address == state.end {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, ended, NO_REGISTERS, std::ptr::null_mut());
        }
        if let Some((begin, end)) = state.wait {
            if address == begin {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, waits, NO_REGISTERS, std::ptr::null_mut());
            }
            if address == end {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, goes_on, NO_REGISTERS, std::ptr::null_mut());
            }
        }
        let seen = state.seen.entry(address).or_insert_with(|| Seen {
            size: qemu_plugin_insn_size(instruction),
            bytes: bytes(instruction),
            text: describe(instruction),
            counts: Box::into_raw(Box::default()),
            at_begin: Counts::default(),
        });
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, seen.counts.cast(), 1);
        qemu_plugin_register_vcpu_mem_cb(
            instruction,
            accessed,
            NO_REGISTERS,
            READS_AND_WRITES,
            seen.counts.cast(),
        );
    }
}

/// The instruction as it lies in memory, in hexadecimal.
///
/// # Safety
/// As [`watch`].
unsafe fn bytes(instruction: *const Instruction) -> String {
    // SAFETY: qemu returns a pointer to as many bytes as the instruction has, valid while its block is translated (fn docs).
    let data =
        unsafe { std::slice::from_raw_parts(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction)) };
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The disassembly; `?` for an instruction that qemu's disassembler does not know.
///
/// # Safety
/// As [`watch`].
unsafe fn describe(instruction: *const Instruction) -> String {
    // SAFETY: qemu returns a string that the caller frees.
    unsafe {
        let text = qemu_plugin_insn_disas(instruction);
        if text.is_null() {
            return "?".to_owned();
        }
        let owned = CStr::from_ptr(text).to_string_lossy().replace(['\t', '\n'], " ");
        free(text.cast());
        match owned.trim() {
            "" => "?".to_owned(),
            known => known.to_owned(),
        }
    }
}

extern "C" fn begun(_: c_uint, _: *mut c_void) {
    with_state(|state| state.as_mut().map_or((), State::begin));
}

extern "C" fn ended(_: c_uint, _: *mut c_void) {
    with_state(|state| state.as_mut().map_or((), State::end));
}

extern "C" fn waits(cpu: c_uint, _: *mut c_void) {
    with_state(|state| state.as_mut().map_or((), |state| state.core(cpu).waits = true));
}

extern "C" fn goes_on(cpu: c_uint, _: *mut c_void) {
    with_state(|state| state.as_mut().map_or((), |state| state.core(cpu).waits = false));
}

extern "C" fn entered(cpu: c_uint, block: *mut c_void) {
    with_state(|state| {
        let Some(state) = state else { return };
        if let Some(flash) = &mut state.flash {
            // SAFETY: what was registered is a block of the list, which is never freed.
            let (address, bytes) = unsafe { (*block.cast::<blocks::Block>()).place() };
            flash.fetch(address, bytes);
        }
        if state.inside && state.wait.is_some() {
            // SAFETY: what was registered is a block of the list, which is never freed.
            let instructions = unsafe { (*block.cast::<blocks::Block>()).instructions() };
            let core = state.core(cpu);
            core.counts[usize::from(core.waits)] += instructions as u64;
        }
        if state.inside {
            // SAFETY: what was registered is of this list.
            unsafe { state.blocks.enter(block.cast()) };
        }
    });
}

extern "C" fn accessed(_: c_uint, info: u32, address: u64, counts: *mut c_void) {
    // SAFETY: the value is the one that qemu gave.
    let (bytes, store) = unsafe { (1 << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info)) };
    // Two words need not be aligned to eight bytes.
    let split = match (bytes, address % bytes.min(4)) {
        (_, 0) => 0,
        (2, _) => 1,
        (_, at) => 1 + at % 2,
    };
    if split > 0 {
        // SAFETY: registered with the leaked counts of its instruction, which only this thread writes.
        let counts = unsafe { &mut *counts.cast::<Counts>() };
        counts.split += split;
        counts.crossing += u64::from(address % 8 + bytes > 8);
    }
    with_state(|state| {
        let Some(state) = state else { return };
        match &mut state.flash {
            Some(flash) if !store => flash.load(address, bytes),
            _ if store && state.inside && (state.stack.0..state.stack.1).contains(&address) => {
                let (first, lowest) = state.written.unwrap_or((address, address));
                state.written = Some((first, lowest.min(address)));
            }
            _ => (),
        }
    });
}

fn with_state(work: impl FnOnce(&mut Option<State>)) {
    work(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner));
}
