#include "convert/engine/source_images.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/plan_reader.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kFrontBytes = std::size_t{64} << 10U;  // of a JPEG file, in which its header usually is
constexpr std::size_t kSweep = 1024;                         // samples that are remembered before a look

// "photos/": image "cat/1.jpg": why.
std::string named(const Options& options, const std::string& key, const std::string& why) {
  return fmt::format("{}: image {}: {}", quoted(std::filesystem::path(options.images)), quoted_key(key), why);
}

image::Size size_in(std::span<const std::byte> file, std::uint32_t page, const Options& options) {
  if (options.preprocess.wide()) {
    const image::WideInfo info = image::read_wide_info(file, options.max_pixels, page);
    return {info.width, info.height};
  }
  const image::ImageInfo info = image::read_info(file, options.max_pixels, page);
  return {info.upright_width(), info.upright_height()};
}

// The size of an image, upright. Reads no more of a JPEG file than its header needs. Nothing: what the file
// has cannot be told from its header.
std::optional<image::Size> upright_size(InputReader& reader, const Input& input, const Options& options) {
  std::span<const std::byte> file = reader.read_front(input, kFrontBytes);
  if (file.size() == kFrontBytes) {
    try {
      if (image::detect_format(file) == image::Format::jpeg) return size_in(file, 0, options);
    } catch (const Error&) {  // the header is longer, or the whole file tells why not
    }
    file = reader.read(input);
  }
  try {
    return size_in(file, input.page_number(), options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

struct SourceImages::Shared {
  explicit Shared(const Options& options)
      : memory(options.decode_memory_bytes != 0 ? options.decode_memory_bytes
                                                : image::MemoryBudget::default_bytes()) {}

  const pid_t process = ::getpid();
  image::MemoryBudget memory;
  std::mutex mutex;  // guards all below
  std::vector<std::unique_ptr<PlanReader>> idle;
  std::unordered_map<std::uint64_t, std::weak_ptr<const MadeSample>> made;
  std::size_t sweep_at = kSweep;
  std::shared_ptr<const MadeSample> last;  // a caller reads its size, its digest, its bytes

  std::shared_ptr<const MadeSample> find(std::uint64_t input) {
    const std::lock_guard lock(mutex);
    const auto found = made.find(input);
    return found == made.end() ? nullptr : found->second.lock();
  }
  void keep(std::uint64_t input, const std::shared_ptr<const MadeSample>& sample) {
    const std::lock_guard lock(mutex);
    made[input] = sample;
    last = sample;
    if (made.size() < sweep_at) return;
    std::erase_if(made, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max(kSweep, 2 * made.size());
  }
};

SourceImages::SourceImages(Plan plan, const Options& options, const Hooks& hooks)
    : plan_(std::move(plan)), options_(options), spec_(convert::spec_of(options, plan_)), shared_(nullptr) {
  options_.no_sample_digest = false;  // which would leave JPEG files undecoded
  spec_.codec = {};
  for (std::size_t i = 0; i < spec_.fields.size(); ++i) {
    spec_.fields[i].codec = {};
    if (spec_.fields[i].spec.is_free() && plan_.further[i].from.any_size)
      throw Error(ErrorCode::unsupported,
                  fmt::format("field {}: its files may have other sizes than their images, and samples are of "
                              "any size, so its sizes are not known before all files are decoded: convert the "
                              "images, or give a size",
                              quoted(spec_.fields[i].name)));
  }
  if (spec_.spec.is_free()) find_sizes(hooks);
}

SourceImages::~SourceImages() {
  Shared* const shared = shared_.load(std::memory_order_acquire);
  if (shared != nullptr && shared->process == ::getpid()) delete shared;
}

void SourceImages::find_sizes(const Hooks& hooks) {
  sizes_.assign(plan_.list.inputs.size(), image::Size{1, 1});
  std::vector<std::unique_ptr<InputReader>> readers(options_.threads());
  parallel_for(options_.threads(), sizes_.size(), [&](unsigned thread, std::uint64_t i) {
    if (hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "cancelled while the sizes of images were read");
    std::unique_ptr<InputReader>& reader = readers[thread];
    if (!reader) reader = std::make_unique<InputReader>(plan_.list);
    try {
      const auto upright = upright_size(*reader, plan_.list.inputs[i], options_);
      if (upright) {
        const image::Box box =
            image::crop_box(image::resized_size(*upright, options_.preprocess), options_.preprocess);
        sizes_[i] = {box.width, box.height};
      } else {
        const SampleSpec made = read(i)->images.front().spec;
        sizes_[i] = {made.width, made.height};
      }
    } catch (const UnusableImage&) {  // an error of whoever reads it
    } catch (const Error& error) {
      if (ends_run(error, false)) throw;
    }
  });
}

SampleSpec SourceImages::spec_of(std::size_t image, std::uint64_t input) const {
  const SampleSpec& spec = image == 0 ? spec_.spec : spec_.fields[image - 1].spec;
  if (!spec.is_free()) return spec;
  return spec.sized(sizes_[input].height, sizes_[input].width);
}

std::vector<LargestSample> SourceImages::largest(std::uint64_t first, std::uint64_t count) const {
  std::vector<LargestSample> all(1 + spec_.fields.size());
  for (std::size_t image = 0; image < all.size(); ++image) {
    if (!(image == 0 ? spec_.spec : spec_.fields[image - 1].spec).is_free()) continue;
    for (std::uint64_t i = first; i < first + count; ++i) {
      const SampleSpec of = spec_of(image, i);
      all[image].include({of.height, of.width, of.size_bytes(), of.size_bytes()});
    }
  }
  return all;
}

SourceImages::Shared& SourceImages::shared() const {
  Shared* there = shared_.load(std::memory_order_acquire);
  while (there == nullptr || there->process != ::getpid()) {
    auto fresh = std::make_unique<Shared>(options_);
    if (shared_.compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel))
      there = fresh.release();  // what a parent had is its own, and stays where it is
  }
  return *there;
}

std::shared_ptr<const MadeSample> SourceImages::make(std::uint64_t input) const {
  Shared& shared = this->shared();
  if (auto there = shared.find(input)) return there;
  std::shared_ptr<const MadeSample> sample = read(input);
  check_size(input, *sample);
  shared.keep(input, sample);
  return sample;
}

void SourceImages::check_size(std::uint64_t input, const MadeSample& made) const {
  for (std::size_t image = 0; image < made.images.size(); ++image) {
    const SampleSpec& is = made.images[image].spec;
    const SampleSpec listed = spec_of(image, input);
    if (is == listed) continue;
    throw Error(ErrorCode::invalid_argument,
                named(options_, plan_.list.inputs[input].key(),
                      fmt::format("its sample has {} x {} pixels now, but had {} x {} when this run started: "
                                  "files must not change while they are read; start again",
                                  is.width, is.height, listed.width, listed.height)));
  }
}

std::shared_ptr<const MadeSample> SourceImages::read(std::uint64_t input) const {
  Shared& shared = this->shared();
  std::unique_ptr<PlanReader> reader;
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.idle.empty()) {
      reader = std::move(shared.idle.back());
      shared.idle.pop_back();
    }
  }
  if (!reader) reader = std::make_unique<PlanReader>(plan_, options_, nullptr, shared.memory);
  auto made = std::make_shared<MadeSample>();
  InputRow row;
  reader->take(input / plan_.per_shard, input % plan_.per_shard, row);
  bool was_read = false;
  try {
    reader->read(row);
    was_read = true;
    RowSample sample;
    reader->decode(sample);
    const std::span<const std::byte> pixels = reader->pixels();
    made->images.push_back({reader->made(), {pixels.begin(), pixels.end()}});
    for (std::size_t i = 0; i < sample.fields.size(); ++i) {
      const SampleValues& of = sample.fields[i];
      const SampleSpec& spec = spec_.fields[i].spec;
      made->images.push_back({spec.is_free() ? spec.sized(of.height, of.width) : spec,
                              {of.bytes.begin(), of.bytes.end()}});
    }
  } catch (const Error& error) {  // the reader may be used again: its next input overwrites all
    if (ends_run(error, was_read)) throw Error(error.code(), named(options_, row.key, error.what()));
    throw UnusableImage(ErrorCode::corrupt, named(options_, row.key, reject_reason(error)));
  }
  reader->release();
  const std::lock_guard lock(shared.mutex);
  shared.idle.push_back(std::move(reader));
  return made;
}

}  // namespace shard::convert
