// FillWidth: how many shards are brought at a time. As few as bring as many bytes per second as more
// would: of those that share a line, all come later than the first would alone, and it is the first
// that a batch waits for.
//
//   kFirst --more by half, while that brings more--> settled --after a while--> again
//
// again: from kLeast on if there was a pause.
//
// More help where each request is held up (a far server, an object store that limits a connection, small
// shards), or where several CPUs receive. Until the first pause there is more to bring than time, as when a
// cache is filled. Not thread safe.
#pragma once

#include <cstdint>

namespace shard {

class FillWidth {
 public:
  static constexpr unsigned kFirst = 6;
  static constexpr unsigned kLeast = 3;
  static constexpr unsigned kMost = 16;

  unsigned now() const noexcept { return width_; }
  // A shard came, at this time in seconds. `received_bytes`: until now, also of those that are on their way.
  void came(std::uint64_t received_bytes, double seconds);
  // While a batch waits for a shard: the time that passes counts too.
  void waiting(std::uint64_t received_bytes, double seconds) { look(received_bytes, seconds); }
  // Fewer than now() are on their way, as no others are wanted or have room: more are of no use,
  // and it is no measure of the line.
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
  unsigned excess_ = 0;  // shards that are on their way beyond the width, since there were more
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
