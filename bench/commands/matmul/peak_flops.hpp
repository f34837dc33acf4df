// What no matrix product on the CPU can exceed: multiply-adds in registers and nothing else.
#pragma once

#include <string>

namespace shard::bench {

// Floating-point operations per second of `threads` threads (multiply and add count one each). Takes about
// `seconds`.
double peak_flops(unsigned threads, double seconds);
std::string peak_simd_target();  // the instruction set that was used: "AVX2"

}  // namespace shard::bench
