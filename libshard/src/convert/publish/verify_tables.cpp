#include "shard/convert/verify_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/tables.hpp"
#include "remote/http/http_client.hpp"
#include "remote/s3/remote_folder.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shard/shard_reader.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTablePiece = std::uint64_t{4} << 20U;

[[noreturn]] void bad_table(const std::string& why) { throw Error(ErrorCode::corrupt, why); }

// Calls `visit` with the bytes of the table, piece by piece.
void read_table(const fs::path& path, const TableSummary& recorded,
                const std::function<void(std::span<const std::byte>)>& visit) {
  std::shared_ptr<RemoteFolder> server;
  std::unique_ptr<HttpObject> object;
  UniqueFd file;
  if (is_remote(path)) {
    server = RemoteFolder::open(path.native());
    object = server->object(recorded.file);
  } else {
    file = open_read(path / recorded.file);
    const std::uint64_t size = regular_file_size(file.get(), path / recorded.file);
    if (size != recorded.size_bytes)
      bad_table(fmt::format("has {} bytes, dataset.json says {}; restore it, or convert again", size,
                            recorded.size_bytes));
  }
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < recorded.size_bytes; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kTablePiece, recorded.size_bytes - at)));
    if (object)
      server->client().read(*object, at, piece);
    else
      pread_all(file.get(), piece, at, path / recorded.file);
    if (object && object->size_bytes() != recorded.size_bytes)
      bad_table(fmt::format("has {} bytes, dataset.json says {}; restore it, or convert again",
                            object->size_bytes(), recorded.size_bytes));
    visit(piece);
  }
}

// What comes from a server is fetched again before it is called damaged.
void check_digest(const fs::path& path, const TableSummary& recorded) {
  constexpr int kTimesFetched = 3;
  for (int attempt = 1;; ++attempt) {
    Xxh3Stream digest;
    read_table(path, recorded, [&](std::span<const std::byte> piece) { digest.update(piece); });
    if (digest.digest() == recorded.digest) return;
    if (!is_remote(path) || attempt == kTimesFetched)
      bad_table(fmt::format(
          "its XXH3-64 is {}, dataset.json says {}: it was edited or damaged; restore it, or convert again",
          to_hex(digest.digest()), to_hex(recorded.digest)));
  }
}

// The records of an RFC 4180 file with `fields` fields each. Throws corrupt naming the line.
std::uint64_t count_csv_records(const std::string& csv, std::size_t fields) {
  std::uint64_t records = 0;
  std::uint64_t line = 1;
  std::size_t found = 1;
  bool quoted = false;
  for (const char c : csv) {
    if (c == '"') quoted = !quoted;  // a doubled quote closes and opens again
    if (c == ',' && !quoted) ++found;
    if (c != '\n') continue;
    ++line;
    if (quoted) continue;
    if (found != fields)
      bad_table(fmt::format("line {}: has {} fields, each record has {}", line - 1, found, fields));
    ++records;
    found = 1;
  }
  if (quoted || (!csv.empty() && csv.back() != '\n'))
    bad_table(fmt::format("line {}: ends inside a record: the file was cut", line));
  return records;
}

void check_rejects(const fs::path& folder, const DatasetInfo& info) {
  constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30U;
  const auto bytes = read_file(folder / kRejectsFile, kMaxTextBytes);
  const std::string csv(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!csv.starts_with(kRejectsHeader)) bad_table("does not start with the line path,reason");
  const std::uint64_t records = count_csv_records(csv, 2) - 1;
  if (records != info.rejects)
    bad_table(fmt::format("lists {} inputs, dataset.json says {} were rejected", records, info.rejects));
}

// The keys of the samples of a data set, in order.
class Samples {
 public:
  Samples(const fs::path& folder, const DatasetInfo& info) : folder_(folder), info_(info) {}

  // Nothing: there are no more. Errors: those of a shard that cannot be read.
  std::optional<std::string> next() {
    while (!shard_ || sample_ == shard_->size()) {
      if (number_ == info_.shards.size()) return std::nullopt;
      shard_.emplace(ShardReader::open(folder_ / info_.shards[number_++].file));
      sample_ = 0;
    }
    return shard_->key(sample_++);
  }

 private:
  const fs::path& folder_;
  const DatasetInfo& info_;
  std::optional<ShardReader> shard_;
  std::size_t number_ = 0;
  std::uint64_t sample_ = 0;
};

// Up to the first shard that cannot be read, which is another failure.
void check_inputs(const fs::path& folder, const DatasetInfo& info) {
  std::unordered_set<std::string> rejected;
  read_csv(folder / kRejectsFile, [&](std::vector<std::string>& fields) {
    rejected.insert(std::move(fields.front()));
    return true;
  });
  Samples samples(folder, info);
  std::optional<std::string> sample;
  const auto step = [&] {
    try {
      sample = samples.next();
      return true;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::resource) throw;
      return false;
    }
  };
  bool readable = step();
  std::uint64_t rows = 0;
  const bool whole = read_input_rows(folder, nullptr, [&](InputRow&& row) {
    ++rows;
    if (!readable) return;
    if (sample && *sample == row.key)
      readable = step();
    else if (!rejected.contains(row.key))
      bad_table(fmt::format("row {}: {} is not the next sample of the shards ({}) and not in rejects.csv",
                            rows, quoted_key(row.key), sample ? quoted_key(*sample) : "there are no more"));
  });
  if (!whole)
    bad_table(fmt::format("row {}: is not a path, a size and a digest, or the file was cut", rows + 1));
  if (readable && sample) bad_table(fmt::format("ends before the sample {}", quoted_key(*sample)));
}

// Runs a check of a table. What it throws becomes a finding.
template <class Check>
TableCheck checked(const char* file, VerifyFindings& findings, const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::resource || error.code() == ErrorCode::cancelled) throw;
    const bool missing = error.code() == ErrorCode::not_found;
    findings.add({file,
                  std::nullopt,
                  {},
                  missing ? "is missing; restore it, or convert again" : error.what(),
                  missing ? ErrorCode::corrupt : error.code()});
    return TableCheck::damaged;
  }
}

}  // namespace

std::string_view to_string(TableCheck check) noexcept {
  switch (check) {
    case TableCheck::absent:
      return "absent";
    case TableCheck::by_digest:
      return "digest";
    case TableCheck::by_form:
      return "form";
    case TableCheck::damaged:
      break;
  }
  return "damaged";
}

TableChecks verify_tables(const fs::path& path, const DatasetInfo& info, VerifyFindings& findings) {
  const auto check = [&](const char* file, const auto& by_form) {
    return checked(file, findings, [&] {
      if (const TableSummary* recorded = info.table(file)) {
        check_digest(path, *recorded);
        return TableCheck::by_digest;
      }
      return is_remote(path) ? TableCheck::absent : by_form();
    });
  };
  TableChecks checks;
  checks.rejects = check(kRejectsFile, [&] {
    if (info.rejects == 0 && !has_table(path, kRejectsFile)) return TableCheck::absent;
    check_rejects(path, info);
    return TableCheck::by_form;
  });
  checks.inputs = check(kInputsFile, [&] {
    if (!has_table(path, kInputsFile)) return TableCheck::absent;
    check_inputs(path, info);
    return TableCheck::by_form;
  });
  return checks;
}

}  // namespace shard::convert
