#include "codec/stored_form.hpp"

#include <fmt/format.h>

#include <array>

#include "base/digest/checksum.hpp"
#include "codec/sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

struct FormRow {
  CodecSpec::Kind codec;
  MakeStoredForm* make;
};
constexpr std::array kForms{
    FormRow{CodecSpec::Kind::none, make_raw_form},
    FormRow{CodecSpec::Kind::packed, make_packed_form},
    FormRow{CodecSpec::Kind::zstd, make_host_decoded_form},
};

}  // namespace

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
  for (const FormRow& row : kForms)
    if (row.codec == codec.kind) return row.make(spec, field);
  throw Error(ErrorCode::unsupported,
              fmt::format("this loader cannot read samples of codec {}", to_string(codec)));
}

}  // namespace shard
