// Reads the JSON of COCO annotations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shard::convert {

struct CocoImage {
  std::int64_t id = 0;
  std::string file_name;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

struct CocoAnnotation {
  std::int64_t id = 0;
  std::int64_t image = 0;
  std::int64_t category = 0;
  bool has_box = false;
  bool crowd = false;
  bool has_area = false;
  double box[4] = {0, 0, 0, 0};  // x, y, width, height
  double area = 0;
  // In Coco::keypoints and Coco::captions.
  std::uint64_t keypoints_begin = 0;
  std::uint32_t keypoints = 0;  // numbers, three for each point
  std::uint32_t caption = 0;    // 0: none; else its position plus 1
};

struct CocoCategory {
  std::int64_t id = 0;
  std::string name;
};

struct Coco {
  std::vector<CocoImage> images;            // sorted by id, unique
  std::vector<CocoAnnotation> annotations;  // sorted by image, then as they are in the file
  std::vector<CocoCategory> categories;     // sorted by id, unique
  std::vector<float> keypoints;
  std::vector<std::string> captions;
};

// Members that are read have their types: a number that is text, or a null, is refused and not passed over.
// Ids are unique, categories have names, objects a category. Errors: corrupt (no JSON), invalid_argument,
// naming the entry and the value.
Coco parse_coco(std::string_view text);
// Takes memory for what it returns; the text itself is mapped. Errors: invalid_argument (naming the file and
// what is wrong), not_found, io, resource.
Coco read_coco(const std::filesystem::path& path);

}  // namespace shard::convert
