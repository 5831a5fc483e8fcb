// The same library in C++: a session as an object.
#include <stddef.h>
#include <stdio.h>

#include "arenite.h"

extern "C" const uint8_t digits_model[], digits_model_end[];

template <size_t Arena> class Network {
  public:
    arenite_code open(const uint8_t *model, const uint8_t *end)
    {
        return arenite_open(&session, model, static_cast<size_t>(end - model), arena, Arena, nullptr, 0);
    }

    template <size_t Inputs> arenite_code run(const float (&input)[Inputs], const float *&output, size_t &count)
    {
        arenite_code code = arenite_set_input(&session, 0, input, sizeof input);
        if (code == ARENITE_OK)
            code = arenite_run(&session);
        const void *place = nullptr;
        size_t bytes = 0;
        if (code == ARENITE_OK)
            code = arenite_output(&session, 0, &place, &bytes);
        output = static_cast<const float *>(place);
        count = bytes / sizeof *output;
        return code;
    }

  private:
    arenite_session session{};
    alignas(16) uint8_t arena[Arena];
};

static Network<8192> digits;

int main()
{
    float image[64];
    for (int i = 0; i < 64; i++)
        image[i] = static_cast<float>(3 * (i / 8) + i % 8) / 32.0f;
    const float *scores;
    size_t count;
    arenite_code code = digits.open(digits_model, digits_model_end);
    if (code == ARENITE_OK)
        code = digits.run(image, scores, count);
    if (code != ARENITE_OK) {
        char text[160];
        arenite_error_text(code, text, sizeof text);
        printf("%s\n", text);
        return 1;
    }
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    printf("class %u of %u\n", static_cast<unsigned>(best), static_cast<unsigned>(count));
    return 0;
}
