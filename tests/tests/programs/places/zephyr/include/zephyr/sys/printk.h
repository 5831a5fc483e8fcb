#pragma once
int printk(const char *format, ...);
