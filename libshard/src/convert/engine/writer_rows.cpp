// What the engine asks a Writer for: its shards, and its rows as samples.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/writer_impl.hpp"
#include "convert/plan/choose.hpp"
#include "convert/plan/sample_maker.hpp"
#include "convert/sources/input_file.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"
#include "shard/image/wide.hpp"

namespace shard::convert {

namespace {
constexpr std::uint64_t kLookedAt = 64;
}  // namespace

void Writer::Impl::stop() noexcept {
  const std::lock_guard lock(mutex);
  stopping = true;
  has_rows.notify_all();
}

bool Writer::Impl::wait_for_row(std::unique_lock<std::mutex>& lock) {
  has_rows.wait(lock, [&] { return stopping || ended || !queue.empty(); });
  return !stopping && !queue.empty();
}

std::optional<ShardToFill> Writer::Impl::next_shard() {
  std::unique_lock lock(mutex);
  if (!wait_for_row(lock)) return std::nullopt;
  ShardToFill shard{shards++, per_shard, ShardWriterOptions(spec)};
  shard.options.preallocate = false;  // the last shard ends where the rows end
  // Keys are usually about as long as those before. If not, rows are moved when the shard is published.
  const std::uint64_t keys_before =
      filling.rows != 0 ? per_shard * filling.key_bytes / filling.rows : per_shard * queue.front().key.size();
  shard.options.planned_key_bytes = std::min(keys_before, kMaxHeadRowBytes - per_shard * head_row);
  filling = {};
  return shard;
}

bool Writer::Impl::take(WriterRow& row, bool& look) {
  std::unique_lock lock(mutex);
  if (!wait_for_row(lock)) return false;
  const std::uint64_t head_bytes = head_bytes_of(queue.front(), queue.front().key);
  if (filling.head_bytes + head_bytes > kMaxHeadRowBytes) return false;
  row = std::move(queue.front());
  queue.pop_front();
  queue_bytes -= bytes_of(row);
  look = taken < kLookedAt || taken % kLookedAt == 0;
  ++taken;
  ++filling.rows;
  filling.key_bytes += row.key.size();
  filling.head_bytes += head_bytes;
  has_room.notify_all();
  return true;
}

class Writer::Impl::Reader final : public RowReader {
 public:
  Reader(Impl& of, image::MemoryBudget& budget)
      : of_(of),
        options_(of.options),
        reader_(std::filesystem::path()),
        maker_(options_.preprocess, options_.codec,
               options_.no_sample_digest ? JpegFiles::read : JpegFiles::decode),
        decode_(decode_options(options_, &of.stopping)) {
    decode_.memory = &budget;
  }

  bool take(std::uint64_t, std::uint64_t, InputRow& input) override {
    if (!of_.take(row_, look_)) return false;
    input.key = row_.key;
    return true;
  }

  std::uint64_t read(InputRow& input) override {
    file_ = row_.file.empty() ? std::span<const std::byte>(row_.image) : reader_.read(row_.file.string());
    input.size_bytes = file_.size();
    input.digest = xxh3(file_);
    return file_.size();
  }

  void decode(RowSample& sample) override {
    sample.warnings = {};
    sample.jpeg = {};
    if (options_.tensor) {
      sample.image = {file_};
      sample.image_bytes = file_.size();
    } else {
      if (row_.is_array && !options_.preprocess.wide()) require_rgb_array(file_, options_.max_pixels);
      if (look_ && !options_.preprocess.free_size) look();
      if (row_.pixels && row_.file.empty())
        resize(*row_.pixels);
      else
        sample.warnings = maker_.run_file(file_, decode_);
      sample.image = maker_.values();
      sample.image_bytes = maker_.made().size_bytes();
      sample.jpeg = maker_.jpeg_use();
    }
    sample.columns.assign(row_.columns.begin(), row_.columns.end());
    fields_.clear();
    for (std::size_t i = 0; i < row_.images.size(); ++i) {
      const image::Size size = of_.size_of_image(row_, i);
      if (!options_.tensor) require_size_of_image(of_.spec.fields[i], size);
      fields_.emplace_back(row_.images[i], size.height, size.width);
    }
    sample.fields = fields_;
  }

  void release() noexcept override { row_ = {}; }

 private:
  // A mask of any size belongs to the pixels of its image, as in conversions of files.
  void require_size_of_image(const FieldSpec& field, image::Size size) const {
    const SampleSpec& image = maker_.made();
    if (field.role != FieldRole::mask || !field.spec.is_free()) return;
    if (size == image::Size{image.width, image.height}) return;
    throw Error(
        ErrorCode::corrupt,
        fmt::format("the mask {} has {}x{} pixels, and its image is stored with {}x{}: give a mask of the "
                    "stored size",
                    quoted(field.name), size.width, size.height, image.width, image.height));
  }

  // Nothing is enlarged in silence.
  void look() {
    image::Size size;
    if (row_.pixels && row_.file.empty()) {
      size = {row_.pixels->width, row_.pixels->height};
    } else {
      try {
        const image::WideInfo info = image::read_wide_info(file_, options_.max_pixels);
        size = {info.width, info.height};
      } catch (const Error&) {
        return;  // decode() says what is wrong with it
      }
    }
    const std::lock_guard lock(of_.mutex);
    of_.small.add(size, options_.preprocess);
  }

  void resize(const Pixels& pixels) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file_.data());
    const std::size_t count = std::size_t{pixels.width} * pixels.height;
    if (count > options_.max_pixels)
      throw Error(ErrorCode::unsupported,
                  fmt::format("has {} pixels, more than {}", count, options_.max_pixels));
    // Samples with channels of their own have those of the pixels, but for alpha where they are not four.
    const bool wide = options_.preprocess.wide();
    const std::uint32_t kept =
        pixels.channels == 4 && options_.sample_spec().channels != 4 ? 3 : pixels.channels;
    const std::uint32_t wanted = wide ? kept : 3;
    if (pixels.channels != wanted) {
      rgb_.resize(count * wanted);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < wanted; ++c)
          rgb_[wanted * i + c] = bytes[pixels.channels == 1 ? i : pixels.channels * i + c];
      bytes = rgb_.data();
    }
    if (wide)
      return maker_.run(image::WideView{reinterpret_cast<const std::byte*>(bytes), DType::u8, wanted,
                                        pixels.width, pixels.height});
    maker_.run(image::RgbView{bytes, pixels.width, pixels.height, std::size_t{pixels.width} * 3});
  }

  Impl& of_;
  const WriterOptions& options_;
  WriterRow row_;
  bool look_ = false;
  InputReader reader_;
  std::span<const std::byte> file_;
  SampleMaker maker_;
  image::DecodeOptions decode_;
  std::vector<std::uint8_t> rgb_;
  std::vector<SampleValues> fields_;
};

std::unique_ptr<RowReader> Writer::Impl::reader(image::MemoryBudget& budget) {
  return std::make_unique<Reader>(*this, budget);
}

}  // namespace shard::convert
