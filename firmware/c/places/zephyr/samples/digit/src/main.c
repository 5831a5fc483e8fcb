#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "digit.h"
#include "digits_model.h"

int main(void)
{
	arenite_code why;
	int class = digit(digits_model, (size_t)(digits_model_end - digits_model), &why);

	if (class < 0) {
		char text[160];

		arenite_error_text(why, text, sizeof(text));
		printk("%08x %s\n", (unsigned int)why, text);
		return 1;
	}
	printk("this is a %d\n", class);
	return 0;
}
