#include "convert/engine/source_images.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/bytes.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/plan_reader.hpp"
#include "convert/plan/sample_maker.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"
#include "shard/image/jpeg_originals.hpp"

namespace shard::convert {

namespace {

// Of a JPEG file, to find its header in: most are short, and bytes cost more than a second read.
constexpr std::array<std::size_t, 2> kFrontBytes{std::size_t{4} << 10U, std::size_t{64} << 10U};
constexpr std::size_t kSweep = 1024;                            // samples that are remembered before a look
constexpr std::uint64_t kMostKept = std::uint64_t{512} << 20U;  // bytes of frames that stay in memory

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

}  // namespace

struct SourceImages::Shared {
  explicit Shared(const Options& options)
      : memory(options.decode_memory_bytes != 0 ? options.decode_memory_bytes
                                                : image::MemoryBudget::default_bytes()) {}

  const pid_t process = ::getpid();
  image::MemoryBudget memory;
  Turns turns;       // where there is no cache
  std::mutex mutex;  // guards all below
  std::vector<std::unique_ptr<PlanReader>> idle;
  std::unordered_map<std::uint64_t, std::weak_ptr<const MadeSample>> made;
  std::size_t sweep_at = kSweep;
  // Frames that were made, most of them of progressive files: to transcode one takes three times as long as
  // to decode it. Those that come first stay: an epoch has each once, so no other rule would find more.
  std::unordered_map<std::uint64_t, std::shared_ptr<const MadeSample>> frames;
  std::uint64_t frames_bytes = 0;
  std::shared_ptr<const MadeSample> last;  // a caller reads its size, its digest, its bytes
  // Why inputs are rejects, where there is a cache: its finished shards leave them out and do not say why.
  std::unordered_map<std::uint64_t, std::string> rejects;

  std::shared_ptr<const MadeSample> find(std::uint64_t input) {
    const std::lock_guard lock(mutex);
    const auto found = made.find(input);
    std::shared_ptr<const MadeSample> there = found == made.end() ? nullptr : found->second.lock();
    if (there) return there;
    const auto frame = frames.find(input);
    return frame == frames.end() ? nullptr : frame->second;
  }
  // A frame that is kept is what other callers find from now on, so that they count it as kept.
  void keep(std::uint64_t input, const std::shared_ptr<const MadeSample>& sample, bool is_frame) {
    const std::shared_ptr<const MadeSample> frame = is_frame ? copy_of_frame(*sample) : nullptr;
    const std::lock_guard lock(mutex);
    made[input] = sample;
    last = sample;
    if (frame) keep_frame(input, frame);
    if (made.size() < sweep_at) return;
    std::erase_if(made, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max(kSweep, 2 * made.size());
  }
  // `file_bytes`: a transcoded file has about as many.
  bool has_room_for_frame(std::uint64_t file_bytes) {
    const std::lock_guard lock(mutex);
    return frames_bytes + file_bytes <= kMostKept;
  }
  static std::shared_ptr<const MadeSample> copy_of_frame(const MadeSample& sample) {
    auto kept = std::make_shared<MadeSample>(sample);
    kept->is_cached = true;
    return kept;
  }
  void keep_frame(std::uint64_t input, const std::shared_ptr<const MadeSample>& kept) {  // `mutex` is held
    std::uint64_t bytes = 0;
    for (const MadeSample::Image& image : kept->images) bytes += image.bytes.size();
    if (frames_bytes + bytes > kMostKept || frames.contains(input)) return;
    made[input] = kept;
    frames.emplace(input, kept);
    frames_bytes += bytes;
  }
  std::optional<std::string> why_reject(std::uint64_t input) {
    const std::lock_guard lock(mutex);
    const auto found = rejects.find(input);
    return found == rejects.end() ? std::nullopt : std::optional(found->second);
  }
  void keep_reject(std::uint64_t input, const std::string& why) {
    const std::lock_guard lock(mutex);
    rejects.emplace(input, why);
  }
};

namespace {

// Codecs that make other batches than images which are not converted: a loader computes with the bytes of
// packed floats, and a field that is encoded as JPEG loses a little.
void refuse_codecs(const DatasetSpec& spec) {
  const auto refuse = [](const std::string& what) {
    throw Error(
        ErrorCode::invalid_argument,
        what + ", which images that are not converted do not have: leave `codec` out, or convert them");
  };
  const auto is_packed_float = [](const CodecSpec& codec, DType dtype) {
    return codec.kind == CodecSpec::Kind::packed && is_floating(dtype);
  };
  if (is_packed_float(spec.codec, spec.spec.dtype))
    refuse("codec packed of float samples: batches are computed from their bytes");
  for (const FieldSpec& field : spec.fields) {
    if (is_packed_float(field.codec, field.spec.dtype))
      refuse(fmt::format("field {}: codec packed of floats: batches are computed from their bytes",
                         quoted(field.name)));
    if (field.codec.kind == CodecSpec::Kind::jpeg)
      refuse(fmt::format("field {}: codec {} gives its pixels other values", quoted(field.name),
                         to_string(field.codec)));
  }
}

}  // namespace

SourceImages::SourceImages(std::shared_ptr<const Plan> plan, const Options& options, const Hooks& hooks,
                           std::shared_ptr<const CachedSamples> cache)
    : plan_(std::move(plan)),
      cache_(std::move(cache)),
      options_(options),
      spec_(convert::spec_of(options, *plan_)),
      shared_(nullptr) {
  if (!cache_) options_.no_sample_digest = false;  // which would leave JPEG files undecoded
  refuse_codecs(spec_);
  spec_.codec = {};
  for (std::size_t i = 0; i < spec_.fields.size(); ++i) {
    spec_.fields[i].codec = {};
    if (spec_.fields[i].spec.is_free() && plan_->further[i].from.any_size)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("field {}: its files may have other sizes than their images, and samples are of "
                      "any size, so its sizes are not known before all files are decoded: convert the "
                      "images, or give a size",
                      quoted(spec_.fields[i].name)));
  }
  if (spec_.spec.is_free()) find_sizes(hooks);
}

SourceImages::SourceImages(const SourceImages& pixels, CodecSpec codec)
    : plan_(pixels.plan_),
      cache_(pixels.cache_),
      options_(pixels.options_),
      spec_(pixels.spec_),
      known_(pixels.known_),
      shared_(nullptr) {
  spec_.codec = codec;
  for (const Archive& archive : plan_->list.archives)
    mapped_.push_back(MappedArchive::can_hold(archive) ? std::make_unique<const MappedArchive>(archive)
                                                       : nullptr);
}

SourceImages::~SourceImages() {
  Shared* const shared = shared_.load(std::memory_order_acquire);
  if (shared != nullptr && shared->process == ::getpid()) delete shared;
}

std::shared_ptr<const SourceImages> SourceImages::with_frames() const {
  const CodecSpec codec{CodecSpec::Kind::jpeg};
  if (!known_ || !keeps_jpeg_files(options_.preprocess, codec) || !codec.can_hold(spec_.spec)) return nullptr;
  if (cache_ && !options_.no_sample_digest) return nullptr;  // pixels are stored, or their digest is
  if (std::none_of(known_->begin(), known_->end(), [](const KnownImage& of) { return of.file.bytes != 0; }))
    return nullptr;
  return std::shared_ptr<const SourceImages>(new SourceImages(*this, codec));
}

void SourceImages::find_sizes(const Hooks& hooks) {
  KeptSizes kept(*plan_, serialize_plan(record_of(*plan_, spec_)) + fmt::to_string(options_.max_pixels));
  auto known = std::make_shared<std::vector<KnownImage>>(kept.read());
  const bool was_kept = !known->empty();
  if (!was_kept) {
    kept.flush();
    known->resize(plan_->list.inputs.size());
  }
  look_at_unknown(*known, hooks);
  if (!was_kept) kept.write(*known);
  for (KnownImage& image : *known)
    if (image.width == 0) image = {1, 1, {}};  // an error of whoever reads it
  known_ = std::move(known);
}

void SourceImages::look_at_unknown(std::vector<KnownImage>& known, const Hooks& hooks) const {
  constexpr std::size_t kStep = 64;  // threads that ask for each image alone wait for each other
  const auto look_at = [&](InputReader& reader, std::size_t i) {
    if (hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "cancelled while the sizes of images were read");
    try {
      known[i] = look(reader, i);
    } catch (const UnusableImage&) {
    } catch (const Error& error) {
      if (ends_run(error, false)) throw;
    }
  };
  std::vector<std::unique_ptr<InputReader>> readers(options_.threads());
  parallel_for(
      options_.threads(), (known.size() + kStep - 1) / kStep, [&](unsigned thread, std::uint64_t step) {
        std::unique_ptr<InputReader>& reader = readers[thread];
        for (std::size_t i = step * kStep; i < std::min<std::size_t>((step + 1) * kStep, known.size()); ++i) {
          if (known[i].width != 0) continue;
          if (!reader) reader = std::make_unique<InputReader>(plan_->list);
          look_at(*reader, i);
        }
      });
}

// Reads no more of a JPEG file than its header needs, and decodes an image whose header does not tell its
// size.
KnownImage SourceImages::look(InputReader& reader, std::uint64_t input) const {
  const Input& of = plan_->list.inputs[input];
  const auto known = [&](image::Size upright, std::span<const std::byte> front, std::uint64_t bytes) {
    const image::Box box =
        image::crop_box(image::resized_size(upright, options_.preprocess), options_.preprocess);
    KnownImage found{box.width, box.height, {}};
    if (!front.empty()) found.file = image::jpeg_file_of(front, bytes).value_or(jpeg::FrameFile());
    return found;
  };
  std::span<const std::byte> file;
  bool is_jpeg = false;
  for (const std::size_t most : kFrontBytes) {
    file = reader.read_front(of, most);
    is_jpeg = image::detect_format(file) == image::Format::jpeg;
    if (!is_jpeg || file.size() != most) break;
    try {
      const KnownImage found = known(size_in(file, 0, options_), file, plan_->sizes[input]);
      if (found.file.bytes != 0 || most == kFrontBytes.back()) return found;
    } catch (const Error&) {  // the header is longer, or the whole file tells why not
    }
  }
  if (std::find(kFrontBytes.begin(), kFrontBytes.end(), file.size()) != kFrontBytes.end())
    file = reader.read(of);
  image::Size upright;
  try {
    upright = size_in(file, of.page_number(), options_);
  } catch (const Error&) {
    const SampleSpec made = read(input)->images.front().spec.sample;
    return {made.width, made.height, {}};
  }
  return known(upright, is_jpeg ? file : std::span<const std::byte>(), file.size());
}

SampleSpec SourceImages::spec_of(std::size_t image, std::uint64_t input) const {
  const SampleSpec& spec = image == 0 ? spec_.spec : spec_.fields[image - 1].spec;
  if (!spec.is_free()) return spec;
  return spec.sized((*known_)[input].height, (*known_)[input].width);
}

std::uint64_t SourceImages::bytes_of(std::size_t image, std::uint64_t input) const {
  const std::uint64_t pixels = spec_of(image, input).size_bytes();
  if (image != 0 || !gives_frames()) return pixels;
  const jpeg::FrameFile& file = (*known_)[input].file;
  return file.bytes != 0 ? image::jpeg_frame_bytes(file) : round_up(pixels, kMadeAlignment);
}

std::vector<LargestSample> SourceImages::largest(std::uint64_t first, std::uint64_t count) const {
  std::vector<LargestSample> all(1 + spec_.fields.size());
  for (std::size_t image = 0; image < all.size(); ++image) {
    if (!(image == 0 ? spec_.spec : spec_.fields[image - 1].spec).is_free()) continue;
    for (std::uint64_t i = first; i < first + count; ++i) {
      const SampleSpec of = spec_of(image, i);
      // Any file may turn out to be one that no frame holds.
      const std::uint64_t stored =
          std::max(bytes_of(image, i), gives_frames() ? round_up(of.size_bytes(), kMadeAlignment) : 0);
      all[image].include({of.height, of.width, of.size_bytes(), stored});
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
  const Turns::Turn turn(cache_ ? cache_->turns() : shared.turns, input);
  if (auto there = shared.find(input)) return there;  // another thread has made it meanwhile
  std::shared_ptr<const MadeSample> sample = cache_ ? find(input) : nullptr;
  if (!sample)
    if (const std::optional<std::string> why = shared.why_reject(input)) throw unusable(input, *why);
  if (!sample) sample = read(input);
  check_size(input, *sample);
  shared.keep(input, sample, !cache_ && sample->images.front().spec.file.bytes != 0);
  return sample;
}

void SourceImages::check_size(std::uint64_t input, const MadeSample& made) const {
  for (std::size_t image = 0; image < made.images.size(); ++image) {
    const SampleSpec& is = made.images[image].spec.sample;
    const SampleSpec listed = spec_of(image, input);
    if (is == listed) continue;
    throw Error(ErrorCode::invalid_argument,
                named(options_, plan_->list.inputs[input].key(),
                      fmt::format("its sample has {} x {} pixels now, but had {} x {} when this run started: "
                                  "files must not change while they are read; start again",
                                  is.width, is.height, listed.width, listed.height)));
  }
}

// An image on a server takes as long as many that are decoded, so it is made ahead. What a cache stores is
// made.
std::optional<jpeg::FrameFile> SourceImages::file_of(std::uint64_t input) const {
  if (cache_ || !gives_frames() || !spec_.fields.empty() || (*known_)[input].file.bytes == 0)
    return std::nullopt;
  const Input& of = plan_->list.inputs[input];
  if (plan_->list.on_server(of) || of.page != Input::kNoPage) return std::nullopt;
  const jpeg::FrameFile& file = (*known_)[input].file;
  if (!plan_->stated_sizes.empty()) {
    const image::Size stated = plan_->stated_sizes[input];
    if (stated != image::Size{} && stated != image::Size{file.upright_width(), file.upright_height()})
      return std::nullopt;
  }
  return file;
}

bool SourceImages::read_file(std::uint64_t input, std::span<std::byte> out) const {
  std::unique_ptr<PlanReader> reader = take_reader();
  try {
    if (!reader->read_file(input, out)) return false;
  } catch (const Error&) {  // make() has it, too, or it has passed
    return false;
  }
  give_back(std::move(reader));
  return image::jpeg_file_of(out, out.size()) == (*known_)[input].file;
}

UnconvertedSamples::Place SourceImages::place_of(std::uint64_t input) const {
  const Input& of = plan_->list.inputs[input];
  const HoldingFile* const archive = of.archive < mapped_.size() ? mapped_[of.archive].get() : nullptr;
  const std::optional<jpeg::FrameFile> file = archive != nullptr ? file_of(input) : std::nullopt;
  // Nothing has read the member, but for its header when it was listed: the archive is the one of then.
  if (!file || file->bytes != of.size_bytes || of.offset > archive->size_bytes() ||
      of.size_bytes > archive->size_bytes() - of.offset)
    return {};
  return {archive, of.offset, of.size_bytes};
}

std::vector<const HoldingFile*> SourceImages::holding_files() const {
  std::vector<const HoldingFile*> files;
  if (cache_ || !spec_.fields.empty()) return files;  // file_of() has none
  for (const auto& archive : mapped_)
    if (archive) files.push_back(archive.get());
  return files;
}

UnusableImage SourceImages::unusable(std::uint64_t input, const std::string& why) const {
  return {ErrorCode::corrupt, named(options_, plan_->list.inputs[input].key(), why), why};
}

UnusableImage SourceImages::unreadable(std::uint64_t input, const std::string& why) const {
  return {ErrorCode::io, named(options_, plan_->list.inputs[input].key(), why), why};
}

std::unique_ptr<PlanReader> SourceImages::take_reader() const {
  Shared& shared = this->shared();
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.idle.empty()) {
      std::unique_ptr<PlanReader> reader = std::move(shared.idle.back());
      shared.idle.pop_back();
      return reader;
    }
  }
  return std::make_unique<PlanReader>(*plan_, options_, nullptr, shared.memory);
}

void SourceImages::give_back(std::unique_ptr<PlanReader> reader) const {
  Shared& shared = this->shared();
  const std::lock_guard lock(shared.mutex);
  shared.idle.push_back(std::move(reader));
}

// A transcoded file must fit into the memory that was planned for its pixels: those of tiny images do not.
std::optional<JpegFrame> SourceImages::frame_of(std::uint64_t input, PlanReader& reader) const {
  std::optional<JpegFrame> frame = reader.frame();
  if (frame || !shared().has_room_for_frame(plan_->size_of(input).value_or(0))) return frame;
  frame = reader.transcoded();
  if (frame && frame->bytes.size() > spec_of(0, input).size_bytes()) frame.reset();
  return frame;
}

std::shared_ptr<const MadeSample> SourceImages::read(std::uint64_t input) const {
  std::unique_ptr<PlanReader> reader = take_reader();
  auto made = std::make_shared<MadeSample>();
  InputRow row;
  reader->take(input / plan_->per_shard, input % plan_->per_shard, row);
  bool was_read = false;
  try {
    reader->read(row);
    was_read = true;
    std::span<const SampleValues> fields;
    RowSample sample;
    if (cache_) {
      reader->decode(sample);
      CachedSample stored{row.digest, std::nullopt, sample.warnings, sample.jpeg, {sample.image}};
      stored.images.insert(stored.images.end(), sample.fields.begin(), sample.fields.end());
      cache_->store(input, stored);
      made = made_of(input, stored);
    } else if (std::optional<JpegFrame> frame = gives_frames() ? frame_of(input, *reader) : std::nullopt) {
      const SampleSpec of = spec_.spec.sized(frame->file.upright_height(), frame->file.upright_width());
      fields = reader->further(of);
      made->images.push_back({FrameSpec(of, frame->file), std::move(frame->bytes)});
    } else {
      reader->decode(sample);
      made->is_few_bits = sample.warnings.has(image::Warning::few_bits);
      fields = sample.fields;
      const std::span<const std::byte> pixels = reader->pixels();
      made->images.push_back({reader->made(), {pixels.begin(), pixels.end()}});
      if (gives_frames()) made->images.front().bytes.resize(round_up(pixels.size(), kMadeAlignment));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const SampleSpec& spec = spec_.fields[i].spec;
      made->images.push_back({spec.is_free() ? spec.sized(fields[i].height, fields[i].width) : spec,
                              {fields[i].bytes.begin(), fields[i].bytes.end()}});
    }
  } catch (const Error& error) {
    if (ends_run(error, was_read) || lacks_memory(error))
      throw Error(error.code(), named(options_, row.key, error.what()));
    const std::string reason = reject_reason(error);
    // A file that could not be read may be readable later.
    if (!was_read && error.code() == ErrorCode::io) throw unreadable(input, reason);
    if (cache_ && row.digest) {
      cache_->store(input, {row.digest, reason, {}, {}, {}});
      shared().keep_reject(input, reason);
    }
    throw unusable(input, reason);
  }
  reader->release();
  give_back(std::move(reader));
  return made;
}

}  // namespace shard::convert
