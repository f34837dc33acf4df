// A small data set whose samples say which they are, and loaders over it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/loader/loader.hpp"
#include "support/temp_dir.hpp"
#include "transform/philox.hpp"
#include "transform/value_map.hpp"

namespace shard::testing {

// Bytes of sample `index`: a function of the index alone.
inline std::vector<std::byte> sample_bytes(std::uint64_t index, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (std::uint64_t i = 0; i < size; i += 4) {
    const auto words =
        philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(i), 0, 0}, {1, 2});
    std::memcpy(bytes.data() + i, words.data(), std::min<std::uint64_t>(4, size - i));
  }
  return bytes;
}

struct DatasetShape {
  std::vector<std::uint64_t> shards{37, 20, 41, 3};
  SampleSpec spec{DType::u8, Layout::nhwc, 3, 12, 10};
  CodecSpec codec;
};

inline const Normalization kNormalization{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

// With codec packed few values, so that packing pays, but for each fifth sample, which is noise; floats are
// normalised bytes.
inline std::vector<std::byte> sample_of(const DatasetShape& shape, std::uint64_t index) {
  const SampleSpec& spec = shape.spec;
  if (shape.codec.kind != CodecSpec::Kind::packed) return sample_bytes(index, spec.size_bytes());
  std::vector<std::byte> bytes = sample_bytes(index, spec.elements());
  if (index % 5 != 0)
    for (std::byte& byte : bytes) byte >>= 5;
  if (spec.dtype == DType::u8) return bytes;
  const ValueMap map = make_value_map(spec.dtype, kNormalization, spec.channels);
  const std::size_t size = size_bytes(spec.dtype);
  std::vector<std::byte> floats(spec.size_bytes());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t channel =
        spec.layout == Layout::nhwc ? i % spec.channels : i / (std::size_t{spec.height} * spec.width);
    std::memcpy(&floats[i * size], &map.bits[channel][std::to_integer<std::size_t>(bytes[i])], size);
  }
  return floats;
}

// Label of sample i: 1000 + i.
inline void write_dataset(const std::filesystem::path& folder, const DatasetShape& shape) {
  DatasetInfo info;
  info.spec = shape.spec;
  if (!shape.spec.is_tensor()) info.normalization = kNormalization;
  info.codec = shape.codec;
  info.fingerprint = "0123456789abcdef";
  info.source_digest = "0123456789abcdef";
  const ShardWriterOptions options{info};
  std::uint64_t index = 0;
  for (std::uint64_t n : shape.shards) {
    ShardWriter writer = ShardWriter::create(
        folder / ("shard-" + std::to_string(info.shards.size()) + ".safetensors"), n, options);
    for (std::uint64_t i = 0; i < n; ++i, ++index) {
      const std::uint64_t label = 1000 + index;
      std::vector<std::byte> row(8);
      std::memcpy(row.data(), &label, 8);
      writer.put(i, "k" + std::to_string(index), row, sample_of(shape, index));
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = index;
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

// All transports but those on O_DIRECT where the filesystem of `folder` has none (said aloud).
inline std::vector<TransportKind> link_transports(const std::filesystem::path& folder) {
  std::vector<TransportKind> kinds{TransportKind::mapped, TransportKind::staged};
  const int descriptor = ::open((folder / kDatasetFile).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (descriptor >= 0) {
    ::close(descriptor);
    kinds.push_back(TransportKind::direct);
  } else {
    std::printf("no O_DIRECT in %s: transport direct is left out\n", folder.c_str());
  }
  return kinds;
}

// Those and resident.
inline std::vector<TransportKind> all_transports(const std::filesystem::path& folder) {
  std::vector<TransportKind> kinds = link_transports(folder);
  kinds.push_back(TransportKind::resident);
  return kinds;
}

// What a consumer saw of a batch.
struct Seen {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  std::vector<std::uint64_t> ids;
  std::vector<std::uint8_t> mask;
  std::vector<std::int64_t> labels;
  std::vector<std::byte> images;
  bool operator==(const Seen&) const = default;
};

// Of several views, each batch shows another one.
inline Seen look(Device& device, Batch& batch) {
  const std::size_t view = batch.index() % batch.views();
  Seen seen;
  seen.epoch = batch.epoch();
  seen.index = batch.index();
  seen.ids.assign(batch.ids().begin(), batch.ids().end());
  seen.mask.assign(batch.mask().begin(), batch.mask().end());
  seen.labels.assign(batch.labels().begin(), batch.labels().end());
  seen.images.resize(batch.size() * batch.spec(view).size_bytes());
  // ids, mask and labels are on the device too.
  std::vector<std::int64_t> ids(batch.size());
  std::vector<std::uint8_t> mask(batch.size());
  std::vector<std::int64_t> labels(batch.size());
  auto stream = device.create_stream();
  batch.wait_on(*stream);
  const auto bytes = [](auto& values) { return reinterpret_cast<std::byte*>(values.data()); };
  const std::array<CopyItem, 4> items{{{seen.images.data(), batch.images(view).data, seen.images.size()},
                                       {bytes(ids), batch.device_ids().data, 8 * batch.size()},
                                       {bytes(mask), batch.device_mask().data, batch.size()},
                                       {bytes(labels), batch.column("labels").data, 8 * batch.size()}}};
  if (batch.size() > 0) stream->copy_to_host(items);
  try {
    stream->synchronize();
  } catch (const Error&) {  // of what it waited for; the batch says which sample that was
    batch.wait();
    throw;
  }
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), seen.ids.begin(), seen.ids.end(),
                         [](std::int64_t a, std::uint64_t b) { return a == static_cast<std::int64_t>(b); }));
  EXPECT_EQ(mask, seen.mask);
  EXPECT_EQ(labels, seen.labels);
  batch.release();
  return seen;
}

inline std::vector<Seen> run_epoch(Device& device, Loader& loader, std::uint64_t epoch) {
  std::vector<Seen> all;
  for (Batch& batch : loader.epoch(epoch)) all.push_back(look(device, batch));
  return all;
}

}  // namespace shard::testing
