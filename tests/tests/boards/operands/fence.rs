//! Memory between pages without access: whatever touches them is noted, and goes on.

use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use arenite::testkit::{Guarded, Watch};

/// Forbidden bytes on either side: strides farther than this are not seen.
const FORBIDDEN: usize = 1 << 20;

/// Fields of a program at most.
const FIELDS: usize = 32;

/// Addresses of a field, for the handler of the signal.
struct Known {
    /// First address of the forbidden bytes before it, and the last one's end.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The first forbidden byte that was touched; 0 where none was.
    touched: AtomicUsize,
    written: AtomicBool,
}

static KNOWN: [Known; FIELDS] = [const {
    Known {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        touched: AtomicUsize::new(0),
        written: AtomicBool::new(false),
    }
}; FIELDS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Keeps the bytes on both sides of a field from being touched.
pub(crate) struct Fence {
    index: usize,
    field: Range<usize>,
    sanitizer: Option<Sanitizer>,
    /// The last one that was touched, from the operand's first byte, and whether it was written.
    pub(crate) touched: Option<(isize, bool)>,
    bytes: Range<usize>,
}

/// AddressSanitizer's own functions, in builds with it: what of the field is no operand is forbidden to the byte.
#[derive(Clone, Copy)]
struct Sanitizer {
    poison: extern "C" fn(*const u8, usize),
    unpoison: extern "C" fn(*const u8, usize),
}

/// A field of whole pages, and its fence.
///
/// # Panics
/// Where the system gives no memory.
pub(crate) fn field(len: usize) -> (&'static mut [u8], Fence) {
    static ONCE: Once = Once::new();
    ONCE.call_once(install);
    // SAFETY: reads a number of the system, without pointers.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("pages");
    let len = len.next_multiple_of(page);
    let (flags, total) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, len + 2 * FORBIDDEN);
    // SAFETY: an anonymous mapping at an address of the system's choice changes no memory that is in use.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), total, libc::PROT_NONE, flags, -1, 0) };
    assert!(start != libc::MAP_FAILED, "no memory for a field of {len} bytes");
    let index = NEXT.fetch_add(1, SeqCst);
    let known = KNOWN.get(index).expect("fewer fields");
    let at = start.addr() + FORBIDDEN;
    let fence = Fence {
        index,
        field: at..at + len,
        sanitizer: sanitizer(),
        touched: None,
        bytes: at..at,
    };
    known.end.store(start.addr() + total, SeqCst);
    known.start.store(start.addr(), SeqCst);
    fence.forbid();
    // SAFETY: accessible memory that lives as long as the program, handed out once.
    let field = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>().wrapping_add(FORBIDDEN), len) };
    (field, fence)
}

impl Fence {
    /// Forbids what is not the field.
    fn forbid(&self) {
        let known = &KNOWN[self.index];
        let (start, end) = (known.start.load(SeqCst), known.end.load(SeqCst));
        let parts = [
            (start..self.field.start, libc::PROT_NONE),
            (self.field.clone(), libc::PROT_READ | libc::PROT_WRITE),
            (self.field.end..end, libc::PROT_NONE),
        ];
        for (part, access) in parts {
            let at = std::ptr::with_exposed_provenance_mut(part.start);
            // SAFETY: whole pages of the mapping that is this field's alone.
            assert_eq!(unsafe { libc::mprotect(at, part.len(), access) }, 0);
        }
        known.touched.store(0, SeqCst);
    }
}

impl Watch for Fence {
    fn begins(&mut self, _: Guarded, bytes: Range<*const u8>) {
        self.bytes = bytes.start.addr()..bytes.end.addr();
        if let Some(sanitizer) = self.sanitizer {
            for part in [self.field.start..self.bytes.start, self.bytes.end..self.field.end] {
                (sanitizer.poison)(std::ptr::with_exposed_provenance(part.start), part.len());
            }
        }
    }

    fn ended(&mut self) -> bool {
        if let Some(sanitizer) = self.sanitizer {
            let at = std::ptr::with_exposed_provenance(self.field.start);
            (sanitizer.unpoison)(at, self.field.len());
        }
        let known = &KNOWN[self.index];
        let touched = known.touched.load(SeqCst);
        if touched == 0 {
            return true;
        }
        self.touched = Some((
            touched.wrapping_sub(self.bytes.start) as isize,
            known.written.load(SeqCst),
        ));
        self.forbid();
        false
    }
}

fn install() {
    let handler = noted as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: zeros are valid in all fields; handler and flags are set below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: `action` outlives the call, and the handler calls `mprotect` and `signal` and uses atomics, which a handler may.
        assert_eq!(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) }, 0);
    }
}

/// Notes what was touched of a field's forbidden bytes and lets it happen; any other fault is the program's end.
extern "C" fn noted(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes a valid `siginfo_t` to a handler with `SA_SIGINFO`.
    let address = unsafe { (*info).si_addr() }.addr();
    for known in &KNOWN {
        let (start, end) = (known.start.load(SeqCst), known.end.load(SeqCst));
        if start == 0 || !(start..end).contains(&address) {
            continue;
        }
        known.touched.store(address, SeqCst);
        known.written.store(is_write(context), SeqCst);
        let (at, access) = (
            std::ptr::with_exposed_provenance_mut(start),
            libc::PROT_READ | libc::PROT_WRITE,
        );
        // SAFETY: `start..end` is the mapping of one field, found by its address.
        if unsafe { libc::mprotect(at, end - start, access) } == 0 {
            return;
        }
    }
    // SAFETY: the default action takes no handler; the instruction faults again, and the system's own way follows.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_write(context: *mut libc::c_void) -> bool {
    // SAFETY: the system passes a valid `ucontext_t` to a handler with `SA_SIGINFO`.
    let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_ERR as usize] & 2 != 0
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn is_write(_: *mut libc::c_void) -> bool {
    false
}

fn sanitizer() -> Option<Sanitizer> {
    let find = |name: &std::ffi::CStr| {
        // SAFETY: `name` is a C string that outlives the call.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // SAFETY: not null, and both functions of AddressSanitizer's interface have this type.
        (!found.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn(*const u8, usize)>(found) })
    };
    Some(Sanitizer {
        poison: find(c"__asan_poison_memory_region")?,
        unpoison: find(c"__asan_unpoison_memory_region")?,
    })
}
