// direct: the frames of a batch are read into pinned memory, past the page cache (O_DIRECT) and many at once.
// One batched copy takes them to the device. Reads of later batches run while earlier batches are copied.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include "base/bytes.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "codec/sample_errors.hpp"
#include "codec/verify_sample.hpp"
#include "direct/direct_alignment.hpp"
#include "direct/direct_files.hpp"
#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"
#include "transport/sample_io.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

constexpr unsigned kMaxEntries = 512;  // requests that the kernel has at once; the others wait in their order
constexpr unsigned kReadingThreads = 32;  // if io_uring is refused

// Memory of compressed frames, read whole pages at a time.
struct FreeBytes {
  void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
};

class Direct final : public Transport {
 public:
  Direct(const TransportContext& context, std::string& detail)
      : context_(context), files_(*context.dataset), reads_(std::size_t{context.options->prefetch} + 1) {
    const LoaderOptions& options = *context.options;
    const auto first = open_first();
    const std::uint64_t batch = options.most_rows();
    const std::uint64_t slots = options.prefetch + 1;
    const DatasetInfo& info = context.dataset->info();
    memory_ = direct_memory(info, options, alignment_);
    const std::uint64_t parts = context.forms.size();
    const std::uint64_t most =
        std::accumulate(memory_.pitch_bytes.begin(), memory_.pitch_bytes.end(), std::uint64_t{0});
    const std::uint64_t mean =
        std::min(most, shard_bytes(info) / info.samples() + parts * memory_.unit_bytes);
    depth_ = std::clamp<std::uint64_t>(options.memory.readahead_bytes / (mean * batch), 1, slots);
    const auto entries =
        static_cast<unsigned>(std::bit_ceil(std::min<std::uint64_t>(kMaxEntries, depth_ * batch * parts)));
    try {
      queue_ = context.make_queue ? context.make_queue(entries) : make_uring_queue(entries);
      try_out(*first);
      detail = fmt::format("{}, reads aligned to {}", queue_->name(), alignment_);
    } catch (const Error& error) {
      queue_ = make_thread_queue(kReadingThreads);
      detail = fmt::format("{} threads, reads aligned to {} ({})", kReadingThreads, alignment_, error.what());
    }
  }
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;
  ~Direct() override {
    if (queue_ && under_way_ > 0) queue_->drain();  // the kernel writes into our slots until then
  }

  TransportKind kind() const noexcept override { return TransportKind::direct; }
  std::size_t depth() const noexcept override { return depth_; }

  void prepare(const Slot& slot) override {
    reads_[slot.number].rows = context_.device->allocate_pinned(memory_.slot_bytes);
    pinned_bytes_ += memory_.slot_bytes;
  }

  void begin(Slot& slot) override {
    Reads& reads = reads_[slot.number];
    reads.clear();
    for (const FetchItem& item : slot.fetch) add(reads, item);
    reserve_frames(reads);
    for (std::size_t i = 0; i < reads.reads.size(); ++i) {
      Read& read = reads.reads[i];
      read.owner = &reads;
      read.target = read.plain ? row_begin(reads, i) : reads.frames.get() + read.frame_begin;
    }
    if (!queue_) queue_ = make_thread_queue(kReadingThreads);  // the first queue has failed
    reads.left = reads.reads.size();
    drop_queue_on_failure([&] {
      for (Read& read : reads.reads) {
        if (!open_for(read)) {
          --reads.left;  // end() throws why
          continue;
        }
        queue_->start(read);
        ++under_way_;
      }
      queue_->flush();
    });
  }

  void end(Slot& slot) override {
    Reads& reads = reads_[slot.number];
    const Stopwatch watch;
    drop_queue_on_failure([&] {
      while (reads.left > 0) collect_one();
      if (queue_) queue_->flush();
    });
    if (reads.lost) throw Error(ErrorCode::io, queue_failure_);
    storage_seconds_ += watch.seconds();
    for (std::size_t i = 0; i < reads.reads.size(); ++i) require_whole(slot, i, reads.reads[i]);
    if (slot.verify || reads.frames_bytes > 0)
      run_rows(*context_.pool, reads.reads.size(), [&](std::size_t row) {
        context_.check_wanted();
        decode(slot, reads, row);
      });
    copy_rows(*context_.copy_stream, slot, copies_, [&](std::size_t row) { return row_of(reads, row); });
  }

  LoaderStats stats() const noexcept override {
    return {.storage_seconds = storage_seconds_, .pinned_bytes = pinned_bytes_};
  }

  std::string remark() const override {
    const std::lock_guard lock(mutex_);
    return remark_;
  }

 private:
  struct Reads;
  struct Read : ReadRequest {
    Reads* owner = nullptr;
    std::uint32_t shard = 0;
    bool plain = true;                       // the host does not decode it
    std::uint64_t row_begin = 0;             // of its row in Reads::rows
    std::shared_ptr<const DirectFile> file;  // while it is under way
    std::exception_ptr refused;              // why the file could not be opened
    std::uint32_t skew = 0;                  // of the frame in the range that is read
    std::uint32_t needed = 0;                // bytes of the range up to the frame's end
    std::uint32_t got = 0;
    int error = 0;                  // errno
    std::uint64_t frame_begin = 0;  // compressed: in Reads::frames
  };
  // The reads of one slot's batch.
  struct Reads {
    std::unique_ptr<Block> rows;  // pinned: samples as they go to the device
    std::vector<Read> reads;
    std::size_t left = 0;
    bool lost = false;                             // the queue failed before all of them were done
    std::unique_ptr<std::byte, FreeBytes> frames;  // compressed frames as they were read
    std::uint64_t frames_bytes = 0;
    std::uint64_t frames_capacity = 0;
    std::uint64_t rows_bytes = 0;
    void clear() {
      reads.clear();
      left = 0;
      lost = false;
      frames_bytes = 0;
      rows_bytes = 0;
    }
  };

  // Tests whether direct reads are possible. If not, the error is unsupported, so that another transport can
  // be chosen.
  std::shared_ptr<const DirectFile> open_first() {
    try {
      const auto first = files_.open(0);
      alignment_ =
          std::max(direct_alignment(first->descriptor(), context_.dataset->shard(0).file_size_bytes()),
                   context_.least_alignment);
      return first;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::io) throw;
      throw Error(ErrorCode::unsupported, error.what());
    }
  }

  // Does one read through the queue, because a kernel or the rules of a container may allow the queue but
  // refuse its reads.
  void try_out(const DirectFile& file) {
    const std::unique_ptr<std::byte, FreeBytes> memory(
        static_cast<std::byte*>(std::aligned_alloc(memory_.unit_bytes, memory_.unit_bytes)));
    if (!memory) throw Error(ErrorCode::resource, "no host memory for a page");
    ReadRequest read;
    read.descriptor = file.descriptor();
    read.target = memory.get();
    read.size_bytes = static_cast<std::uint32_t>(memory_.unit_bytes);
    try {
      queue_->start(read);
      queue_->flush();
      queue_->next_done();
    } catch (const Error&) {
      queue_->drain();
      throw;
    }
    if (read.result <= 0)
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: reading: {}", queue_->name(),
                              std::generic_category().message(static_cast<int>(-read.result))));
  }

  // Calls `body`. If the queue fails, this ends all reads, so that slots and their requests can be used
  // again. What the slots still waited for is lost, and threads read from then on.
  template <class Body>
  void drop_queue_on_failure(const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      queue_failure_ = error.what();
      queue_->drain();
      under_way_ = 0;
      for (Reads& reads : reads_) {
        for (Read& read : reads.reads) read.file.reset();
        reads.lost = reads.lost || reads.left > 0;
        reads.left = 0;
      }
      queue_.reset();
      const std::lock_guard lock(mutex_);
      remark_ = fmt::format("{} threads read, because the queue failed: {}", kReadingThreads, queue_failure_);
    }
  }

  // Opens the file of a read. If reads under way use all descriptors, it waits for one of them. False:
  // read.refused has the error.
  bool open_for(Read& read) {
    for (;;) {
      try {
        read.file = files_.open(read.shard);
        if (!read.file && under_way_ == 0)
          throw Error(ErrorCode::resource,
                      fmt::format("{}: no descriptor is left for direct reads: raise 'ulimit -n'",
                                  quoted(context_.dataset->shard(read.shard).path())));
      } catch (const Error&) {
        read.refused = std::current_exception();
        return false;
      }
      if (read.file) break;
      queue_->flush();
      collect_one();
    }
    read.descriptor = read.file->descriptor();
    return true;
  }

  void add(Reads& reads, const FetchItem& item) {
    const ShardReader& shard = context_.dataset->shard(item.at.shard);
    if (item.first_of_shard) check_alive(shard);
    const StoredForm& form = *context_.forms[item.part];
    const std::span<const std::byte> frame = form.images(shard).frame(item.at.sample);
    const auto offset = static_cast<std::uint64_t>(frame.data() - shard.mapping().data());
    Read read;
    read.shard = item.at.shard;
    read.plain = !form.decoded_by_host();
    const std::uint64_t align = alignment_;
    const std::uint64_t begin = offset / align * align;
    const std::uint64_t size = round_up(offset + frame.size(), align) - begin;
    std::uint64_t pitch = memory_.pitch_bytes[item.part];
    if (form.may_be_late()) pitch = round_up(item.size_bytes, memory_.unit_bytes) + memory_.unit_bytes;
    if (size > (read.plain ? pitch : kMaxDirectRead))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: a direct read of {} bytes is too large; use transport staged",
                              form.name_of(shard, item.at.sample), size));
    read.offset = begin;
    read.size_bytes = static_cast<std::uint32_t>(size);
    read.skew = static_cast<std::uint32_t>(offset - begin);
    read.needed = read.skew + static_cast<std::uint32_t>(frame.size());
    read.frame_begin = reads.frames_bytes;
    read.row_begin = reads.rows_bytes;
    reads.rows_bytes += pitch;
    if (!read.plain) reads.frames_bytes += round_up(size, memory_.unit_bytes);
    reads.reads.push_back(std::move(read));
  }

  void reserve_frames(Reads& reads) const {
    if (reads.frames_capacity >= reads.frames_bytes) return;  // also if no frame is decoded here
    reads.frames.reset(static_cast<std::byte*>(std::aligned_alloc(memory_.unit_bytes, reads.frames_bytes)));
    reads.frames_capacity = reads.frames ? reads.frames_bytes : 0;
    if (!reads.frames)
      throw Error(ErrorCode::resource, fmt::format("no host memory for {} bytes of compressed frames; lower "
                                                   "batch_size or readahead_bytes",
                                                   reads.frames_bytes));
  }

  void collect_one() {
    auto& read = static_cast<Read&>(queue_->next_done());
    --under_way_;
    if (read.result == -EINTR || read.result == -EAGAIN) {
      again(read);
    } else if (read.result < 0) {
      read.error = static_cast<int>(-read.result);
      finish(read);
    } else {
      const auto got = static_cast<std::uint32_t>(read.result);
      read.got += got;
      // A short read that is not at the end of the file: read the rest, if that starts at an aligned offset.
      if (read.got < read.needed && got > 0 && got % alignment_ == 0) {
        read.offset += got;
        read.target += got;
        read.size_bytes -= got;
        again(read);
      } else {
        finish(read);
      }
    }
  }
  static void finish(Read& read) {
    --read.owner->left;
    read.file.reset();  // its descriptor may be closed for another one
  }
  void again(Read& read) {
    queue_->start(read);
    ++under_way_;
  }

  void require_whole(const Slot& slot, std::size_t row, const Read& read) const {
    if (read.refused) std::rethrow_exception(read.refused);
    if (read.error == 0 && read.got >= read.needed) return;
    const Dataset::Location at = slot.fetch[row].at;
    const ShardReader& shard = context_.dataset->shard(at.shard);
    rethrow_for(
        shard, context_.forms[slot.fetch[row].part]->name_of(shard, at.sample),
        Error(ErrorCode::io, read.error != 0
                                 ? fmt::format("direct read: {}", std::generic_category().message(read.error))
                                 : fmt::format("direct read: {} of {} bytes", read.got, read.needed)));
  }

  // Reads need aligned memory, and a pinned block of a device may not be aligned.
  std::byte* row_begin(const Reads& reads, std::size_t row) const {
    std::byte* const block = reads.rows->data();
    const std::size_t skew = reinterpret_cast<std::uintptr_t>(block) % memory_.unit_bytes;
    return block + (skew == 0 ? 0 : memory_.unit_bytes - skew) + reads.reads[row].row_begin;
  }

  // Where the sample of a row is after it was read and decoded.
  std::byte* row_of(const Reads& reads, std::size_t row) const {
    return row_begin(reads, row) + (reads.reads[row].plain ? reads.reads[row].skew : 0);
  }

  void decode(const Slot& slot, const Reads& reads, std::size_t row) const {
    const Read& read = reads.reads[row];
    const Dataset::Location at = slot.fetch[row].at;
    const ShardReader& shard = context_.dataset->shard(at.shard);
    const StoredForm& form = *context_.forms[slot.fetch[row].part];
    const std::span<std::byte> sample(row_of(reads, row), slot.fetch[row].size_bytes);
    if (!read.plain) {
      const std::span frame(reads.frames.get() + read.frame_begin + read.skew, read.needed - read.skew);
      if (slot.verify) verify_frame(form, shard, at.sample, frame);
      try {
        const StoredImages& images = form.images(shard);
        images.codec().decode(frame, sample, images.frame_spec(at.sample));
      } catch (const Error& error) {
        rethrow_for(shard, form.name_of(shard, at.sample), error);
      }
    }
    if (slot.verify) verify_stored(form, shard, at.sample, sample);
  }

  TransportContext context_;
  std::uint32_t alignment_ = 1;  // of reads
  DirectMemory memory_;
  std::uint64_t depth_ = 1;
  DirectFiles files_;
  std::vector<Reads> reads_;      // by slot
  std::vector<CopyItem> copies_;  // scratch
  std::unique_ptr<ReadQueue> queue_;
  std::size_t under_way_ = 0;
  std::string queue_failure_;
  mutable std::mutex mutex_;
  std::string remark_;  // guarded by mutex_
  std::uint64_t pinned_bytes_ = 0;
  double storage_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_direct(const TransportContext& context, std::string& detail) {
  return std::make_unique<Direct>(context, detail);
}

}  // namespace shard
