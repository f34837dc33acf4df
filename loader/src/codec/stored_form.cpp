#include "codec/stored_form.hpp"

#include <fmt/format.h>

#include "base/checksum.hpp"
#include "shard/error.hpp"

namespace shard {

StoredSample StoredForm::locate(const Dataset&, const Dataset::Location&) const {
  return {most_bytes_to_device(), nullptr};
}

std::uint64_t StoredForm::checksum(const ShardReader&, std::span<const std::byte> bytes) const {
  return xxh3(bytes);
}

std::unique_ptr<const StoredForm> make_stored_form(const DatasetInfo& info) {
  if (info.mixed_codecs) return make_host_decoded_form(info);
  switch (info.codec.kind) {
    case CodecSpec::Kind::none:
      return make_raw_form(info);
    case CodecSpec::Kind::zstd:
      return make_host_decoded_form(info);
    case CodecSpec::Kind::packed:
      return make_packed_form(info);
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("this loader cannot read samples of codec {}", to_string(info.codec)));
}

}  // namespace shard
