#include "convert/coco.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/json.hpp"
#include "base/quote.hpp"
#include "convert/coco_parse.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// From pixels of the image to those of the stored sample.
struct View {
  double scale_x = 1;
  double scale_y = 1;
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  View(image::Size of, const image::PreprocessOptions& options) {
    const image::Size resized = image::resized_size(of, options);
    const image::Box crop = image::crop_box(resized, options);
    scale_x = static_cast<double>(resized.width) / of.width;
    scale_y = static_cast<double>(resized.height) / of.height;
    left = crop.left;
    top = crop.top;
    width = crop.width;
    height = crop.height;
  }
  double x(double of) const { return of * scale_x - left; }
  double y(double of) const { return of * scale_y - top; }
};

// The rows of one image.
struct Rows {
  std::vector<float> boxes;
  std::vector<std::int64_t> labels;
  std::vector<float> areas;
  std::vector<std::uint8_t> crowd;
  std::vector<float> keypoints;
  std::string captions;
};

}  // namespace

class CocoAnnotations::Impl {
 public:
  explicit Impl(const Options& options)
      : options_(options), file_(quoted(options.coco)), coco_(read_coco(options.coco)) {
    for (const CocoAnnotation& annotation : coco_.annotations) {
      has_boxes_ = has_boxes_ || annotation.has_box;
      has_captions_ = has_captions_ || annotation.caption != 0;
      if (annotation.keypoints == 0) continue;
      if (points_ == 0) points_ = annotation.keypoints;
      if (points_ != annotation.keypoints)
        refuse(fmt::format("annotation {} has {} keypoints, those before it {}: all must have as many",
                           annotation.id, annotation.keypoints / 3, points_ / 3));
    }
  }

  void choose(InputList& list) {
    match(list);
    if (std::all_of(image_of_.begin(), image_of_.end(), [](std::uint32_t image) { return image == kNone; }))
      refuse(fmt::format(
          "none of its {} images is among the {} inputs: its first file_name is {}, the first input {}",
          coco_.images.size(), list.inputs.size(),
          coco_.images.empty() ? "none" : quoted_key(escape_key(coco_.images.front().file_name)),
          quoted_key(list.inputs.front().key())));
    note_annotations_without_image();
    take_inputs(list);
  }

  CocoTable table(const InputList& list) {
    match(list);
    CocoTable table = columns();
    std::vector<std::string> names;
    for (const CocoCategory& category : coco_.categories) names.push_back(json_quote(category.name));
    table.categories = fmt::format("[{}]", fmt::join(names, ","));
    for (const std::uint32_t image : image_of_) {
      const CocoImage* const of = image == kNone ? nullptr : &coco_.images[image];
      table.sizes.push_back(of == nullptr ? image::Size{} : image::Size{of->width, of->height});
      add_rows(of, table.columns);
    }
    table.counts = std::move(counts_);
    return table;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", file_, why));
  }

  // Counts it, or ends the run.
  void missing(AnnotationCounts::Count& count, const std::string& what) {
    if (options_.missing == Missing::fail)
      refuse(fmt::format("{} (`missing` fail; with skip or empty this is counted)", what));
    if (count.number++ == 0) count.first = what;
  }

  // Finds the image of each input: by its path; or by its name, if the file has only names without folders.
  void match(const InputList& list) {
    image_of_.clear();
    std::unordered_map<std::string_view, std::uint32_t> by_name;
    bool plain = true;
    for (std::uint32_t i = 0; i < coco_.images.size(); ++i) {
      const CocoImage& image = coco_.images[i];
      if (!by_name.emplace(image.file_name, i).second)
        refuse(fmt::format("two images have the file_name {}", quoted_key(escape_key(image.file_name))));
      plain = plain && image.file_name.find('/') == std::string::npos;
    }
    input_of_.assign(coco_.images.size(), kNone);
    for (std::uint32_t i = 0; i < list.inputs.size(); ++i) {
      const std::string& path = list.inputs[i].path;
      auto found = by_name.find(path);
      if (found == by_name.end() && plain) found = by_name.find(last_part(path));
      image_of_.push_back(found == by_name.end() ? kNone : found->second);
      if (found == by_name.end()) continue;
      std::uint32_t& input = input_of_[found->second];
      if (input != kNone)
        refuse(fmt::format("{} and {} both have the name of its image {}: convert one of them",
                           quoted_key(list.inputs[input].key()), quoted_key(list.inputs[i].key()),
                           coco_.images[found->second].id));
      input = i;
    }
  }

  const CocoImage* image_with(std::int64_t id) const {
    const auto at = std::lower_bound(coco_.images.begin(), coco_.images.end(), id,
                                     [](const CocoImage& image, std::int64_t of) { return image.id < of; });
    return at != coco_.images.end() && at->id == id ? &*at : nullptr;
  }
  std::span<const CocoAnnotation> annotations_of(const CocoImage& image) const {
    const auto [first, last] = std::equal_range(
        coco_.annotations.begin(), coco_.annotations.end(), image.id, [](const auto& a, const auto& b) {
          const auto id = [](const auto& of) {
            if constexpr (std::is_same_v<std::decay_t<decltype(of)>, CocoAnnotation>)
              return of.image;
            else
              return of;
          };
          return id(a) < id(b);
        });
    return {first, last};
  }

  void note_annotations_without_image() {
    for (const CocoAnnotation& annotation : coco_.annotations) {
      const CocoImage* const image = image_with(annotation.image);
      if (image == nullptr)
        missing(counts_.without_image,
                fmt::format("annotation {} is of image {}, which the file does not have", annotation.id,
                            annotation.image));
      else if (input_of_[static_cast<std::size_t>(image - coco_.images.data())] == kNone)
        missing(counts_.without_image, fmt::format("annotation {} is of {}, which is not among the inputs",
                                                   annotation.id, quoted_key(escape_key(image->file_name))));
    }
  }

  // Images that have no annotations are noted, and left out with `missing` skip.
  void take_inputs(InputList& list) {
    std::vector<Input> kept;
    for (std::size_t i = 0; i < list.inputs.size(); ++i) {
      const std::uint32_t image = image_of_[i];
      const bool annotated = image != kNone && !annotations_of(coco_.images[image]).empty();
      if (!annotated)
        missing(counts_.images_without,
                fmt::format("{} has no annotation", quoted_key(list.inputs[i].key())));
      if (!annotated && options_.missing == Missing::skip) continue;
      kept.push_back(std::move(list.inputs[i]));
    }
    list.inputs = std::move(kept);
    if (list.inputs.empty()) refuse("no image has an annotation: nothing would be stored (`missing` skip)");
  }

  CocoTable columns() const {
    constexpr ColumnKind kRagged = ColumnKind::ragged;
    CocoTable table;
    if (has_boxes_) {
      table.columns.emplace_back(ColumnSpec{"boxes", DType::f32, {4}, kRagged});
      table.columns.emplace_back(ColumnSpec{"box_labels", DType::i64, {}, kRagged});
      table.columns.emplace_back(ColumnSpec{"areas", DType::f32, {}, kRagged});
      table.columns.emplace_back(ColumnSpec{"crowd", DType::u8, {}, kRagged});
    }
    if (points_ != 0)
      table.columns.emplace_back(ColumnSpec{"keypoints", DType::f32, {points_ / 3, 3}, kRagged});
    if (has_captions_) table.columns.emplace_back(ColumnSpec{"captions", DType::u8, {}, ColumnKind::text});
    if (table.columns.empty()) refuse("none of its annotations has a bbox, keypoints or a caption");
    return table;
  }

  void add_rows(const CocoImage* image, std::vector<ColumnTable>& columns) {
    Rows rows;
    if (image != nullptr && !annotations_of(*image).empty()) {
      if (image->width == 0 || image->height == 0)
        refuse(fmt::format("image {} has no width and height", image->id));
      const View view({image->width, image->height}, options_.preprocess);
      for (const CocoAnnotation& annotation : annotations_of(*image)) {
        add_caption(annotation, rows);
        if (annotation.has_box || annotation.keypoints != 0) add_object(annotation, view, rows);
      }
    }
    std::size_t c = 0;
    if (has_boxes_) {
      columns[c++].add(bytes_of(rows.boxes));
      columns[c++].add(bytes_of(rows.labels));
      columns[c++].add(bytes_of(rows.areas));
      columns[c++].add(bytes_of(rows.crowd));
    }
    if (points_ != 0) columns[c++].add(bytes_of(rows.keypoints));
    if (has_captions_) columns[c].add(std::as_bytes(std::span(rows.captions)));
  }

  // Line breaks separate captions, so there are none in a caption.
  void add_caption(const CocoAnnotation& annotation, Rows& rows) const {
    if (annotation.caption == 0) return;
    std::string text = coco_.captions[annotation.caption - 1];
    for (char& c : text)
      if (c == '\n' || c == '\r') c = ' ';
    text.erase(text.find_last_not_of(' ') + 1);
    if (!rows.captions.empty()) rows.captions += '\n';
    rows.captions += text;
  }

  void add_object(const CocoAnnotation& annotation, const View& view, Rows& rows) {
    const auto category =
        std::lower_bound(coco_.categories.begin(), coco_.categories.end(), annotation.category,
                         [](const CocoCategory& of, std::int64_t id) { return of.id < id; });
    if (category == coco_.categories.end() || category->id != annotation.category)
      return missing(counts_.unknown_category,
                     fmt::format("annotation {} is of category {}, which the file does not have",
                                 annotation.id, annotation.category));
    const auto& [x, y, width, height] = annotation.box;
    if (has_boxes_ && !(width > 0 && height > 0 && std::isfinite(x + width) && std::isfinite(y + height)))
      return missing(counts_.invalid_boxes,
                     fmt::format("annotation {} has a bbox of {} x {} pixels at {}, {}", annotation.id, width,
                                 height, x, y));
    if (has_boxes_) {
      const double left = std::clamp(view.x(x), 0.0, view.width);
      const double right = std::clamp(view.x(x + width), 0.0, view.width);
      const double top = std::clamp(view.y(y), 0.0, view.height);
      const double bottom = std::clamp(view.y(y + height), 0.0, view.height);
      const std::array<float, 4> box{static_cast<float>(left), static_cast<float>(top),
                                     static_cast<float>(right), static_cast<float>(bottom)};
      if (!(box[0] < box[2] && box[1] < box[3])) {
        if (counts_.cut_away.number++ == 0)
          counts_.cut_away.first = fmt::format("annotation {} lies outside of the sample", annotation.id);
        return;
      }
      rows.boxes.insert(rows.boxes.end(), box.begin(), box.end());
      rows.labels.push_back(category - coco_.categories.begin());
      const double area = annotation.has_area ? annotation.area : width * height;
      rows.areas.push_back(static_cast<float>(area * view.scale_x * view.scale_y));
      rows.crowd.push_back(annotation.crowd ? 1 : 0);
    }
    ++counts_.objects;
    add_keypoints(annotation, view, rows);
  }

  void add_keypoints(const CocoAnnotation& annotation, const View& view, Rows& rows) const {
    for (std::uint32_t k = 0; k < points_; k += 3) {
      std::array<float, 3> point{};
      if (annotation.keypoints != 0) {
        const float* const of = coco_.keypoints.data() + annotation.keypoints_begin + k;
        const double x = view.x(of[0]);
        const double y = view.y(of[1]);
        const bool inside = x >= 0 && x <= view.width && y >= 0 && y <= view.height;
        if (of[2] != 0 && inside) point = {static_cast<float>(x), static_cast<float>(y), of[2]};
      }
      rows.keypoints.insert(rows.keypoints.end(), point.begin(), point.end());
    }
  }

  const Options& options_;
  const std::string file_;
  const Coco coco_;
  bool has_boxes_ = false;
  bool has_captions_ = false;
  std::uint32_t points_ = 0;             // numbers of the keypoints of an annotation
  std::vector<std::uint32_t> image_of_;  // of each input
  std::vector<std::uint32_t> input_of_;  // of each image
  AnnotationCounts counts_;
};

CocoAnnotations::CocoAnnotations(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
CocoAnnotations::~CocoAnnotations() = default;
void CocoAnnotations::choose(InputList& list) { impl_->choose(list); }
CocoTable CocoAnnotations::table(const InputList& list) { return impl_->table(list); }

}  // namespace shard::convert
