// SHARD_EXACT marks functions of integer or exactly rounded arithmetic that host code and CUDA kernels share:
// both compile the same lines, so both give the same bits. Such a header includes no CUDA header.
#pragma once

#if defined(__CUDACC__)
#define SHARD_EXACT __host__ __device__
#else
#define SHARD_EXACT
#endif
