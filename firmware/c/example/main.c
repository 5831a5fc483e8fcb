/* Two models in one program: a picture of a digit by one, a row of numbers by the other, a step of each in turn. Then everything that can be wrong. */
#include <stdio.h>
#include <string.h>

#include "arenite.h"

extern const uint8_t digits_model[], digits_model_end[], mlp_model[], mlp_model_end[];

static arenite_session digits, mlp;
static uint8_t digits_arena[8192] __attribute__((aligned(16)));
static uint8_t mlp_arena[1024] __attribute__((aligned(16)));
static uint8_t copy[256] __attribute__((aligned(16)));

/* Says what a code means; 0 where it is the one that was expected. */
static int says(arenite_code code)
{
    char text[160];
    arenite_error_text(code, text, sizeof text);
    printf("%08lx %s\n", (unsigned long)code, text);
    return code != ARENITE_OK;
}

/* The outputs as their bits: they are compared with another machine's. */
static arenite_code show(const char *name, const arenite_session *session)
{
    const void *place;
    size_t bytes;
    arenite_code code = arenite_output(session, 0, &place, &bytes);
    if (code != ARENITE_OK)
        return code;
    printf("%s", name);
    const float *scores = place;
    size_t best = 0;
    for (size_t i = 0; i < bytes / sizeof *scores; i++) {
        uint32_t bits;
        memcpy(&bits, &scores[i], sizeof bits);
        printf(" %08lx", (unsigned long)bits);
        if (scores[i] > scores[best])
            best = i;
    }
    printf(" class %u\n", (unsigned)best);
    return ARENITE_OK;
}

static arenite_code classify(void)
{
    static float image[64], row[64];
    for (int i = 0; i < 64; i++) {
        image[i] = (float)(3 * (i / 8) + i % 8) / 32.0f;
        row[i] = (float)(7 * i % 23) / 8.0f;
    }
    size_t digits_bytes = (size_t)(digits_model_end - digits_model), mlp_bytes = (size_t)(mlp_model_end - mlp_model);
    arenite_needs needs;
    arenite_code code;
    if ((code = arenite_needs_of(digits_model, digits_bytes, &needs)) != ARENITE_OK)
        return code;
    printf("digits: arena %lu, state %lu, steps %lu\n", (unsigned long)needs.arena[0], (unsigned long)needs.state,
           (unsigned long)needs.steps);
    if ((code = arenite_self_test(digits_model, digits_bytes, digits_arena, sizeof digits_arena, NULL, 0)) != ARENITE_OK)
        return code;
    if ((code = arenite_open(&digits, digits_model, digits_bytes, digits_arena, sizeof digits_arena, NULL, 0)) != ARENITE_OK)
        return code;
    if ((code = arenite_open(&mlp, mlp_model, mlp_bytes, mlp_arena, sizeof mlp_arena, NULL, 0)) != ARENITE_OK)
        return code;
    if ((code = arenite_set_input(&digits, 0, image, sizeof image)) != ARENITE_OK)
        return code;
    /* The other one's input is filled where it lies. */
    void *place;
    size_t bytes;
    if ((code = arenite_input(&mlp, 0, &place, &bytes)) != ARENITE_OK)
        return code;
    memcpy(place, row, bytes);
    for (bool first = false, second = false; !first || !second;) {
        if (!first && (code = arenite_step(&digits, &first)) != ARENITE_OK)
            return code;
        if (!second && (code = arenite_step(&mlp, &second)) != ARENITE_OK)
            return code;
    }
    if ((code = show("digits", &digits)) != ARENITE_OK)
        return code;
    return show("mlp", &mlp);
}

/* Wrong calls are refused, with a code that has a text; gives how many were not. */
static int refuse(void)
{
    static arenite_session session, never;
    size_t bytes = (size_t)(mlp_model_end - mlp_model);
    float input[64] = {0};
    const void *place;
    arenite_needs needs;
    int taken = 0;
    taken += !says(arenite_open(&session, mlp_model + 1, bytes - 1, mlp_arena, sizeof mlp_arena, NULL, 0));
    taken += !says(arenite_open(&session, mlp_model, bytes - 1, mlp_arena, sizeof mlp_arena, NULL, 0));
    memcpy(copy, mlp_model, sizeof copy);
    copy[0] ^= 1;
    taken += !says(arenite_open(&session, copy, sizeof copy, mlp_arena, sizeof mlp_arena, NULL, 0));
    taken += !says(arenite_open(&session, mlp_model, bytes, mlp_arena + 4, sizeof mlp_arena - 4, NULL, 0));
    taken += !says(arenite_open(&session, mlp_model, bytes, mlp_arena, 16, NULL, 0));
    taken += !says(arenite_open(&session, mlp_model, bytes, mlp_arena, sizeof mlp_arena, copy, 16));
    taken += !says(arenite_open(&session, NULL, bytes, mlp_arena, sizeof mlp_arena, NULL, 0));
    taken += !says(arenite_needs_of(mlp_model, bytes, NULL));
    taken += !says(arenite_needs_of(mlp_model, 20, &needs));
    /* The session's memory holds none, and never has. */
    taken += !says(arenite_run(&session));
    taken += !says(arenite_run(&never));
    taken += !says(arenite_run(NULL));
    taken += !says(arenite_run((arenite_session *)((uint8_t *)&mlp + 1)));
    arenite_code code = arenite_open(&session, mlp_model, bytes, mlp_arena, sizeof mlp_arena, NULL, 0);
    if (code != ARENITE_OK)
        return says(code);
    taken += !says(arenite_run(&session));
    taken += !says(arenite_set_input(&session, 0, input, sizeof input - 1));
    taken += !says(arenite_set_input(&session, 3, input, sizeof input));
    taken += !says(arenite_output(&session, 7, &place, &bytes));
    taken += !says(arenite_self_test(mlp_model, (size_t)(mlp_model_end - mlp_model), mlp_arena, sizeof mlp_arena, NULL, 0));
    return taken;
}

int main(void)
{
    arenite_code code = classify();
    if (code != ARENITE_OK)
        return says(code);
    int taken = refuse();
    printf("taken %d\n", taken);
    /* A text is cut where there is no room, with a zero at its end. */
    char little[8] = "xxxxxxx";
    size_t whole = arenite_error_text(ARENITE_NULL, little, sizeof little);
    printf("[%s] of %u\n", little, (unsigned)whole);
    return taken != 0;
}
