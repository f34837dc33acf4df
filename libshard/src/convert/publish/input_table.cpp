#include "convert/publish/input_table.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/digest/checksum.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using OnRow = std::function<bool(std::vector<std::string>&)>;

bool read_csv_rows(std::istream& in, const OnRow& on_row) {
  constexpr std::size_t kMaxFieldBytes = std::size_t{1} << 20U;
  std::streambuf& bytes = *in.rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (int c = bytes.sbumpc(); c != kEnd; c = bytes.sbumpc()) {
    std::string& field = fields.back();
    if (field.size() > kMaxFieldBytes || fields.size() > 16) return false;
    if (quoted) {
      if (c != '"') {
        field += static_cast<char>(c);
      } else if (bytes.sgetc() == '"') {
        field += static_cast<char>(bytes.sbumpc());
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      if (!field.empty()) return false;
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      if (!on_row(fields)) return false;
      fields.assign(1, {});
    } else {
      field += static_cast<char>(c);
    }
  }
  return !quoted && fields.size() == 1 && fields[0].empty();  // the last line must end with a line feed
}

bool parse_row(const std::vector<std::string>& fields, InputRow& row) {
  if (fields.size() != 3) return false;
  row.key = fields[0];
  row.size_bytes.reset();
  if (!fields[1].empty()) {
    row.size_bytes = number_of<std::uint64_t>(fields[1]);
    if (!row.size_bytes) return false;
  }
  row.digest = from_hex(fields[2]);
  return row.digest || fields[2].empty();
}

// The bytes by which the plan is sorted. Nothing if the key is not valid.
std::optional<std::string> path_of(const std::string& key) {
  try {
    return unescape_key(key);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string size_text(std::optional<std::uint64_t> size) {
  return size ? fmt::format("{} bytes", *size) : std::string("not readable");
}

}  // namespace

std::string serialize_row(const InputRow& row) {
  return fmt::format("{},{},{}\n", csv_field(row.key), row.size_bytes ? fmt::to_string(*row.size_bytes) : "",
                     row.digest ? to_hex(*row.digest) : "");
}

bool read_csv(const fs::path& path, const OnRow& on_row) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  const bool whole = read_csv_rows(in, on_row);
  if (in.bad()) throw Error(ErrorCode::io, fmt::format("reading {} failed", quoted(path)));
  return whole;
}

bool read_rejects(const fs::path& file, const std::function<void(Reject&&)>& on_reject) {
  bool header = true;
  return read_csv(file, [&](std::vector<std::string>& fields) {
    if (fields.size() != 2) return false;
    if (std::exchange(header, false)) return fields[0] == "path" && fields[1] == "reason";
    on_reject({std::move(fields[0]), std::move(fields[1])});
    return true;
  });
}

bool read_inputs(const fs::path& file,
                 const std::function<void(const std::string& key, std::uint64_t digest)>& on_input) {
  bool header = true;
  return read_csv(file, [&](std::vector<std::string>& fields) {
    if (std::exchange(header, false)) return !fields.empty() && fields[0] == "path";
    InputRow row;
    if (!parse_row(fields, row)) return false;
    if (row.digest) on_input(row.key, *row.digest);
    return true;
  });
}

bool read_input_rows(const fs::path& out, const PlanRecord* there,
                     const std::function<void(InputRow&&)>& on_row) {
  std::uint64_t index = 0;
  const OnRow read_fields = [&](std::vector<std::string>& fields) {
    InputRow row;
    row.index = index++;
    if (!parse_row(fields, row)) return false;
    on_row(std::move(row));
    return true;
  };
  if (there == nullptr) {
    bool header = true;
    return read_csv(out / kInputsFile, [&](std::vector<std::string>& fields) {
      if (!header) return read_fields(fields);
      header = false;
      return fields.size() == 3 && fields[2] == "xxh3";
    });
  }
  bool whole = true;
  for (const std::uint64_t shard : receipts_in(out)) {
    const auto receipt = finished_shard(out, *there, shard);
    if (!receipt) continue;
    index = shard * there->samples_per_shard;
    std::istringstream rows(receipt->inputs);
    whole = read_csv_rows(rows, read_fields) && whole;
  }
  return whole;
}

std::string describe_changes(const fs::path& out, const PlanRecord* there, const Plan& plan) {
  constexpr std::uint64_t kNamed = 5;
  std::string text;
  std::uint64_t found = 0;
  const auto differs = [&](const std::string& key, const std::string& how) {
    if (found++ < kNamed) text += fmt::format("\n  {}: {}", quoted_key(key), how);
  };
  const auto& inputs = plan.list.inputs;
  const auto is_new = [&](std::size_t i) {
    if (there == nullptr) differs(inputs[i].key(), fmt::format("new, {}", size_text(plan.size_of(i))));
  };
  std::size_t next = 0;
  const bool whole = read_input_rows(out, there, [&](InputRow&& row) {
    const auto path = path_of(row.key);
    if (!path) return;
    while (next < inputs.size() && inputs[next].path < *path) is_new(next++);
    if (next == inputs.size() || inputs[next].path != *path) return differs(row.key, "gone");
    if (plan.size_of(next) != row.size_bytes)
      differs(row.key,
              fmt::format("{} then, {} now", size_text(row.size_bytes), size_text(plan.size_of(next))));
    ++next;
  });
  if (whole)
    while (next < inputs.size()) is_new(next++);
  if (found > kNamed) text += fmt::format("\n  and {} more", found - kNamed);
  return text;
}

}  // namespace shard::convert
