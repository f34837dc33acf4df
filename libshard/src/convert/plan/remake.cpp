#include "shard/convert/remake.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/text/quote.hpp"
#include "convert/plan/further_reader.hpp"
#include "convert/plan/sample_maker.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/image/wide.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

// The members of archives. Of a folder only its name: files are found by their keys.
InputList list_originals(const RemakeOptions& options) {
  if (source_kind(options.images).has_archives || is_single(options.layout))
    return scan({.images = options.images, .layout = options.layout, .labelled = true});
  std::error_code error;
  if (!std::filesystem::is_directory(options.images, error)) {
    const std::string kinds =
        names_of_kinds([](const SourceKind& kind) { return kind.has_archives || kind.scan == scan_folder; });
    throw Error(ErrorCode::not_found, fmt::format("{}: not {}; give the one that the data set was made from",
                                                  quoted(options.images), kinds));
  }
  InputList list;
  list.root = options.images;
  return list;
}

// What the samples went through: the codec, or before a repack another one that changes pixels.
CodecSpec codec_of_samples(const DatasetInfo& info) {
  const auto before = info.provenance.find("decoded_from");
  return before == info.provenance.end() ? info.codec : codec_spec_from_string(before->second);
}

std::vector<FurtherField> remade_fields(const DatasetInfo& info, const std::vector<std::string>& keys,
                                        const RemakeOptions& options) {
  if (options.pairs.empty()) return {};
  InputList inputs;
  for (const std::string& key : keys) inputs.inputs.push_back({unescape_key(key)});
  return recorded_fields(info, options.pairs, inputs, options.max_pixels);
}

}  // namespace

struct Remake::Impl {
  Impl(const DatasetInfo& info, const std::vector<std::string>& keys, const RemakeOptions& options)
      : list(list_originals(options)),
        fields(remade_fields(info, keys, options)),
        preprocess(preprocess_options_from(info)),
        codec(codec_of_samples(info)),
        encoded(info.provenance.contains("encoded_from")),
        decode(decode_options_from(info)),
        pages(info.provenance.contains("pages")) {
    for (const FurtherField& field : fields) names.push_back(field.spec.name);
    decode.max_pixels = options.max_pixels;
    decode.memory = &memory;
  }

  // No file has the key of a page of another one: the conversion refuses these.
  Input input_of(const std::string& name) const {
    const PageName page = pages ? page_name(name) : PageName{name};
    const bool is_page = page.page != Input::kNoPage;
    if (list.archives.empty()) {
      std::error_code error;
      if (!is_page || std::filesystem::exists(list.root / name, error)) return {name};
      Input input{std::string(page.path)};
      input.page = page.page;
      return input;
    }
    if (const Input* const found = find_input(list, name)) return *found;
    const Input* const file = is_page ? find_input(list, page.path) : nullptr;
    if (file == nullptr) throw UnreadableInput(ErrorCode::not_found, "is not in the archives");
    Input input = *file;
    input.page = page.page;
    return input;
  }

  InputList list;
  std::vector<FurtherField> fields;
  std::vector<std::string> names;
  image::PreprocessOptions preprocess;
  CodecSpec codec;
  bool encoded;  // JPEG files, too
  image::MemoryBudget memory{image::MemoryBudget::default_bytes()};
  image::DecodeOptions decode;
  bool pages;  // keys name pages
};

Remake::Remake(const DatasetInfo& info, const std::vector<std::string>& keys, const RemakeOptions& options)
    : impl_(std::make_unique<Impl>(info, keys, options)) {}
Remake::~Remake() = default;

const std::vector<std::string>& Remake::fields() const noexcept { return impl_->names; }

struct Remake::Worker::Impl {
  explicit Impl(const Remake::Impl& of)
      : shared(of),
        reader(of.list),
        further(of.fields),
        maker(of.preprocess, of.codec, of.encoded ? JpegFiles::encode : JpegFiles::decode),
        decode(of.decode) {}

  const Remake::Impl& shared;
  InputReader reader;
  FurtherReader further;
  SampleMaker maker;
  image::DecodeOptions decode;
  std::span<const SampleValues> fields{};
};

Remake::Worker::Worker(const Remake& remake) : impl_(std::make_unique<Impl>(*remake.impl_)) {}
Remake::Worker::Worker(Worker&&) noexcept = default;
Remake::Worker::~Worker() = default;

std::optional<std::string> Remake::Worker::make(std::uint64_t index, const std::string& key,
                                                std::vector<std::byte>& sample) {
  Impl& own = *impl_;
  std::span<const std::byte> file;
  try {
    const Input input = own.shared.input_of(unescape_key(key));
    file = own.reader.read(input);
    own.decode.page = input.page_number();
  } catch (const UnreadableInput& error) {
    return error.what();
  }
  try {
    own.maker.run_file(file, own.decode);
    const std::span<const std::byte> stored = own.maker.stored();
    sample.assign(stored.begin(), stored.end());
    if (own.shared.fields.empty()) return std::nullopt;
    own.further.read(index, 0);
    const image::WideInfo info = image::read_wide_info(file, own.decode.max_pixels, own.decode.page);
    own.fields = own.further.samples(own.maker.decoder(), {info.width, info.height}, made(), own.decode);
  } catch (const Error& error) {
    return reject_reason(error);
  }
  return std::nullopt;
}

const SampleSpec& Remake::Worker::made() const noexcept { return impl_->maker.made(); }
std::span<const SampleValues> Remake::Worker::fields() const noexcept { return impl_->fields; }

}  // namespace shard::convert
