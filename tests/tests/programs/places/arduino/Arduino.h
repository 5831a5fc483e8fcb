// Parts of an Arduino core that a sketch uses, for a bare board: a stand-in, not Arduino.
#pragma once
#include <stdint.h>

extern "C" int printk(const char *format, ...);

struct SerialPort {
  void begin(unsigned long) {}
  explicit operator bool() const { return true; }
  void print(const char *text) { printk("%s", text); }
  void println(const char *text) { printk("%s\n", text); }
  void println(int number) { printk("%d\n", number); }
};
static SerialPort Serial;

void setup();
void loop();
