#include "jpeg/skip_table.hpp"

#include <cstring>

namespace shard::jpeg {
void SkipTable::assign(const HuffmanTable& table) {
  if (!entries_.empty() && std::memcmp(&table, &table_, sizeof table) == 0) return;
  table_ = table;
  make_look_up(table, look_up_.entries);
  entries_.resize(std::size_t{1} << kSkipBits);
  for (std::uint32_t i = 0; i < entries_.size(); ++i)
    entries_[i] = skip_of(look_up_.entries, i << (16 - kSkipBits), kSkipBits);
}

}  // namespace shard::jpeg
