// FetchWidth: how many shards are fetched at once. As few as still saturate the link: shards that share it
// all arrive later than the first would alone, and a batch waits for the first.
//
//   kFirst --more by half, while the rate grows--> settled --after a while--> again
//
// again: from kLeast on if there was a pause.
//
// More help where each request is held up (a far server, an object store that limits a connection, small
// shards), or where several CPUs receive. Until the first pause there is more to fetch than time, as when a
// cache is filled. Not thread safe.
#pragma once

#include <cstdint>

namespace shard {

class FetchWidth {
 public:
  static constexpr unsigned kFirst = 6;
  static constexpr unsigned kLeast = 3;
  static constexpr unsigned kMost = 16;

  unsigned now() const noexcept { return width_; }
  // A shard arrived, at this time in seconds. `received_bytes`: until now, also of shards in the middle of a
  // fetch.
  void arrived(std::uint64_t received_bytes, double seconds);
  // While a batch waits for a shard: the time that passes counts too.
  void waiting(std::uint64_t received_bytes, double seconds) { look(received_bytes, seconds); }
  // Fewer than now() are being fetched, because no others are wanted or have room. So more are of no use, and
  // this time says nothing about the link.
  void paused() noexcept;

 private:
  void look(std::uint64_t received_bytes, double seconds);
  void measured(double rate);
  void settle(unsigned width) noexcept;
  void set(unsigned width) noexcept;

  unsigned least_ = kFirst;
  unsigned width_ = kFirst;
  // A measurement, and before it the time in which another width shows.
  enum class Phase : std::uint8_t { none, before, during } phase_ = Phase::none;
  unsigned shards_ = 0;
  unsigned excess_ = 0;  // shards being fetched beyond the width, which was larger when they began
  std::uint64_t bytes_ = 0;
  double begin_ = 0;
  // What is known.
  unsigned narrower_ = 0;  // the width before; 0: none was tried
  double rate_ = 0;        // with it
  unsigned measured_ = 0;  // since the width was settled
  unsigned patience_ = 0;  // measurements until the next attempt; 0: not settled
  unsigned attempts_ = 0;
};

}  // namespace shard
