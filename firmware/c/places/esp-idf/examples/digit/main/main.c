#include <stdio.h>

#include "digit.h"
#include "digits_model.h"

void app_main(void)
{
    arenite_code why;
    int class = digit(digits_model, (size_t)(digits_model_end - digits_model), &why);
    if (class < 0) {
        char text[160];
        arenite_error_text(why, text, sizeof text);
        printf("%08lx %s\n", (unsigned long)why, text);
        return;
    }
    printf("this is a %d\n", class);
}
