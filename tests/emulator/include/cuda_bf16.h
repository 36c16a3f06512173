#pragma once

// The type of tensor cores, for the emulator.

struct __nv_bfloat16 {
  unsigned short bits;
};
