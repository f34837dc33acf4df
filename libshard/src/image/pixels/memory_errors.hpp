// If there is no memory for an image, that is an error of this image, whichever container asked for the
// memory.
#pragma once

#include <new>
#include <stdexcept>

#include "shard/error.hpp"

namespace shard::image {

template <class Work>
decltype(auto) with_memory_errors(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::resource,
                "no memory to decode and resize the image: run fewer jobs, or lower the bound on pixels");
  } catch (const std::length_error&) {
    throw Error(ErrorCode::resource,
                "the image needs more memory than can be addressed: lower the bound on pixels");
  }
}

}  // namespace shard::image
