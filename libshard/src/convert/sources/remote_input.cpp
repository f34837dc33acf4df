#include "convert/sources/remote_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "convert/sources/input_file.hpp"

namespace shard::convert {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{32} << 20U;  // so that memory grows with what was received

std::uint64_t stamp_of(const HttpObject& object) {
  const std::string etag = object.etag();
  return etag.empty() ? 0 : xxh3(etag);
}

[[noreturn]] void refuse_change(const HttpObject& object) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was replaced on the server since this run started: inputs must not change "
                          "while they are converted; run the "
                          "same command again",
                          quoted(object.name())));
}

[[noreturn]] void fail_server(const Error& error) {
  if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::unsupported) throw error;
  throw ServerFailure(ErrorCode::io,
                      fmt::format("{}; the same command goes on where this run ended", error.what()));
}

// The first byte: its answer has the size and the ETag of the object.
void ask(const RemoteFolder& folder, HttpObject& object) {
  std::array<std::byte, 1> first{};
  folder.client().read(object, 0, first);
}

// What happened to a file of a list.
[[noreturn]] void fail_file(const HttpObject& object, const Error& error) {
  const bool refused = dynamic_cast<const HttpRefused*>(&error) != nullptr && object.access().empty();
  if (refused || error.code() == ErrorCode::not_found || error.code() == ErrorCode::corrupt)
    throw UnreadableInput(error.code(), error.what());
  fail_server(error);
}

}  // namespace

void grow_by_steps(std::vector<std::byte>& out, std::uint64_t size_bytes,
                   const std::function<void(std::uint64_t at, std::span<std::byte> step)>& fill) {
  out.clear();
  while (out.size() < size_bytes) {
    const std::size_t at = out.size();
    try {
      out.resize(static_cast<std::size_t>(std::min(size_bytes, at + kStepBytes)));
    } catch (const std::bad_alloc&) {
      throw UnreadableInput(ErrorCode::resource, fmt::format("no memory for its {} bytes", size_bytes));
    }
    fill(at, std::span(out).subspan(at));
  }
}

RemoteArchive::RemoteArchive(const std::string& address) {
  const RemoteName name = split_remote(address);
  folder_ = RemoteFolder::open(name.folder);
  object_ = folder_->object(name.name);
  ask(*folder_, *object_);
}

std::uint64_t RemoteArchive::stamp() const { return stamp_of(*object_); }

void RemoteArchive::read(std::uint64_t offset, std::span<std::byte> out, const std::stop_token& stop) const {
  try {
    folder_->client().read(*object_, offset, out, stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt || error.code() == ErrorCode::not_found)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}; archives must not change while they are converted; run the same command again",
                      error.what()));
    fail_server(error);
  }
}

RemoteFiles::State RemoteFiles::look(const std::string& path) const {
  const auto object = folder_->object_below(path);
  try {
    ask(*folder_, *object);
  } catch (const Error& error) {
    fail_file(*object, error);
  }
  return {object->size_bytes(), stamp_of(*object)};
}

void RemoteFiles::read(const std::string& path, const State& seen, std::vector<std::byte>& out,
                       const std::stop_token& stop) const {
  const auto object = folder_->object_below(path);
  const auto is_another = [&] {
    return object->size_bytes() != seen.size_bytes || stamp_of(*object) != seen.stamp;
  };
  grow_by_steps(out, seen.size_bytes, [&](std::uint64_t at, std::span<std::byte> step) {
    try {
      folder_->client().read(*object, at, step, stop);
    } catch (const Error& error) {
      if (object->size_bytes() != 0 && is_another()) refuse_change(*object);
      fail_file(*object, error);
    }
    if (is_another()) refuse_change(*object);
  });
}

}  // namespace shard::convert
