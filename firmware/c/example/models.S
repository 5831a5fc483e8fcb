/* The models, in flash at multiples of 16; the assembler finds them by its -I. */
    .syntax unified
    .section .rodata.models, "a"

    .balign 16
    .global digits_model
digits_model:
    .incbin "digits.bin"
    .global digits_model_end
digits_model_end:

    .balign 16
    .global mlp_model
mlp_model:
    .incbin "mlp.bin"
    .global mlp_model_end
mlp_model_end:
