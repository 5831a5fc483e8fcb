/* From reset to main on a board of qemu, with semihosting for text and exit. Memory is zero, and data is where it runs: qemu loads it so. */
#include <stdarg.h>
#include <stdint.h>
#ifdef HAS_LIBC
#include <stdio.h>
#endif

extern int main(void);
extern uint8_t stack_top[];

static long semihosting(long operation, const void *argument)
{
#ifdef __arm__
    register long r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#else
    register long a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\nslli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
    return a0;
#endif
}

void print(const char *text)
{
    semihosting(4, text);
}

#ifdef HAS_LIBC
/* The function that Zephyr and newlib print by. */
int printk(const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print(text);
    return length;
}

int _write(int file, const char *bytes, int length)
{
    (void)file;
    for (int at = 0; at < length; at++)
        semihosting(3, &bytes[at]);
    return length;
}
#endif

static void finish(int code)
{
    const uintptr_t block[2] = {0x20026, (uintptr_t)code};
#ifdef HAS_LIBC
    fflush(stdout);
#endif
    for (;;)
        semihosting(0x20, block);
}

#ifdef __arm__
void start(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
    __asm__ volatile("dsb\n isb");
#endif
    finish(main());
}

static void fault(void)
{
    finish(3);
}

__attribute__((section(".start"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top, (uintptr_t)start, (uintptr_t)fault, (uintptr_t)fault,
    (uintptr_t)fault,     (uintptr_t)fault, (uintptr_t)fault,
};
#else
__attribute__((section(".start"), naked, used)) void start(void)
{
    __asm__ volatile("la sp, stack_top\n li t0, 0x6000\n csrs mstatus, t0\n call after");
}

__attribute__((used)) void after(void)
{
    finish(main());
}
#endif
