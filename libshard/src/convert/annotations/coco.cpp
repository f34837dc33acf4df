#include "convert/annotations/coco.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "convert/annotations/coco_parse.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

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
    require_annotations();
    require_categories();
    note_annotations_without_image();
    take_inputs(list);
  }

  AnnotationTable table(const InputList& list) {
    match(list);
    if (!has_boxes_ && points_ == 0 && !has_captions_)
      refuse("none of its annotations has a bbox, keypoints or a caption");
    AnnotationTable table;
    ObjectColumns columns(has_boxes_, points_ / 3);
    ColumnTable captions(ColumnSpec{"captions", DType::u8, {}, ColumnKind::text});
    std::vector<std::string> names;
    for (const CocoCategory& category : coco_.categories) names.push_back(category.name);
    table.categories = category_list(names);
    for (const std::uint32_t image : image_of_) {
      const CocoImage* const of = image == kNone ? nullptr : &coco_.images[image];
      table.sizes.push_back(of == nullptr ? image::Size{} : image::Size{of->width, of->height});
      add_rows(of, columns, captions);
    }
    table.columns = std::move(columns.tables());
    table.targets = columns.targets();
    if (has_captions_) table.columns.push_back(std::move(captions));
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

  // Why no input has the annotation; empty if one has it.
  std::string without_input(const CocoAnnotation& annotation) const {
    const CocoImage* const image = image_with(annotation.image);
    if (image == nullptr)
      return fmt::format("annotation {} is of image {}, which the file does not have", annotation.id,
                         annotation.image);
    if (input_of_[static_cast<std::size_t>(image - coco_.images.data())] != kNone) return {};
    return fmt::format("annotation {} is of {}, which is not among the inputs", annotation.id,
                       quoted_key(escape_key(image->file_name)));
  }

  void note_annotations_without_image() {
    for (const CocoAnnotation& annotation : coco_.annotations)
      if (const std::string why = without_input(annotation); !why.empty())
        missing(counts_.without_image, why);
  }

  // A file whose annotations are all of other images is not that of these inputs.
  void require_annotations() const {
    const auto& all = coco_.annotations;
    if (all.empty() || std::any_of(all.begin(), all.end(),
                                   [&](const auto& annotation) { return without_input(annotation).empty(); }))
      return;
    refuse(
        fmt::format("none of its {} annotations is of an input: {}; give the file of these images, with the "
                    "ids of its images as image_id",
                    all.size(), without_input(all.front())));
  }

  // An object has a category, a caption has none.
  bool is_object(const CocoAnnotation& annotation) const {
    return annotation.has_box || annotation.keypoints != 0 || (has_boxes_ && annotation.caption == 0);
  }
  const CocoCategory* category_of(const CocoAnnotation& annotation) const {
    const auto at = std::lower_bound(coco_.categories.begin(), coco_.categories.end(), annotation.category,
                                     [](const CocoCategory& of, std::int64_t id) { return of.id < id; });
    return at == coco_.categories.end() || at->id != annotation.category ? nullptr : &*at;
  }
  static std::string unknown_category(const CocoAnnotation& annotation) {
    return fmt::format("annotation {} is of category {}, which the file does not have", annotation.id,
                       annotation.category);
  }

  void require_categories() const {
    const auto& all = coco_.annotations;
    const auto first =
        std::find_if(all.begin(), all.end(), [&](const auto& annotation) { return is_object(annotation); });
    if (first == all.end() || std::any_of(first, all.end(), [&](const auto& annotation) {
          return is_object(annotation) && category_of(annotation) != nullptr;
        }))
      return;
    refuse(
        fmt::format("none of its objects is of one of its {} categories: {}; complete its list of categories",
                    coco_.categories.size(), unknown_category(*first)));
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

  void add_rows(const CocoImage* image, ObjectColumns& columns, ColumnTable& captions) {
    ObjectRows rows;
    std::string text;
    if (image != nullptr && !annotations_of(*image).empty()) {
      if (image->width == 0 || image->height == 0)
        refuse(fmt::format("image {} has no width and height", image->id));
      const image::Size size{image->width, image->height};
      const SampleView view(size, size, options_.preprocess);
      bool first = true;
      for (const CocoAnnotation& annotation : annotations_of(*image)) {
        add_caption(annotation, text, first);
        if (is_object(annotation)) add_object(annotation, size, view, rows);
      }
    }
    columns.add(rows);
    captions.add(std::as_bytes(std::span(text)));
  }

  // Line breaks separate captions, so there are none in a caption.
  void add_caption(const CocoAnnotation& annotation, std::string& captions, bool& first) const {
    if (annotation.caption == 0) return;
    std::string text = coco_.captions[annotation.caption - 1];
    for (char& c : text)
      if (c == '\n' || c == '\r') c = ' ';
    text.erase(text.find_last_not_of(' ') + 1);
    if (!std::exchange(first, false)) captions += '\n';
    captions += text;
  }

  void add_object(const CocoAnnotation& annotation, image::Size size, const SampleView& view,
                  ObjectRows& rows) {
    const CocoCategory* const category = category_of(annotation);
    if (category == nullptr) return missing(counts_.unknown_category, unknown_category(annotation));
    const auto& [x, y, width, height] = annotation.box;
    if (has_boxes_ && !annotation.has_box)
      return missing(counts_.invalid_boxes, fmt::format("annotation {} has no bbox", annotation.id));
    constexpr double kMost = 1e9;
    if (has_boxes_ &&
        !(width > 0 && height > 0 && std::max({std::abs(x), std::abs(y), width, height}) <= kMost))
      return missing(counts_.invalid_boxes,
                     fmt::format("annotation {} has a bbox of {} x {} pixels at {}, {}", annotation.id, width,
                                 height, x, y));
    if (annotation.has_area && annotation.area < 0)
      return missing(counts_.invalid_boxes,
                     fmt::format("annotation {} has an area of {}", annotation.id, annotation.area));
    const ImageObject object{{x, y, x + width, y + height},
                             annotation.has_area ? annotation.area : width * height,
                             category - coco_.categories.data(),
                             annotation.crowd};
    if (has_boxes_ && reaches_beyond(object.box, size.width, size.height, 1) &&
        counts_.beyond_image.number++ == 0)
      counts_.beyond_image.first =
          fmt::format("annotation {} has a bbox of {} x {} pixels at {}, {} in an image of {} x {}",
                      annotation.id, width, height, x, y, size.width, size.height);
    if (has_boxes_ && !rows.add_box(object, view)) {
      if (counts_.cut_away.number++ == 0)
        counts_.cut_away.first = fmt::format("annotation {} lies outside of the sample", annotation.id);
      return;
    }
    ++counts_.objects;
    rows.add_keypoints(std::span(coco_.keypoints).subspan(annotation.keypoints_begin, annotation.keypoints),
                       points_ / 3, view);
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
AnnotationTable CocoAnnotations::table(const InputList& list) { return impl_->table(list); }

}  // namespace shard::convert
