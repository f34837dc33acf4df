// From what the lanes of a file have found (lane_decoder.hpp) to its index: follows their joins, which says
// which MCU each start is. Where a lane has not joined the next one, the codes are read on until it has: for
// a file whose lanes never meet (components that share their tables) to its end.
//
//   for each part of the lanes, in their order:
//     for each lane: links[i] = LaneLink(lane), entries[i] = {}                                any threads
//     fault = chain.follow(links, entries, first, end);                                       one thread
//     for each lane with an entry, each start:
//       fault = chain.write(lane, entry, number, start);                                       any threads
//   if a fault is left and chain.may_be_wrong(): fault = chain.read_whole();              one thread
//
// Shared by host and device.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.hpp"
#include "jpeg/index.hpp"
#include "jpeg/lanes/lane_decoder.hpp"

namespace shard::jpeg {

// Where an index is written (index.hpp). 4-byte aligned, index_bytes(layout).
class IndexTarget {
 public:
  SHARD_EXACT IndexTarget(std::byte* index, const ScanPlan& plan)
      : index_(index), pieces_(plan.pieces_of_row() * plan.mcu_rows), components_(plan.components) {}

  SHARD_EXACT void head(std::uint32_t data_offset) const {
    put(0, index_head(components_));
    put(4, pieces_);
    put(8, data_offset);
  }
  SHARD_EXACT void end(std::uint32_t position) const { put(12, position); }
  SHARD_EXACT void entry(std::uint32_t piece, std::uint32_t position, Sums predictors) const {
    put(kIndexHeadBytes + std::uint64_t{4} * piece, position);
    const std::uint64_t at =
        kIndexHeadBytes + std::uint64_t{4} * pieces_ + std::uint64_t{2} * components_ * piece;
    for (std::uint32_t c = 0; c < components_; ++c) put(at + std::uint64_t{2} * c, sum_of(predictors, c));
  }

 private:
  template <class T>
  SHARD_EXACT void put(std::uint64_t at, T value) const {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<T*>(index_ + at) = value;
#else
    for (std::size_t i = 0; i < sizeof(T); ++i)
      index_[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
#endif
  }

  std::byte* index_;
  std::uint32_t pieces_;
  std::uint32_t components_;
};

// What the chain must know of each lane, side by side: it goes from one to the next.
struct alignas(16) LaneLink {
  LaneLink() = default;
  SHARD_EXACT explicit LaneLink(const Lane& lane)
      : count(lane.count),
        join(lane.join),
        joined(lane.joined),
        flags(lane.exit.flags),
        exit_sums(lane.exit.sums),
        join_sums(lane.join_sums) {}

  std::uint32_t count = 0;
  std::uint32_t join = kNoStart;
  std::uint32_t joined = 0;
  std::uint32_t flags = 0;  // of the exit
  Sums exit_sums = 0;
  Sums join_sums = 0;
};

// What it finds.
struct alignas(16) LaneEntry {
  std::uint32_t enter = kNoStart;  // the first true start
  std::uint32_t base = 0;          // the MCU that start 0 would be, modulo 2^32
  Sums predictors = 0;             // to be added to sums that are not absolute
};

template <class Bytes>
class LaneChain {
 public:
  // What one thread reads at most: a GPU's takes about 0.4 s for it.
  static constexpr std::uint64_t kMostBitsAlone = std::uint64_t{1} << 25;

  // Borrows all. `lanes`: plan.slots().
  SHARD_EXACT LaneChain(const ScanPlan& image, const Scan<Bytes>& scan, const LanePlan& plan,
                        const StartPool& pool, const Lane* lanes, const IndexTarget& target)
      : image_(image),
        mcus_(image.mcu_columns * image.mcu_rows),
        scan_(scan),
        plan_(plan),
        pool_(pool),
        lanes_(lanes),
        target_(target) {}

  SHARD_EXACT void begin() const { target_.head(scan_.first); }
  // Goes on to lane `end`, from lane `first` on or from a later one. `links`, `entries`: of lanes from
  // `first` to `end`; the entries of lanes without true starts stay as they are.
  SHARD_EXACT Fault follow(const LaneLink* links, LaneEntry* entries, std::uint32_t first,
                           std::uint32_t end) {
    std::uint32_t lane = place_.lane;
    std::uint32_t mcu = place_.mcu;
    std::uint32_t enter = enter_;
    Sums predictors = place_.predictors;
    Sums enter_sums = enter_sums_;
    Fault fault = Fault::none;
    while (lane < end && mcu < mcus_ && fault == Fault::none) {
      const LaneLink link = links[lane - first];
      const Sums before = minus(predictors, enter_sums);
      entries[lane - first] = {enter, mcu - enter, before};
      mcu += link.count - enter;
      predictors = (link.flags & McuStart::kAbsolute) != 0 ? link.exit_sums : plus(before, link.exit_sums);
      if (mcu >= mcus_) break;
      if (link.join != kNoStart) {
        enter = link.join;
        enter_sums = link.join_sums;
        lane += link.joined;
        continue;
      }
      Place place{lane, mcu, 0, predictors};
      std::uint32_t next_enter = 0;
      Sums next_sums = 0;
      fault = leave(place, next_enter, next_sums);
      lane = place.lane;
      mcu = place.mcu;
      predictors = place.predictors;
      enter = next_enter;
      enter_sums = next_sums;
    }
    place_ = {lane, mcu, 0, predictors};
    enter_ = enter;
    enter_sums_ = enter_sums;
    return fault;
  }

  // Writes the entry of a start of a lane that has one, if it is a piece's: of numbers from `enter` to
  // `count`, which is `exit`.
  SHARD_EXACT Fault write(const Lane& lane, const LaneEntry& entry, std::uint32_t number,
                          const McuStart& start) const {
    const std::uint32_t mcu = entry.base + number;
    if (mcu > mcus_ || (number == lane.count && mcu != mcus_)) return Fault::none;
    if (start.restart() != expected_restart(mcu)) return Fault::restart;
    if (mcu == mcus_) return end(start.position);
    write_entry(mcu, start.position, start.is_absolute() ? start.sums : plus(entry.predictors, start.sums));
    return Fault::none;
  }

  // Lanes take each restart marker for one. In a file with MCUs of less than 8 bits another may come first.
  SHARD_EXACT bool may_be_wrong() const { return image_.restart_interval != 0; }
  SHARD_EXACT Fault read_whole() {
    Place place;
    std::uint32_t enter = 0;
    Sums enter_sums = 0;
    return read_on(place, false, enter, enter_sums);
  }
  // MCUs that were read alone.
  SHARD_EXACT std::uint32_t read_alone() const { return read_alone_; }

 private:
  // An MCU that starts behind those of a lane.
  struct Place {
    std::uint32_t lane = 0;
    std::uint32_t mcu = 0;
    std::uint32_t position = 0;
    Sums predictors = 0;
  };

  // From a lane that has joined no other.
  SHARD_EXACT Fault leave(Place& place, std::uint32_t& enter, Sums& enter_sums) {
    const Lane& lane = lanes_[plan_.slot_of(place.lane)];
    if (lane.fault != Fault::none) return lane.fault;
    place.position = lane.exit.position;
    if (lane.exit.restart() != expected_restart(place.mcu)) return Fault::restart;
    return read_on(place, true, enter, enter_sums);
  }
  SHARD_EXACT std::uint32_t expected_restart(std::uint32_t mcu) const {
    const std::uint32_t interval = image_.restart_interval;
    const bool restarts = interval != 0 && mcu != 0 && mcu < mcus_ && mcu % interval == 0;
    return restarts ? (mcu / interval - 1) % 8 : kNoRestart;
  }
  SHARD_EXACT void write_entry(std::uint32_t mcu, std::uint32_t position, Sums predictors) const {
    const std::uint32_t row = mcu / image_.mcu_columns;
    const std::uint32_t column = mcu - row * image_.mcu_columns;
    if (column % kMcusPerPiece == 0)
      target_.entry(row * image_.pieces_of_row() + column / kMcusPerPiece, position, predictors);
  }
  // The image must end with EOI, right behind its last bit.
  SHARD_EXACT Fault end(std::uint32_t position) const {
    target_.end(position);
    const auto is = [this](std::uint32_t byte, std::uint32_t value) {
      return byte < scan_.end - scan_.first && scan_.bytes.byte(scan_.first + byte) == value;
    };
    std::uint32_t byte = position / 8;
    // The rest of a byte is padding, and behind 0xFF comes stuffing.
    if (position % 8 != 0) byte += is(byte, 0xFF) ? 2 : 1;
    const bool right = is(byte, 0xFF) && is(byte + 1, 0xD9);
    return right ? Fault::none : Fault::rest;
  }

  // Reads codes from `place` on, to the end of the image or, if `joins`, to a start of a lane behind
  // place.lane, which it becomes.
  SHARD_EXACT Fault read_on(Place& place, bool joins, std::uint32_t& enter, Sums& enter_sums) {
    McuWalker<Bytes> walker(image_, scan_);
    walker.go_to(place.position);
    walker.set_sums(place.predictors);
    auto& bits = walker.bits();
    const std::uint32_t begin = place.position;
    std::uint32_t known = place.lane;
    StartReader starts(pool_, kNoChunk, 0);
    while (place.mcu < mcus_) {
      const std::uint32_t lane = place.position / 8 / plan_.part_bytes;
      if (joins && lane > known && lane < plan_.lanes) {
        const Lane& found = lanes_[plan_.slot_of(lane)];
        starts = StartReader(pool_, found.first_chunk, found.own);
        known = lane;
      }
      if (starts.find(place.position)) {
        enter = starts.number();
        enter_sums = starts.get().sums;
        place.lane = known;
        place.predictors = walker.sums();
        alone_bits_ += place.position - begin;
        return Fault::none;
      }
      if (alone_bits_ + (place.position - begin) > kMostBitsAlone) return Fault::lanes;
      write_entry(place.mcu, place.position, walker.sums());
      walker.begin_mcu();
      do {
        while (!walker.fetch() || !walker.read_codes()) {
        }
      } while (!walker.next_block());
      if (walker.fault() != Fault::none) return walker.fault();
      ++read_alone_;
      const std::uint32_t restart = expected_restart(++place.mcu);
      if (restart != kNoRestart) {
        if (!bits.restart(restart)) return Fault::restart;
        walker.set_sums(0);
      }
      place.position = bits.position();
    }
    return end(place.position);
  }

  const ScanPlan& image_;
  std::uint32_t mcus_;
  const Scan<Bytes>& scan_;
  const LanePlan& plan_;
  const StartPool& pool_;
  const Lane* lanes_;
  const IndexTarget& target_;
  Place place_;  // where follow() is
  std::uint32_t enter_ = 0;
  Sums enter_sums_ = 0;
  std::uint64_t alone_bits_ = 0;
  std::uint32_t read_alone_ = 0;
};

}  // namespace shard::jpeg
