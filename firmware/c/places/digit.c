/* A model on one image. */
#include "digit.h"

/* Eight rows of eight pixels. */
static const float image[64] = {
    @IMAGE@
};

static arenite_session session;
/* `pack` says how many bytes the model takes. */
static uint8_t arena[@ARENA@] __attribute__((aligned(16)));

int digit(const uint8_t *model, size_t bytes, arenite_code *why)
{
    const void *place = NULL;
    size_t length = 0;
    *why = arenite_open(&session, model, bytes, arena, sizeof arena, NULL, 0);
    if (*why == ARENITE_OK)
        *why = arenite_set_input(&session, 0, image, sizeof image);
    if (*why == ARENITE_OK)
        *why = arenite_run(&session);
    if (*why == ARENITE_OK)
        *why = arenite_output(&session, 0, &place, &length);
    if (*why != ARENITE_OK)
        return -1;
    const float *scores = (const float *)place;
    int best = 0;
    for (int i = 1; i < (int)(length / sizeof *scores); i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}
