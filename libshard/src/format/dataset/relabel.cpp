#include "format/dataset/relabel.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/system/guarded_read.hpp"
#include "base/text/quote.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::size_t kLabelBytes = 8;

[[noreturn]] void relabel_failed(const ShardReader& shard, const std::string& why) {
  throw Error(ErrorCode::corrupt, fmt::format("shard {}: {}", quoted(shard.path()), why));
}

}  // namespace

std::optional<RelabelledHead> relabelled_head(const ShardReader& shard, const LabelMap& labels) {
  const auto found = shard.columns().find("labels");
  if (found == shard.columns().end() || found->second.dtype != DType::i64 || !found->second.row_shape.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("shard {}: its labels are no class numbers", quoted(shard.path())));
  RelabelledHead head;
  const std::span<const std::byte> mapped = shard.mapping();
  head.bytes.resize(static_cast<std::size_t>(shard.header().head_end));
  if (!guarded_copy(head.bytes, mapped.first(head.bytes.size())))
    throw Error(ErrorCode::io, fmt::format("reading {} failed", quoted(shard.path())));
  const std::string_view text = as_text(head.bytes);
  const auto digits = find_digest_digits(text.substr(8));
  if (!digits || digest_head(head.bytes, 8 + *digits) != shard.header().head_digest)
    relabel_failed(shard, "its head does not have the digest that it states: it is damaged");

  const auto begin = static_cast<std::size_t>(found->second.bytes.data() - mapped.data());
  bool changed = false;
  for (std::uint64_t i = 0; i < shard.size(); ++i) {
    const std::size_t at = begin + static_cast<std::size_t>(i) * kLabelBytes;
    const std::uint64_t label = load_u64(head.bytes, at);
    if (label >= labels.size())
      relabel_failed(shard, fmt::format("sample {} has the label {}; its data set has {} classes", i,
                                        static_cast<std::int64_t>(label), labels.size()));
    const auto now = static_cast<std::uint64_t>(labels[static_cast<std::size_t>(label)]);
    changed = changed || now != label;
    store_u64(head.bytes, at, now);
  }
  if (!changed) return std::nullopt;
  head.digest = digest_head(head.bytes, 8 + *digits);
  std::memcpy(head.bytes.data() + 8 + *digits, to_hex(head.digest).data(), kDigestDigits);
  return head;
}

}  // namespace shard
