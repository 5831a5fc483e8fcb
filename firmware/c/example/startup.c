/* From reset to main on a Cortex-M4F, with newlib's semihosting for printf. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t stack_top[], data_start[], data_end[], data_load[], bss_start[], bss_end[];
extern void initialise_monitor_handles(void);
extern int main(void);

void reset(void)
{
    /* Coprocessor access control: the FPU is on before anything uses a float. */
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
    __asm__ volatile("dsb\n isb");
    for (uint32_t *to = data_start, *from = data_load; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;)
        *to++ = 0;
    initialise_monitor_handles();
    exit(main());
}

static void fault(void)
{
    abort();
}

/* The stack, reset, NMI, faults. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top, (uintptr_t)reset, (uintptr_t)fault, (uintptr_t)fault,
    (uintptr_t)fault,     (uintptr_t)fault, (uintptr_t)fault,
};

/* newlib calls them around main; there is nothing to do. */
void _init(void) {}
void _fini(void) {}
