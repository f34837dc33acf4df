#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shard/safetensors.hpp"

namespace shard {
namespace {

constexpr std::size_t kMaxAxes = 64;  // numpy's bound as of version 2
constexpr std::size_t kMaxTensors = std::size_t{1}
                                    << 18;  // far above any model; bounds the time for a hostile header
constexpr std::size_t kQuotedBytes = 100;

// dtypes of the reference implementation that have no counterpart here: tensors of them are listed, not read.
struct ForeignDType {
  std::string_view name;
  std::uint64_t bits;  // of an element
};
constexpr ForeignDType kForeignDTypes[] = {{"F8_E4M3", 8},     {"F8_E5M2", 8},     {"F8_E8M0", 8},
                                           {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
                                           {"F6_E3M2", 6},     {"F4", 4},          {"C64", 64}};

[[noreturn]] void corrupt(const std::string& why) {
  throw Error(ErrorCode::corrupt, "safetensors header: " + why);
}

// Builds the tensor table while the JSON is read, and refuses it at the first event that breaks a rule.
class TableBuilder final : public JsonHandler {
 public:
  TableBuilder(SafetensorsHeader& header, std::uint64_t data_bytes)
      : header_(header), data_bytes_(data_bytes) {}

  void null() override { refuse("null"); }
  void boolean(bool) override { refuse("true or false"); }
  void other_number(std::string_view text) override {
    refuse(text.starts_with('-') ? std::string("a negative number")
                                 : fmt::format("the number {} (not an integer from 0 to 2^64 - 1)",
                                               text.substr(0, kQuotedBytes)));
  }

  void unsigned_integer(std::uint64_t value) override {
    if (where_ == Where::shape) {
      if (tensor_.shape.size() == kMaxAxes)
        corrupt(fmt::format("tensor {} has more than {} axes", quoted_excerpt(tensor_.name), kMaxAxes));
      tensor_.shape.push_back(value);
    } else if (where_ == Where::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
    } else {
      refuse("a number");
    }
  }

  void string(std::string&& value) override {
    if (where_ == Where::metadata) {
      if (!header_.metadata.emplace(member_, std::move(value)).second)
        corrupt(fmt::format("__metadata__ names {} twice", quoted_excerpt(member_)));
    } else if (where_ == Where::tensor && member_ == "dtype") {
      take_dtype(value);
    } else {
      refuse("a string");
    }
  }

  void begin_object() override {
    if (where_ == Where::document) {
      where_ = Where::root;
    } else if (where_ == Where::root && member_ == "__metadata__") {
      if (std::exchange(has_metadata_, true)) corrupt("__metadata__ occurs twice");
      where_ = Where::metadata;
    } else if (where_ == Where::root) {
      tensor_ = TensorInfo{};
      tensor_.name = std::move(member_);
      has_dtype_ = has_shape_ = has_offsets_ = false;
      where_ = Where::tensor;
    } else {
      refuse("an object");
    }
  }

  void key(std::string&& name) override { member_ = std::move(name); }

  void end_object() override {
    if (where_ == Where::tensor) finish_tensor();
    where_ = where_ == Where::root ? Where::document : Where::root;
  }

  void begin_array() override {
    if (where_ == Where::tensor && member_ == "shape" && !std::exchange(has_shape_, true)) {
      where_ = Where::shape;
    } else if (where_ == Where::tensor && member_ == "data_offsets" && !std::exchange(has_offsets_, true)) {
      offsets_ = 0;
      where_ = Where::offsets;
    } else {
      refuse("an array");
    }
  }

  void end_array() override {
    if (where_ == Where::offsets && offsets_ != 2)
      corrupt(fmt::format("tensor {}: data_offsets needs two numbers", quoted_excerpt(tensor_.name)));
    where_ = Where::tensor;
  }

 private:
  enum class Where { document, root, metadata, tensor, shape, offsets };

  [[noreturn]] void refuse(const std::string& found) const {
    switch (where_) {
      case Where::document:
        corrupt(fmt::format("it is {}, not one object", found));
      case Where::root:
        corrupt(fmt::format("{} is {}: it must be an object", quoted_excerpt(member_), found));
      case Where::metadata:
        corrupt(fmt::format("__metadata__ {} is {}: it must be a string", quoted_excerpt(member_), found));
      case Where::tensor:
        corrupt(
            fmt::format("tensor {}: member {} is {}: only one \"dtype\" (a string), \"shape\" and "
                        "\"data_offsets\" (arrays) are allowed",
                        quoted_excerpt(tensor_.name), quoted_excerpt(member_), found));
      case Where::shape:
        corrupt(fmt::format("tensor {}: shape holds {}", quoted_excerpt(tensor_.name), found));
      case Where::offsets:
        corrupt(fmt::format("tensor {}: data_offsets holds {}, or more than two",
                            quoted_excerpt(tensor_.name), found));
    }
    corrupt("malformed");
  }

  void take_dtype(const std::string& value) {
    if (std::exchange(has_dtype_, true))
      corrupt(fmt::format("tensor {} has two dtypes", quoted_excerpt(tensor_.name)));
    const std::optional<DType> dtype = dtype_from_safetensors(value);
    if (dtype) {
      tensor_.dtype = *dtype;
      element_bits_ = 8 * shard::size_bytes(*dtype);
      return;
    }
    const auto* const foreign = std::find_if(std::begin(kForeignDTypes), std::end(kForeignDTypes),
                                             [&](const ForeignDType& known) { return known.name == value; });
    if (foreign == std::end(kForeignDTypes))
      corrupt(fmt::format("tensor {} has dtype {}, which is not known", quoted_excerpt(tensor_.name),
                          quoted_excerpt(value)));
    tensor_.foreign_dtype = foreign->name;
    element_bits_ = foreign->bits;
  }

  void finish_tensor() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      corrupt(fmt::format("tensor {} has no {}", quoted_excerpt(tensor_.name),
                          !has_dtype_   ? "dtype"
                          : !has_shape_ ? "shape"
                                        : "data_offsets"));
    }
    std::optional<std::uint64_t> bits = element_bits_;
    for (std::uint64_t axis : tensor_.shape) {
      bits = checked_mul(*bits, axis);
      if (!bits)
        corrupt(fmt::format("tensor {}: the product of its shape overflows 64 bits",
                            quoted_excerpt(tensor_.name)));
    }
    if (*bits % 8 != 0)
      corrupt(fmt::format("tensor {}: its elements take {} bits, which is not a whole number of bytes",
                          quoted_excerpt(tensor_.name), *bits));
    const std::uint64_t bytes = *bits / 8;
    if (tensor_.begin > tensor_.end) {
      corrupt(fmt::format("tensor {} starts at {}, after its end at {}", quoted_excerpt(tensor_.name),
                          tensor_.begin, tensor_.end));
    }
    if (tensor_.end > data_bytes_) {
      corrupt(fmt::format("tensor {} ends at byte {} of the data, which has {}", quoted_excerpt(tensor_.name),
                          tensor_.end, data_bytes_));
    }
    if (tensor_.size_bytes() != bytes) {
      corrupt(fmt::format("tensor {} takes {} bytes, but shape and dtype make {}",
                          quoted_excerpt(tensor_.name), tensor_.size_bytes(), bytes));
    }
    if (header_.tensors.size() == kMaxTensors) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("safetensors header: more than {} tensors", kMaxTensors));
    }
    header_.tensors.push_back(std::move(tensor_));
  }

  SafetensorsHeader& header_;
  std::uint64_t data_bytes_;
  Where where_ = Where::document;
  std::string member_;  // the last key
  TensorInfo tensor_;
  std::uint64_t element_bits_ = 0;  // of tensor_
  int offsets_ = 0;
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
};

void check_unique_names(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) corrupt(fmt::format("tensor {} occurs twice", quoted_excerpt(*twice)));
}

// Sorted by begin: each tensor starts where the one before ends, the last ends where the file does.
void check_cover(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) {
  std::uint64_t expected = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != expected) {
      corrupt(fmt::format("tensor {} starts at byte {} of the data, the one before ends at {}: {}",
                          quoted_excerpt(tensor.name), tensor.begin, expected,
                          tensor.begin > expected ? "a hole" : "they overlap"));
    }
    expected = tensor.end;
  }
  if (expected != data_bytes) {
    corrupt(fmt::format(
        "the tensors end at byte {} of the data, which has {}: the file is extended or a tensor is missing",
        expected, data_bytes));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> head, std::uint64_t file_size_bytes) {
  SafetensorsHeader header;
  header.data_begin = safetensors_header_end(head, file_size_bytes);
  if (head.size() < header.data_begin)
    corrupt(fmt::format("only {} of its {} bytes are there", head.size(), header.data_begin));
  std::string_view json = as_text(head.subspan(8, static_cast<std::size_t>(header.data_begin - 8)));
  if (!json.starts_with('{')) corrupt("it does not start with '{'");
  json = json.substr(0, json.find_last_not_of(' ') + 1);

  const std::uint64_t data_bytes = file_size_bytes - header.data_begin;
  TableBuilder builder(header, data_bytes);
  parse_json(json, builder, "safetensors header");
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_unique_names(header.tensors);
  check_cover(header.tensors, data_bytes);
  return header;
}

}  // namespace shard
