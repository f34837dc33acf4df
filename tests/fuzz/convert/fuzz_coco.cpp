// Any bytes as annotations in the format of COCO: what is taken is whole and in order.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "convert/annotations/coco_parse.hpp"
#include "shard/error.hpp"

namespace {

template <class Entries>
void require_sorted(const Entries& entries) {
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i - 1].id >= entries[i].id) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  try {
    const convert::Coco coco = convert::parse_coco({reinterpret_cast<const char*>(data), size});
    require_sorted(coco.images);
    require_sorted(coco.categories);
    for (const convert::CocoImage& image : coco.images)
      if (image.file_name.empty()) std::abort();
    for (std::size_t i = 0; i < coco.annotations.size(); ++i) {
      const convert::CocoAnnotation& of = coco.annotations[i];
      if (i > 0 && coco.annotations[i - 1].image > of.image) std::abort();
      if (of.caption > coco.captions.size() || of.keypoints % 3 != 0) std::abort();
      if (of.keypoints_begin > coco.keypoints.size() ||
          of.keypoints > coco.keypoints.size() - of.keypoints_begin)
        std::abort();
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::invalid_argument) std::abort();
  }
  return 0;
}
