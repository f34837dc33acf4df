#include "image/codecs/avif_grid.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"

namespace shard::image {
namespace {

// Big-endian numbers, one after the other. Behind the end they are 0, and ok() is false.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (const std::byte b : take(size)) value = value << 8U | std::to_integer<std::uint64_t>(b);
    return value;
  }
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(static_cast<std::size_t>(size));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

struct Box {
  std::string_view type;
  Fields content{{}};
};

// The next box; `ok` becomes false if it is cut off.
Box next_box(Fields& boxes, bool& ok) {
  std::uint64_t size = boxes.number(4);
  std::uint64_t head = 8;
  Box box{as_text(boxes.take(4)), Fields({})};
  if (size == 1) {
    size = boxes.number(8);
    head = 16;
  } else if (size == 0) {
    size = head + boxes.size();
  }
  box.content = Fields(size < head ? std::span<const std::byte>() : boxes.take(size - head));
  ok = ok && size >= head && boxes.ok();
  return box;
}

class GridOrder {
 public:
  // Whether all of it could be read.
  bool read(std::span<const std::byte> file) {
    Fields boxes(file);
    bool ok = true;
    while (ok && !boxes.empty()) {
      Box box = next_box(boxes, ok);
      if (box.type != "meta" || !ok) continue;
      box.content.number(4);
      while (ok && !box.content.empty()) read_child(next_box(box.content, ok), ok);
    }
    return ok;
  }

  bool has_grids() const { return !grids_.empty(); }
  bool in_item_order() const {
    return std::all_of(grids_.begin(), grids_.end(), [&](const std::vector<std::uint64_t>& tiles) {
      return std::is_sorted(tiles.begin(), tiles.end(),
                            [&](std::uint64_t a, std::uint64_t b) { return places_.at(a) < places_.at(b); });
    });
  }

 private:
  // libavif's table has the items in the order in which the boxes name them first.
  std::uint64_t name(std::uint64_t item) {
    places_.emplace(item, places_.size());
    return item;
  }

  void read_child(Box box, bool& ok) {
    Fields& in = box.content;
    if (box.type == "iprp") {
      while (ok && !in.empty()) {
        Box child = next_box(in, ok);
        if (child.type == "ipma") read_ipma(child.content);
        ok = ok && child.content.ok();
      }
    } else if (box.type == "iloc") {
      read_iloc(in);
    } else if (box.type == "iinf") {
      const std::uint64_t version = in.number(4) >> 24U;
      in.number(version == 0 ? 2 : 4);
      while (ok && !in.empty()) {
        Box entry = next_box(in, ok);
        const std::uint64_t kind = entry.content.number(4) >> 24U;
        if (entry.type == "infe") name(entry.content.number(kind >= 3 ? 4 : 2));
        ok = ok && entry.content.ok();
      }
    } else if (box.type == "iref") {
      const std::size_t id = in.number(4) >> 24U == 0 ? 2 : 4;
      while (ok && !in.empty()) {
        Box reference = next_box(in, ok);
        read_reference(reference, id);
        ok = ok && reference.content.ok();
      }
    }
    ok = ok && in.ok();
  }

  void read_iloc(Fields& in) {
    const std::uint64_t version = in.number(4) >> 24U;
    const std::uint64_t sizes = in.number(2);
    const std::size_t per_extent =
        (sizes >> 12U & 15U) + (sizes >> 8U & 15U) + (version != 0 ? sizes & 15U : 0);
    const std::size_t id = version < 2 ? 2 : 4;
    const std::uint64_t count = in.number(id);
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
      name(in.number(id));
      in.take((version != 0 ? 2 : 0) + 2 + (sizes >> 4U & 15U));
      in.take(in.number(2) * per_extent);
    }
  }

  void read_ipma(Fields& in) {
    const std::uint64_t head = in.number(4);
    const std::uint64_t count = in.number(4);
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
      name(in.number(head >> 24U == 0 ? 2 : 4));
      in.take(in.number(1) * ((head & 1U) != 0 ? 2 : 1));
    }
  }

  void read_reference(Box& reference, std::size_t id) {
    Fields& in = reference.content;
    name(in.number(id));
    const std::uint64_t count = in.number(2);
    std::vector<std::uint64_t> tiles;
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) tiles.push_back(name(in.number(id)));
    if (reference.type == "dimg" && tiles.size() > 1) grids_.push_back(std::move(tiles));
  }

  std::unordered_map<std::uint64_t, std::size_t> places_;
  std::vector<std::vector<std::uint64_t>> grids_;
};

}  // namespace

bool has_grids_in_item_order(std::span<const std::byte> file) {
  GridOrder order;
  const bool whole = order.read(file);
  return !order.has_grids() || (whole && order.in_item_order());
}

}  // namespace shard::image
