// The limit of matrix products on the CPU: multiply-adds in registers alone.
#pragma once

#include <string>

namespace shard::bench {

// Floating-point operations per second of `threads` threads (multiply and add count one each). Takes about
// `seconds`.
double peak_flops(unsigned threads, double seconds);
std::string peak_simd_target();  // the instruction set that was used: "AVX2"

}  // namespace shard::bench
