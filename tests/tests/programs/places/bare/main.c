#include "digit.h"
#include "digits_model.h"

void print(const char *text);

int main(void)
{
    arenite_code why;
    int class = digit(digits_model, (size_t)(digits_model_end - digits_model), &why);
    char text[160] = "this is a ?\n";
    text[10] = (char)('0' + class);
    if (class < 0)
        arenite_error_text(why, text, sizeof text);
    print(text);
    return class < 0;
}
