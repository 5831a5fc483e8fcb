#!/bin/sh
# build.sh CMSIS-NN OUTPUT-FOLDER: the layers of the four models by CMSIS-NN, for the M4F and the M33 boards, as docs/cycles.md compares them.
set -e
here=$(dirname "$0")
sources=$(ls "$1"/Source/ConvolutionFunctions/*.c "$1"/Source/FullyConnectedFunctions/*.c "$1"/Source/BasicMathFunctions/arm_elementwise_add_s8.c \
  "$1"/Source/PoolingFunctions/arm_avgpool_*s8.c "$1"/Source/SoftmaxFunctions/arm_softmax_s8.c "$1"/Source/SoftmaxFunctions/arm_nn_softmax_common_s8.c \
  "$1"/Source/NNSupportFunctions/*.c | sort -u | grep -vE 'f16|f32')
include="$1/Include"
build() {
  sed "s/FLASH_AT/$3/; s/RAM_AT/$4/" "$here/link.ld" > "$5/$1.ld"
  arm-none-eabi-gcc -mcpu="$1" -mthumb -mfpu="$2" -mfloat-abi=hard -O3 -ffunction-sections -fdata-sections -Wl,--gc-sections -nostartfiles \
    -I"$include" -T "$5/$1.ld" "$here/main.c" $sources -o "$5/$1.elf"
}
build cortex-m4 fpv4-sp-d16 0x0 0x20000000 "$2"
build cortex-m33 fpv5-sp-d16 0x10000000 0x38000000 "$2"
