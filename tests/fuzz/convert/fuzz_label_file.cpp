// Any bytes as the annotations of an image: the first byte chooses Pascal VOC (0) or YOLO with so many
// keypoints less one. What is taken has finite boxes with an area.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "convert/annotations/label_file.hpp"
#include "shard/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  if (size == 0) return 0;
  const std::uint32_t kind = data[0] % 4;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    const convert::LabelFile file =
        kind == 0 ? convert::parse_voc(text) : convert::parse_yolo(text, kind - 1);
    for (const convert::LabelledObject& of : file.objects) {
      const auto& [left, top, right, bottom] = of.object.box;
      if (!(left < right && top < bottom) || !std::isfinite(right - left) || !std::isfinite(bottom - top))
        std::abort();
      if (kind == 0 ? of.name.empty() : of.object.label < 0) std::abort();
      if (of.keypoints.size() != (kind == 0 ? 0 : 3 * (kind - 1))) std::abort();
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) std::abort();
  }
  return 0;
}
