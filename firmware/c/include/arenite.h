/* Arenite for C and C++: docs/c.md. Generated from firmware/c/src; ARENITE_BLESS=1 cargo test -p arenite-tests --test programs c::header */

#ifndef ARENITE_H
#define ARENITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Memories that an arena may be spread over.
#define ARENITE_REGIONS 4

// Result of a function: `ARENITE_OK`, or an error as four bytes, whose text `arenite_error_text` gives and `arenite explain-code` explains.
typedef uint32_t arenite_code;

// Bytes that a model needs, and counts of its parts.
typedef struct arenite_needs {
  // Bytes of arena, by region; most models have one.
  uint32_t arena[ARENITE_REGIONS];
  // Bytes of state, 0 for a model without.
  uint32_t state;
  // Bytes of the file.
  uint32_t file;
  // Steps of a run.
  uint32_t steps;
  // Number of inputs.
  uint32_t inputs;
  // Number of outputs.
  uint32_t outputs;
} arenite_needs;

// A session in the program's own memory; its words are the library's. It may be moved, and needs no closing.
typedef struct arenite_session {
  size_t words[24];
} arenite_session;

// A memory of the program.
typedef struct arenite_memory {
  // Its first byte; null for none.
  uint8_t *start;
  // Its length.
  size_t bytes;
} arenite_memory;

// Done.
#define ARENITE_OK 0

// A pointer is null that must not be.
#define ARENITE_NULL 0xF0FFFFFFu

// No session was opened here, or opening it failed.
#define ARENITE_NOT_OPEN 0xF1FFFFFFu

// The session, or what is to be written, does not start at a multiple of its alignment.
#define ARENITE_MISALIGNED 0xF2FFFFFFu

// The model has no steps of training, or the library was built without the feature `training`.
#define ARENITE_NOT_FOR_TRAINING 0xF3FFFFFFu

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Reads what a model needs from its header; the rest of the file is not looked at. `model` starts at a multiple of 16.
//
// The caller promises:
// `model` points to `model_bytes` readable bytes, `needs` to writable memory.
arenite_code arenite_needs_of(const uint8_t *model, size_t model_bytes, struct arenite_needs *needs);

// Checks all of a model and opens a session on it. `model`, `arena` and `state` start at multiples of 16 and stay where they are, the model unchanged, for as
// long as the session is used; `state` is null for a model without.
//
// The caller promises:
// The pointers point to as many bytes as said: of the model readable, of arena and state writable and used by nothing else meanwhile.
arenite_code arenite_open(struct arenite_session *session,
                          const uint8_t *model,
                          size_t model_bytes,
                          uint8_t *arena,
                          size_t arena_bytes,
                          uint8_t *state,
                          size_t state_bytes);

// `arenite_open` on a state that an earlier session of the model left, in `state` or wherever it was kept: what the network remembers, and what it has learnt.
//
// The caller promises:
// As `arenite_open`.
arenite_code arenite_resume(struct arenite_session *session,
                            const uint8_t *model,
                            size_t model_bytes,
                            uint8_t *arena,
                            size_t arena_bytes,
                            uint8_t *state,
                            size_t state_bytes);

// `arenite_open` for a model whose arena is spread over `ARENITE_REGIONS` memories.
//
// The caller promises:
// As `arenite_open`; `arenas` points to `ARENITE_REGIONS` of them.
arenite_code arenite_open_in(struct arenite_session *session,
                             const uint8_t *model,
                             size_t model_bytes,
                             const struct arenite_memory *arenas,
                             uint8_t *state,
                             size_t state_bytes);

// `arenite_resume` for a model whose arena is spread over `ARENITE_REGIONS` memories.
//
// The caller promises:
// As `arenite_open_in`.
arenite_code arenite_resume_in(struct arenite_session *session,
                               const uint8_t *model,
                               size_t model_bytes,
                               const struct arenite_memory *arenas,
                               uint8_t *state,
                               size_t state_bytes);

// Copies an input for the next run: as many bytes as the model's, each element little-endian.
//
// The caller promises:
// `session` points to a session, `input` to `input_bytes` readable bytes.
arenite_code arenite_set_input(struct arenite_session *session, uint32_t index, const void *input, size_t input_bytes);

// The place of an input in the arena, to be filled for the next run.
//
// The caller promises:
// `session` points to a session, `place` and `place_bytes` to writable memory.
arenite_code arenite_input(struct arenite_session *session, uint32_t index, void **place, size_t *place_bytes);

// Runs all remaining steps.
//
// The caller promises:
// `session` points to a session.
arenite_code arenite_run(struct arenite_session *session);

// Runs one step, and says in `done` whether it was the last.
//
// The caller promises:
// `session` points to a session, `done` to a writable `bool`.
arenite_code arenite_step(struct arenite_session *session, bool *done);

// The place of an output, valid after a run until the next input is set.
//
// The caller promises:
// `session` points to a session, `place` and `place_bytes` to writable memory.
arenite_code arenite_output(const struct arenite_session *session,
                            uint32_t index,
                            const void **place,
                            size_t *place_bytes);

// Gives the state its initial value.
//
// The caller promises:
// `session` points to a session.
arenite_code arenite_reset_state(struct arenite_session *session);

// Goes on with the model's steps of training (`pack --train`), over the same arena and state: inputs and outputs are theirs now, and all inputs are to be set.
// The library has to be built with the feature `training`.
//
// The caller promises:
// `session` points to a session.
arenite_code arenite_turn_to_training(struct arenite_session *session);

// Goes on with the steps of inference, likewise.
//
// The caller promises:
// `session` points to a session.
arenite_code arenite_turn_to_inference(struct arenite_session *session);

// Runs the self-test of a model (`pack --self-test`) in an arena and state as those of `arenite_open`; what they held is lost.
//
// The caller promises:
// As `arenite_open`.
arenite_code arenite_self_test(const uint8_t *model,
                               size_t model_bytes,
                               uint8_t *arena,
                               size_t arena_bytes,
                               uint8_t *state,
                               size_t state_bytes);

// Writes what a code means to `text`, cut to `text_bytes` with a zero at the end, and gives the length of all of it.
//
// The caller promises:
// `text` points to `text_bytes` writable bytes, or is null.
size_t arenite_error_text(arenite_code code, char *text, size_t text_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ARENITE_H */
