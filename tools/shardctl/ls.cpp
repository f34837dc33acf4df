// ls: one line a sample: index, label, key.
#include <fmt/format.h>

#include <algorithm>

#include "common/output.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/json_text.hpp"
#include "shardctl/labels.hpp"
#include "shardctl/source.hpp"

namespace shard::ctl {
namespace {

constexpr std::size_t kMaxLabelColumn = 30;

// Labels as JSON: a class id, or the numbers of a table's row.
Json label_json(const ShardReader& reader, std::uint64_t sample) {
  if (const auto id = class_id(reader, sample)) return *id;
  const std::string row = label_row_text(reader, sample, ',');
  if (row.empty()) return nullptr;
  Json list = Json::array();
  for (std::size_t begin = 0; begin <= row.size();) {
    const std::size_t end = std::min(row.find(',', begin), row.size());
    const Json number =
        Json::parse(row.substr(begin, end - begin), nullptr, false);  // nan, inf: no JSON numbers
    list.push_back(number.is_number() ? number : Json(row.substr(begin, end - begin)));
    begin = end + 1;
  }
  return list;
}

std::size_t label_width(const Source& source) {
  std::size_t width = 1;
  for (const std::string& name : source.info().classes)
    width = std::max(width, std::min(name.size(), kMaxLabelColumn));
  return width;
}

}  // namespace

int ls(const LsOptions& options) {
  const Source source = Source::open(options.path);
  const std::size_t index_width = std::to_string(source.size() - 1).size();
  const std::size_t class_width = label_width(source);
  if (options.csv) cli::write_out("index,label,class,key\n");
  if (options.json) cli::write_out("[");
  std::uint64_t index = 0;
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardReader& reader = source.shard(i);
    for (std::uint64_t sample = 0; sample < reader.size(); ++sample, ++index) {
      const std::string key(reader.key(sample));
      const std::string name = label_name(source, reader, sample);
      if (options.json) {
        const Json line = {
            {"index", index}, {"label", label_json(reader, sample)}, {"class", name}, {"key", key}};
        cli::out("{}\n{}", index == 0 ? "" : ",", json_text(line));
      } else if (options.csv) {
        cli::out("{},{},{},{}\n", index, csv_field(label_row_text(reader, sample, ' ')), csv_field(name),
                 csv_field(key));
      } else {
        cli::out("{:>{}}  {:<{}}  {}\n", index, index_width, name, class_width, key);
      }
    }
  }
  if (options.json) cli::write_out("\n]\n");
  return kExitOk;
}

}  // namespace shard::ctl
