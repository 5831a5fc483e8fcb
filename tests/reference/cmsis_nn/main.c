// The layers of the four MLPerf Tiny models by CMSIS-NN's wrappers, between the marks that qemu's plugin counts by: an estimate of cycles for code whose cycles
// were published. Values are zeros; the kernels' time does not depend on them but for saturation.
#include <stdint.h>
#include <string.h>
#include "arm_nnfunctions.h"

__attribute__((noinline, used)) void arenite_count_begin(void) { __asm volatile("nop"); }
__attribute__((noinline, used)) void arenite_count_end(void) { __asm volatile("nop\nnop"); }

static int8_t buffers[3][110592] __attribute__((aligned(16)));
static int8_t scratch[65536] __attribute__((aligned(16)));
static const int8_t weights[262144] __attribute__((aligned(16))) = {1};
static const int32_t bias[1024] = {1};
static int32_t multipliers[1024], shifts[1024];

enum { CONV, DEPTHWISE, DENSE, ADD, POOL, SOFTMAX };
typedef struct { int kind, h, w, c, n, kh, kw, oh, ow, stride; } Layer;

static int pad(int in, int out, int k, int s) { int p = (out - 1) * s + k - in; return p > 0 ? p / 2 : 0; }

static int layer(const Layer *l) {
  cmsis_nn_context ctx = {scratch, sizeof scratch};
  cmsis_nn_dims in = {1, l->h, l->w, l->c}, out = {1, l->oh, l->ow, l->n}, b = {1, 1, 1, l->n};
  cmsis_nn_per_channel_quant_params q = {multipliers, shifts};
  int ph = pad(l->h, l->oh, l->kh, l->stride), pw = pad(l->w, l->ow, l->kw, l->stride);
  switch (l->kind) {
  case CONV: {
    cmsis_nn_dims f = {l->n, l->kh, l->kw, l->c};
    cmsis_nn_conv_params p = {128, -128, {l->stride, l->stride}, {pw, ph}, {1, 1}, {-128, 127}};
    cmsis_nn_dims up = {0};
    (void)up;
    return arm_convolve_wrapper_s8(&ctx, &p, &q, &in, buffers[0], &f, weights, &b, bias, &out, buffers[1]);
  }
  case DEPTHWISE: {
    cmsis_nn_dims f = {1, l->kh, l->kw, l->c};
    cmsis_nn_dw_conv_params p = {128, -128, 1, {l->stride, l->stride}, {pw, ph}, {1, 1}, {-128, 127}};
    return arm_depthwise_conv_wrapper_s8(&ctx, &p, &q, &in, buffers[0], &f, weights, &b, bias, &out, buffers[1]);
  }
  case DENSE: {
    cmsis_nn_dims f = {l->c, 1, 1, l->n}, vec = {1, 1, 1, l->c};
    cmsis_nn_fc_params p = {128, 0, -128, {-128, 127}};
    cmsis_nn_per_tensor_quant_params t = {multipliers[0], shifts[0]};
    return arm_fully_connected_s8(&ctx, &p, &t, &vec, buffers[0], &f, weights, &b, bias, &out, buffers[1]);
  }
  case ADD:
    return arm_elementwise_add_s8(buffers[0], buffers[2], 128, 1 << 30, 0, 128, 1 << 30, 0, 20, buffers[1], -128, 1 << 30, -18, -128, 127,
                                  l->h * l->w * l->c);
  case POOL: {
    cmsis_nn_dims f = {1, l->kh, l->kw, 1};
    cmsis_nn_pool_params p = {{l->stride, l->stride}, {0, 0}, {-128, 127}};
    return arm_avgpool_s8(&ctx, &p, &in, buffers[0], &f, &out, buffers[1]);
  }
  default:
    arm_softmax_s8(buffers[0], 1, l->c, 1 << 30, 23, -248, buffers[1]);
    return 0;
  }
}

#define FC(i, o) {DENSE, 1, 1, i, o, 1, 1, 1, 1, 1}
#define DW(s, c, st) {DEPTHWISE, s, s, c, c, 3, 3, (s) / (st), (s) / (st), st}
#define PW(s, c, n) {CONV, s, s, c, n, 1, 1, s, s, 1}
static const Layer ad[] = {FC(640, 128), FC(128, 128), FC(128, 128), FC(128, 128), FC(128, 8), FC(8, 128), FC(128, 128), FC(128, 128), FC(128, 128), FC(128, 640)};
#define KD {DEPTHWISE, 25, 5, 64, 64, 3, 3, 25, 5, 1}, {CONV, 25, 5, 64, 64, 1, 1, 25, 5, 1}
static const Layer kws[] = {{CONV, 49, 10, 1, 64, 10, 4, 25, 5, 2}, KD, KD, KD, KD, {POOL, 25, 5, 64, 64, 25, 5, 1, 1, 25}, FC(64, 12), {SOFTMAX, 1, 1, 12}};
static const Layer vww[] = {{CONV, 96, 96, 3, 8, 3, 3, 48, 48, 2}, DW(48, 8, 1), PW(48, 8, 16), DW(48, 16, 2), PW(24, 16, 32), DW(24, 32, 1), PW(24, 32, 32),
  DW(24, 32, 2), PW(12, 32, 64), DW(12, 64, 1), PW(12, 64, 64), DW(12, 64, 2), PW(6, 64, 128), DW(6, 128, 1), PW(6, 128, 128), DW(6, 128, 1), PW(6, 128, 128),
  DW(6, 128, 1), PW(6, 128, 128), DW(6, 128, 1), PW(6, 128, 128), DW(6, 128, 1), PW(6, 128, 128), DW(6, 128, 2), PW(3, 128, 256), DW(3, 256, 1), PW(3, 256, 256),
  {POOL, 3, 3, 256, 256, 3, 3, 1, 1, 3}, FC(256, 2), {SOFTMAX, 1, 1, 2}};
#define C3(s, c, n, st) {CONV, s, s, c, n, 3, 3, (s) / (st), (s) / (st), st}
static const Layer resnet[] = {C3(32, 3, 16, 1), C3(32, 16, 16, 1), C3(32, 16, 16, 1), {ADD, 32, 32, 16}, C3(32, 16, 32, 2), C3(16, 32, 32, 1),
  {CONV, 32, 32, 16, 32, 1, 1, 16, 16, 2}, {ADD, 16, 16, 32}, C3(16, 32, 64, 2), C3(8, 64, 64, 1), {CONV, 16, 16, 32, 64, 1, 1, 8, 8, 2}, {ADD, 8, 8, 64},
  {POOL, 8, 8, 64, 64, 8, 8, 1, 1, 8}, FC(64, 10), {SOFTMAX, 1, 1, 10}};

static void end(int status) {
  uint32_t block[2] = {0x20026, (uint32_t)status};
  register uint32_t r0 __asm("r0") = 0x20, r1 __asm("r1") = (uint32_t)block;
  __asm volatile("bkpt 0xab" : : "r"(r0), "r"(r1) : "memory");
  for (;;) {}
}

static int run(const Layer *layers, int count) {
  int failed = 0;
  arenite_count_begin();
  for (int at = 0; at < count; at++) failed |= layer(&layers[at]);
  arenite_count_end();
  return failed;
}

int main(void) {
  for (int at = 0; at < 1024; at++) { multipliers[at] = 1 << 30; shifts[at] = -6; }
  // The counter's own interval, the meter's and the load's are none here.
  for (int at = 0; at < 3; at++) { arenite_count_begin(); arenite_count_end(); }
#define RUN(model) run(model, sizeof model / sizeof *model)
  int failed = RUN(ad);
  failed |= RUN(kws) << 1;
  failed |= RUN(vww) << 2;
  failed |= RUN(resnet) << 3;
  end(failed ? 1 : 0);
}

extern uint32_t _stack, _data, _data_end, _data_load, _bss, _bss_end;
void reset(void) {
  *(volatile uint32_t *)0xE000ED88 |= 0xF << 20;
  __asm volatile("dsb\nisb");
  memcpy(&_data, &_data_load, (char *)&_data_end - (char *)&_data);
  memset(&_bss, 0, (char *)&_bss_end - (char *)&_bss);
  main();
}
void fault(void) { end(2); }
__attribute__((section(".vectors"), used)) void *const vectors[] = {&_stack, reset, fault, fault, fault, fault, fault};
