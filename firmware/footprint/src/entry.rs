//! Where these programs begin: by `cortex-m-rt` on Cortex-M. Elsewhere at the symbol that linkers take, without a stack: they are measured and never run.

/// Begins with a function that never returns.
macro_rules! entry {
    ($main:ident) => {
        #[cfg(target_arch = "arm")]
        #[cortex_m_rt::entry]
        fn entry() -> ! {
            $main()
        }

        #[cfg(not(target_arch = "arm"))]
        #[unsafe(no_mangle)]
        extern "C" fn _start() -> ! {
            $main()
        }
    };
}

pub(crate) use entry;
