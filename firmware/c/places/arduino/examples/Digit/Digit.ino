// A model on one image: digit.c runs it, digits_model.h holds it.
#include <arenite.h>

#include "digit.h"
#include "digits_model.h"

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  arenite_code why;
  int number = digit(digits_model, sizeof digits_model, &why);
  if (number < 0) {
    char text[160];
    arenite_error_text(why, text, sizeof text);
    Serial.println(text);
    return;
  }
  Serial.print("this is a ");
  Serial.println(number);
}

void loop() {
}
