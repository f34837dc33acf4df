#include "codec/stored_form.hpp"

#include <fmt/format.h>

#include "base/digest/checksum.hpp"
#include "codec/sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

StoredSample StoredForm::locate(const Dataset&, const Dataset::Location&) const {
  return {most_bytes_to_device(), nullptr};
}

std::uint64_t StoredForm::checksum(const ShardReader&, std::span<const std::byte> bytes) const {
  return xxh3(bytes);
}

std::string StoredForm::name_of(const ShardReader& shard, std::uint64_t sample) const {
  return name_of_sample(shard, sample, field_);
}

std::unique_ptr<const StoredForm> make_stored_form(const DatasetInfo& info,
                                                   std::optional<std::size_t> field) {
  const SampleSpec& spec = field ? info.fields[*field].spec : info.spec;
  const CodecSpec& codec = field ? info.fields[*field].codec : info.codec;
  if (info.mixed_codecs) return make_host_decoded_form(spec, field);
  switch (codec.kind) {
    case CodecSpec::Kind::none:
      return make_raw_form(spec, field);
    case CodecSpec::Kind::zstd:
      return make_host_decoded_form(spec, field);
    case CodecSpec::Kind::packed:
      return make_packed_form(spec, field);
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("this loader cannot read samples of codec {}", to_string(codec)));
}

}  // namespace shard
