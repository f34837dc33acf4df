// One lane of those that index a file (lane_plan.hpp). It begins to decode at its part's first byte, as if an
// MCU started there, and writes down the start of each MCU. Codes and MCUs soon fall in step with the true
// ones: after about 1000 bits in photographs. Then it walks on behind its part until it comes to a start that
// the lane of that part has written down, too.
//
//   true MCUs    |     |      |     |    |        |     |     |
//   lane i       ......|      |     |    |        |           part i ends at :
//   lane i + 1                     :  .... | ...  |     |     |
//                                                 ^ both: lane i has joined lane i + 1
//
// So all starts from there on are true if those of lane i are. lane_chain.hpp follows the joins from lane 0.
// Shared by host and device; takes bounded time and stays inside its buffers whatever the bytes are.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/lanes/lane_plan.hpp"
#include "jpeg/lanes/mcu_start.hpp"
#include "jpeg/lanes/mcu_walker.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kNoStart = 0xFFFFFFFFU;

// What a lane has found.
struct Lane {
  std::uint32_t first_chunk = kNoChunk;
  std::uint32_t own = 0;          // starts in its part
  std::uint32_t count = 0;        // with those behind it, which it found while it walked on
  std::uint32_t join = kNoStart;  // of another lane's starts: the one that equals `exit`
  std::uint32_t joined = 0;       // that lane: by so many behind this one
  McuStart exit;                  // the start behind the last of `count`
  Sums join_sums = 0;             // of the other lane's start
  Fault fault = Fault::none;      // of the MCU that starts at `exit`
};

// Decodes the parts of one lane, code by code, so that the lanes of a GPU can all take a code at a time:
//
//   bool more = decoder.begin(lane);
//   while (more) if (decoder.fetch() && decoder.read_codes()) more = decoder.turn();     the lane's own part
//   ... until the lanes behind it have done so, too ...
//   more = decoder.join(lanes behind, how many);
//   while (more) { ... the same ... }
//   decoder.finish(lane);
template <class Bytes>
class LaneDecoder {
 public:
  // Borrows all.
  SHARD_EXACT LaneDecoder(const ScanPlan& plan, const Scan<Bytes>& scan, const StartPool& pool)
      : restarts_(plan.restart_interval != 0),
        scan_(scan),
        walker_(plan, scan),
        starts_(pool),
        pool_(pool),
        next_(pool, kNoChunk, 0) {}

  SHARD_EXACT bool begin(const LanePlan& plan, std::uint32_t lane) {
    const std::uint64_t bits = std::uint64_t{plan.part_bytes} * 8;
    const std::uint64_t last = std::uint64_t{scan_.end - scan_.first} * 8;
    begin_ = clamp(bits * lane, last);
    end_ = clamp(bits * (lane + 1), last);
    if (lane != 0) return begin_ < end_ && guess(begin_ / 8);
    at_ = {0, kNoRestart | McuStart::kAbsolute, 0};
    walker_.go_to(0);
    return arrive();
  }

  // Before each read_codes(), by all lanes of a warp together. False: it must wait.
  SHARD_EXACT bool fetch() { return walker_.fetch(); }
  // Reads a few codes. True: turn() comes next.
  SHARD_EXACT bool read_codes() { return walker_.read_codes(); }

  // False: nothing is left to do.
  SHARD_EXACT bool turn() {
    if (!walker_.next_block()) return true;
    if (walker_.fault() != Fault::none) return fail();
    auto& bits = walker_.bits();
    at_.flags = (at_.flags & McuStart::kAbsolute) | kNoRestart;
    if (restarts_) {
      const std::uint32_t number = bits.restart();
      if (number != kNoRestart) {
        at_.flags = number | McuStart::kAbsolute;
        walker_.set_sums(0);
      }
    }
    at_.position = bits.position();
    at_.sums = walker_.sums();
    return arrive();
  }

  // Between the two: the next lane needs it.
  SHARD_EXACT void publish(Lane& lane) const {
    lane.first_chunk = starts_.first_chunk();
    lane.own = starts_.count();
  }

  // `behind`: the following lanes of the group, as published; at most LanePlan::parts_behind() are asked for.
  SHARD_EXACT bool join(const Lane* behind, std::uint32_t count) {
    joins_ = true;
    behind_ = behind;
    most_behind_ = count;
    return arrived_ && next_lane() && arrive();
  }

  SHARD_EXACT void finish(Lane& lane) const {
    lane.count = starts_.count() - (failed_ && starts_.count() != 0 ? 1 : 0);
    lane.exit = at_;
    lane.fault = failed_ ? walker_.fault() : Fault::none;
    lane.join = join_;
    lane.joined = joined_;
    lane.join_sums = join_sums_;
  }

 private:
  SHARD_EXACT static std::uint32_t clamp(std::uint64_t bits, std::uint64_t last) {
    return static_cast<std::uint32_t>(bits < last ? bits : last);
  }

  // Begins at a byte, or behind what it is the second byte of.
  SHARD_EXACT bool guess(std::uint32_t byte) {
    std::uint32_t number = kNoRestart;
    const auto restart_at = [&](std::uint32_t i) {
      const std::uint32_t value = scan_.bytes.byte(scan_.first + i);
      return restarts_ && value >= 0xD0 && value <= 0xD7 ? value - 0xD0 : kNoRestart;
    };
    const auto is_ff = [&](std::uint32_t i) { return scan_.bytes.byte(scan_.first + i) == 0xFF; };
    if (byte >= 1 && is_ff(byte - 1)) {
      number = restart_at(byte++);
    } else if (byte >= 2 && is_ff(byte - 2)) {
      number = restart_at(byte - 1);
    }
    return start_at(byte * 8, number);
  }
  SHARD_EXACT bool start_at(std::uint32_t position, std::uint32_t restart) {
    if (position >= end_) return false;
    at_ = {position, restart | (restart == kNoRestart ? 0 : McuStart::kAbsolute), 0};
    walker_.go_to(position);
    return arrive();
  }

  // At the start of an MCU. False: the lane ends there.
  SHARD_EXACT bool arrive() {
    arrived_ = true;
    if (!joins_) {
      if (at_.position >= end_) return false;
    } else {
      bool found = next_.find(at_.position);
      while (!found && next_.at_end() && next_lane()) found = next_.find(at_.position);
      if (found) {
        join_ = next_.number();
        join_sums_ = next_.get().sums;
        return false;
      }
      if (next_.at_end()) return false;
    }
    // A lane without room ends; the chain goes on from there.
    if (!starts_.append(at_)) return false;
    arrived_ = false;
    walker_.begin_mcu();
    return true;
  }

  // False: no lane is left to join.
  SHARD_EXACT bool next_lane() {
    if (joined_ == most_behind_) return false;
    next_ = StartReader(pool_, behind_[joined_].first_chunk, behind_[joined_].own);
    ++joined_;
    return true;
  }

  // What the lane has assumed is wrong, or the file is damaged: only lane 0 knows. False: the lane ends.
  SHARD_EXACT bool fail() {
    failed_ = true;
    if (joins_ || begin_ == 0) return false;
    auto& bits = walker_.bits();
    if (walker_.fault() == Fault::code) {
      const std::uint32_t byte = bits.position() / 8 + 1;
      starts_.clear();
      failed_ = false;
      return restart_lane(byte * 8 < end_ && guess(byte));
    }
    if (!restarts_) return false;
    const std::uint32_t number = bits.restart_behind_data();
    if (number == kNoRestart) return false;  // the end of the data: what was found may be true
    starts_.clear();
    failed_ = false;
    return restart_lane(start_at(bits.position(), number));
  }
  // A lane that does not begin again has nothing to say.
  SHARD_EXACT bool restart_lane(bool begins) {
    if (!begins) arrived_ = false;
    return begins;
  }

  bool restarts_;
  bool joins_ = false;
  bool arrived_ = false;  // at the start of an MCU that is not written down
  bool failed_ = false;   // in the last MCU that is written down
  const Scan<Bytes>& scan_;
  McuWalker<Bytes> walker_;
  StartWriter starts_;
  const StartPool& pool_;
  const Lane* behind_ = nullptr;
  std::uint32_t most_behind_ = 0;
  StartReader next_;  // of lane behind_[joined_ - 1]
  McuStart at_;
  std::uint32_t begin_ = 0;  // of the part, in bits
  std::uint32_t end_ = 0;
  std::uint32_t join_ = kNoStart;
  std::uint32_t joined_ = 0;
  Sums join_sums_ = 0;
};

}  // namespace shard::jpeg
