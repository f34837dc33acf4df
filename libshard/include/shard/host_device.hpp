// SHARD_EXACT marks functions of integer or exactly rounded arithmetic that host code and CUDA kernels share:
// both compile the same lines, so both give the same bits. Such a header includes no CUDA header.
//
#pragma once

// SHARD_UNROLL stands before loops of a fixed count over arrays that a kernel keeps in registers,
// SHARD_ROLLED before those that shall stay loops, since their code is large and seldom run.
#if defined(__CUDACC__)
#define SHARD_EXACT __host__ __device__
#define SHARD_UNROLL _Pragma("unroll")
#define SHARD_ROLLED _Pragma("unroll 1")
#else
#define SHARD_EXACT
#define SHARD_UNROLL
#define SHARD_ROLLED
#endif
