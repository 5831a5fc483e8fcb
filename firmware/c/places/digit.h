#pragma once
#include "arenite.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The class of the image in digit.c, or -1 with a code whose text arenite_error_text gives. The model starts at a multiple of 16. */
int digit(const uint8_t *model, size_t bytes, arenite_code *why);

#ifdef __cplusplus
}
#endif
