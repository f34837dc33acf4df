// How a Writer ends: the last shard, the tables and dataset.json,
// and with `overwrite` the exchange of the folders.
#include <fmt/format.h>

#include <utility>

#include "base/text/quote.hpp"
#include "convert/engine/steps.hpp"
#include "convert/engine/writer_impl.hpp"
#include "convert/publish/replace.hpp"

namespace shard::convert {

Summary Writer::Impl::close() {
  require_own_process();
  std::unique_lock lock(mutex);
  const Guest guest(*this);
  has_room.wait(lock, [&] { return !closing; });
  if (closed) return *closed;
  throw_if_failed();
  if (rows_before + added == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("nothing was added: a data set has at least one image ({})", quoted(out)));
  ended = closing = true;
  has_room.notify_all();  // rows that wait for room come too late
  has_rows.notify_all();
  const auto leave = [&] {
    closing = false;
    has_room.notify_all();
  };
  try {
    closed = finish(lock);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    leave();
    throw;
  }
  leave();
  return *closed;
}

// With mutex held, which it releases while it works.
Summary Writer::Impl::finish(std::unique_lock<std::mutex>& lock) {
  if (complete) {
    if (!replaces) return summary;
    published_set = summary;
  }
  if (!published_set) {
    has_room.wait(lock, [&] { return cancelled || !running; });
    throw_if_failed();
    summary.convert_seconds = since.seconds();
    const std::uint64_t rows = rows_before + added;
    lock.unlock();
    published_set = publish_all(rows);
  } else {
    lock.unlock();
  }
  if (replaces) put_in_place(out);
  remove_journal(out);
  staging.unlock();
  folder.unlock();
  lock.lock();
  return *published_set;
}

// dataset.json and the tables. Only the thread that closes calls it.
Summary Writer::Impl::publish_all(std::uint64_t rows) {
  Ending ending{shards, DatasetInfo(spec), {}};
  ending.info.samples_per_shard = per_shard;
  ending.info.classes = options.classes;
  ending.info.inputs = rows;
  Summary whole = summary;
  if (!publish_dataset(options.out, record, std::move(ending), whole))
    throw Error(ErrorCode::io, fmt::format("shards of {} have been lost or changed", quoted(options.out)));
  return whole;
}

}  // namespace shard::convert
