// Reads, decodes and stores the further images of an input. Each worker has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "convert/plan/further_images.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/image/decode.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// Not thread safe.
class FurtherReader {
 public:
  // `fields` must outlive the reader.
  explicit FurtherReader(const std::vector<FurtherField>& fields);

  // Reads the files of an input, whose own digest is `image`. Returns the digest over all of them, which
  // inputs.csv records: `image` itself if there are no fields. Errors: UnreadableInput, naming field and
  // file; invalid_argument (a file has another size than when the plan was made); resource.
  std::uint64_t read(std::uint64_t input, std::uint64_t image);
  // Of the files read last.
  std::uint64_t bytes_read() const noexcept;
  // The samples of the files that were read last, in the order of the fields. Valid until the next call.
  // `upright` is the size of the image, which a file must have too, and `image` what is stored of it. Errors:
  // corrupt, naming field, file, value and bound; cancelled.
  std::span<const SampleValues> samples(image::Decoder& decoder, image::Size upright, const SampleSpec& image,
                                        const image::DecodeOptions& decode);

 private:
  struct Field {
    explicit Field(const FurtherField& field);
    const FurtherField* of;
    InputReader reader;
    image::Preprocessor preprocessor;
    std::vector<bool> known;          // of masks, by value
    std::span<const std::byte> file;  // empty: the input has none
    std::uint64_t input = 0;
    std::vector<std::byte> sample;
  };
  static void make_sample(Field& field, image::Decoder& decoder, image::Size upright,
                          const image::DecodeOptions& decode);

  std::vector<Field> fields_;
  std::vector<SampleValues> samples_;
};

}  // namespace shard::convert
