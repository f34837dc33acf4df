// LoaderOptions: what a loader delivers, how, and within which bounds of memory.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shard/loader/buckets.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/targets.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

// How stored samples reach the device (docs/loader.md, "Transports").
enum class TransportKind : std::uint8_t {
  // mapped if the platform and the budget allow it; else direct if the shards exceed memory, else staged.
  automatic,
  // A thread registers the mapped shards ahead, and the copy engine gathers the samples. Samples of shards
  // that are not registered yet are staged. Host device: samples are read in place.
  mapped,
  // Threads copy samples into a pinned ring, or decompress zstd frames into it. One copy per batch.
  staged,
  // io_uring with O_DIRECT reads into the pinned ring.
  direct,
  // Samples stay in device memory after their first upload, up to resident_bytes.
  resident,
};
constexpr std::array<std::string_view, 5> words_of(TransportKind) {
  return {"auto", "mapped", "staged", "direct", "resident"};
}
std::string_view to_string(TransportKind kind) noexcept;

// When samples are compared with their checksums before they are delivered: those of their stored bytes and
// those of what these decode to.
enum class Verify : std::uint8_t { never, first_epoch, always };
constexpr std::array<std::string_view, 3> words_of(Verify) { return {"never", "first_epoch", "always"}; }

// What becomes of an image that cannot be used, in a data set that is not converted (convert::open_source()):
// an error, or the next sample of the data set (after the last the first) that can be used takes its place.
enum class OnError : std::uint8_t { raise, skip };
constexpr std::array<std::string_view, 2> words_of(OnError) { return {"raise", "skip"}; }

// How a ragged column is delivered.
struct RaggedOptions {
  // The first rows of each sample, at most this many. 0: as many as any sample has; all shards are then
  // opened when the loader is made. Boxes and the columns along have one limit: stated for one of them it
  // holds for all, and two that differ are refused.
  std::uint64_t max_rows = 0;
  // False: column(NAME) is [batch, max_rows, ...] with zeros after the rows of a sample, and
  // column(NAME_counts), i64 [batch], says how many it has. True: column(NAME) has the rows of all samples,
  // one after the other, and column(NAME_offsets), i64 [batch + 1], says where those of each sample begin.
  bool flat = false;
};

// The layout of views that name none (TransformOptions::layout).
// It belongs to the consumer: a LoaderState does not have it.
enum class UnnamedLayout : std::uint8_t {
  stored,
  // nchw where floats are delivered, else as stored.
  nchw_if_float,
  nchw,
};
constexpr std::array<std::string_view, 3> words_of(UnnamedLayout) {
  return {"stored", "nchw_if_float", "nchw"};
}

// What a bucket keeps of a sample that is resized to cover it.
enum class BucketCrop : std::uint8_t { center, random };
constexpr std::array<std::string_view, 2> words_of(BucketCrop) { return {"center", "random"}; }

// Bounds of memory, in bytes.
struct MemoryOptions {
  // mapped: budget for registered shards. 0: half of what cgroup and MemAvailable allow. A global shuffle
  // needs all shards in it. In a windowed or sequential order, shards that do not fit are staged.
  std::uint64_t registered_bytes = 0;
  // staged, direct: bound of the pinned ring. mapped: bound of the memory in which samples are staged until
  // all shards are registered; if it is too small for that, batches wait for the registration of their
  // shards.
  std::uint64_t pinned_bytes = std::uint64_t{1} << 30U;
  // resident: bound of device memory for samples. 0: half of what is free beside the ring. Never more than
  // the samples of this rank need: its part of the data set in a sequential order, else all of it.
  std::uint64_t resident_bytes = 0;
  // direct: bytes of reads in flight.
  std::uint64_t readahead_bytes = std::uint64_t{256} << 20U;
  // Samples of any size: the bytes of a batch's images, decoded, that are on the device and in staging memory
  // at a time; further fields have as much by their bytes per pixel. What a batch has beyond them is made
  // afterwards, in groups, which is slower. 0: what shuffled batches nearly always have, at most 1.5 times
  // the mean, which other orders (and buckets) get; if samples are staged all the time, at most half of
  // pinned_bytes. At least the largest sample.
  std::uint64_t batch_bytes = 0;

  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("registered_bytes", of.registered_bytes, Limits{});
    visit("pinned_bytes", of.pinned_bytes, Limits{});
    visit("resident_bytes", of.resident_bytes, Limits{});
    visit("readahead_bytes", of.readahead_bytes, Limits{});
    visit("batch_bytes", of.batch_bytes, Limits{});
  }
};

// What is kept on this machine of a data set on servers (docs/remote.md).
struct RemoteOptions {
  // The folder for whole shards, which all processes of a node may share, and the most bytes that its files
  // have (0: what the disk has). Nothing is removed from it.
  std::filesystem::path cache{};
  std::uint64_t cache_bytes = 0;
  // The folder through which shards pass that do not fit in the cache, ahead of the order, and the most
  // bytes that they have at a time. Empty: the cache folder, or without a cache TMPDIR. 0: what two windows
  // of shards need, at most a quarter of the disk. A global shuffle has no such area: samples whose shard
  // is not in the cache are requested one by one.
  std::filesystem::path transit{};
  std::uint64_t transit_bytes = 0;

  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("cache", of.cache, Limits{});
    visit("cache_bytes", of.cache_bytes, Limits{});
    visit("transit", of.transit, Limits{});
    visit("transit_bytes", of.transit_bytes, Limits{});
  }
};

// Which samples, and in which order, is what OrderOptions says: batch_size, rank, world_size, order,
// tail, seed, ...
struct LoaderOptions : OrderOptions {
  // What is delivered.
  TransformOptions transform;
  // Further views of each sample in the same batch: views 1 to 63; view 0 is `transform`. Each has
  // its own crop, size, operations, dtype and layout. A sample crosses the link once, and is decoded
  // once, for all of them.
  std::vector<TransformOptions> further_views;
  // Samples of any size, one view: each batch has one of these sizes, and samples of its bucket, which are
  // resized to cover it (ResizeKind::cover). The sizes of all samples are read when the loader is made. Order
  // shuffle or sequential. `transform` then has no crop and no resize.
  std::vector<Bucket> buckets;
  BucketCrop bucket_crop = BucketCrop::center;
  // With buckets: the pixels of a batch of this rank. A global batch of a bucket of h x w has batch_pixels x
  // world_size / (h x w) samples, and at least one for each rank; batch_size is not used. 0: batch_size x
  // world_size samples.
  std::uint64_t batch_pixels = 0;
  // Samples of any size with a padded view. Above 0: of each so many samples of the order, those of about the
  // same size come in one batch, so that less is padded (Order). Rounded up to whole global batches.
  // Any sampling, but repeats 1.
  std::uint64_t length_window = 0;
  // Of images; tensors have none.
  UnnamedLayout unnamed_layout = UnnamedLayout::stored;
  // Mixup and cutmix of neighbours, for samples stored as u8 or with codec packed; one view. A batch then has
  // two more columns: `labels_b`, the labels of each row's neighbour, and `share`, f32 [batch], that of the
  // row's own label. batch_size must be even, and tail not short_.
  MixOptions mix;
  // Targets (targets.hpp). Further image fields that are delivered, by name; none by default.
  std::map<std::string, FieldOptions> fields;
  // Ragged columns that have boxes, and columns that have keypoints. If a view moves pixels (crop, flip,
  // geometric operations) or samples are mixed, columns that the data set knows to be boxes or keypoints
  // (known_targets()) are among them by themselves.
  std::map<std::string, BoxOptions> boxes;
  std::map<std::string, KeypointOptions> keypoints;
  // Columns that are delivered as stored, whatever the views do; "*": all that are not in boxes and
  // keypoints. A column that looks like boxes, points or masks, and of which the data set does not say what
  // it is, must be here or there if pixels are moved: it is an error at start otherwise. All other columns
  // are delivered as stored.
  std::set<std::string> as_stored{};
  // A batch then has a column `correspondence`, f32 [batch, views, 3, 3]:
  // from the stored sample to each view (geometry.hpp).
  bool correspondence = false;
  // Default: never. Comparing costs CPU time for each sample.
  Verify verify = Verify::never;
  OnError on_error = OnError::raise;
  // A CSV file with lines path,reason, to which images are appended that on_error skips, each once by all
  // loaders, processes and runs that use the file. It is opened when the loader is made. Empty: none.
  std::filesystem::path rejects{};
  // By name. Ragged columns that are not named are padded.
  std::map<std::string, RaggedOptions> ragged;

  // How it is loaded.
  TransportKind transport = TransportKind::automatic;
  // Batches ahead of the consumer, at most 64. There are prefetch + 1 slots, so that one can be lent.
  // 0: 4, or where a GPU decodes JPEGs, which need more at once, 4096 rows of all views, in 4 to 32 batches.
  std::uint32_t prefetch = 0;
  // Batches that are made as one, at most 64: one copy, one kernel, one event. Ahead are then as many such
  // groups, and a group's memory is used again when none of its batches is lent. 0: on a GPU, where prefetch
  // is 0 too, so many that they have about 256 rows in 64 MiB; else 1. Always 1 for samples of any size,
  // patches, mix, flat columns, images that are not converted, and data sets on servers.
  std::uint32_t together = 0;
  // Threads that copy and decompress. 0: the number of usable CPUs, at most 8, on a GPU 12;
  // 16 while shards are on a server. Where images are not converted, as many others decode them, and 0 is the
  // number of usable CPUs.
  std::uint32_t threads = 0;

  MemoryOptions memory;
  RemoteOptions remote;

  // The samples of a global batch of a bucket.
  std::uint64_t global_batch_of(const Bucket& bucket) const noexcept {
    if (batch_pixels == 0) return batch_size * world_size;
    const std::uint64_t pixels = std::uint64_t{bucket.height} * bucket.width;
    const std::uint64_t samples =
        batch_pixels / pixels * world_size + batch_pixels % pixels * world_size / pixels;
    return samples < world_size ? world_size : samples;
  }
  // The most rows that are made at once, for this rank: those of a batch, or of `together` batches.
  std::uint64_t most_rows() const noexcept {
    std::uint64_t most = buckets.empty() ? batch_size : 1;
    for (const Bucket& bucket : buckets) {
      const std::uint64_t rows = (global_batch_of(bucket) + world_size - 1) / world_size;
      most = rows > most ? rows : most;
    }
    return together > 1 ? most * together : most;
  }

  // visit(name, member, Limits) for each that is a number, a word or a path, those of OrderOptions and of the
  // groups too: from here come the checks with their messages and what Python passes on.
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    OrderOptions::members(of, visit);
    visit("bucket_crop", of.bucket_crop, Limits{});
    visit("batch_pixels", of.batch_pixels, Limits{.high = 1'099'511'627'776});  // 2^40
    visit("length_window", of.length_window, Limits{.high = 16'777'216});       // 2^24
    visit("unnamed_layout", of.unnamed_layout, Limits{});
    visit("correspondence", of.correspondence, Limits{});
    visit("verify", of.verify, Limits{});
    visit("on_error", of.on_error, Limits{});
    visit("rejects", of.rejects, Limits{});
    visit("transport", of.transport, Limits{});
    visit("prefetch", of.prefetch, Limits{.low = 0, .high = 64});
    visit("together", of.together, Limits{.low = 0, .high = 64});
    visit("threads", of.threads, Limits{.low = 0, .high = 256});
    MemoryOptions::members(of.memory, visit);
    RemoteOptions::members(of.remote, visit);
  }
};

// The view of the samples of one of LoaderOptions::buckets.
TransformOptions view_of_bucket(const LoaderOptions& options, const Bucket& bucket);

}  // namespace shard
