// Writer: makes a data set of images that a program hands over one by one: rows of a table, records of
// another format, what a model makes. Threads decode, resize, encode and write them.
//
//   WriterOptions options;
//   options.out = "out/train";
//   options.classes = {"ant", "bee"};
//   Writer writer(options);
//   for (...) {
//     WriterRow row("ant/1.jpg", bytes);
//     row.set_label(0);
//     writer.add(std::move(row));
//   }
//   writer.close();
//
// Row i belongs to shard floor(i / samples per shard), so the shards have the same bytes as those that
// shardify makes of the same images in the same order. A program that ends before close(), however it ends,
// leaves an unfinished data set of whole shards and no dataset.json. With `resume` the next one goes on after
// the last whole shard.
//
// A Writer belongs to the process that made it: in the child of a fork every call is an error (unsupported),
// and its destructor does nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/options.hpp"
#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// The members of Options that describe inputs and how processes share them have no meaning here, except for
// `classes`, the names of the labels 0, 1, ... (empty: labels are numbers). Those that would change what is
// stored, and `refresh`, `append`, `claim` and `world_size`, are refused.
//
// `overwrite` replaces the data set in `out`, finished or not, as it does for conversions: the rows go to a
// folder inside it, and the old data set stays complete and readable until close(). Together with `resume`, a
// replacement that was stopped goes on.
//
// `samples_per_shard` 0: as many as `shard_bytes` holds. Fewer if a shard could not hold the columns of
// as many: then as many as need 256 MiB for them. A shard ends early, too, if keys, texts and ragged columns
// of its rows fill it.
struct WriterOptions : Options {
  // What each row has beside its image, `labels` first. Empty: as in the unfinished data set,
  // or Writer::declare() says it.
  std::vector<ColumnSpec> fields;
  // Further images of each row, which are stored as they are given: masks, depth, latents.
  std::vector<FieldSpec> image_fields;
  // Goes on with an unfinished data set in `out`; its options must be the same.
  // Nothing to go on with is no error.
  bool resume = false;
  // The samples are tensors (tensor_spec()), stored as they are handed over: WriterRow::image has the bytes
  // of one, C order, little-endian. `preprocess` is not used. Empty: images.
  std::optional<SampleSpec> tensor;
  SampleSpec sample_spec() const { return tensor ? *tensor : preprocess.sample_spec(); }
  // Of a data set with these columns. Errors: invalid_argument (more samples_per_shard
  // than a shard can hold).
  std::uint64_t rows_per_shard(const std::vector<ColumnSpec>& columns) const;
  // Throws invalid_argument naming the member.
  void check() const;
};

// Pixels, 8 bits each: [row, column, channel] in C order, of 1 (gray),
// 3 (RGB) or 4 channels (the fourth is left out).
struct Pixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;
};

// One row of a data set. Owns its bytes.
struct WriterRow {
  WriterRow() = default;
  // `encoded`: the bytes of an image file.
  WriterRow(std::string row_key, std::vector<std::byte> encoded)
      : key(std::move(row_key)), image(std::move(encoded)) {}

  // Not escaped. Unique in the data set.
  std::string key;
  // The bytes of an image file, or pixels, or a tensor (WriterOptions::tensor).
  std::vector<std::byte> image;
  std::optional<Pixels> pixels;
  // If it is not empty: the image file. `image` is not used.
  std::filesystem::path file;
  // The bytes of each column, in the order of the columns: one row,
  // or any number of them if the column is ragged, or text.
  std::vector<std::vector<std::byte>> columns;
  // The samples of the further image fields, in the order of WriterOptions::image_fields: C order,
  // with the size of their specs, or, where that is free, the size in `image_sizes`, of the same order.
  std::vector<std::vector<std::byte>> images;
  std::vector<image::Size> image_sizes;

  // For data sets whose first column is i64 [N].
  void set_label(std::int64_t label);
  // The image is an array, of `elements`, with a dtype as numpy writes it ("|u1", "<u2", "<f4", ...), and
  // hw, hwc or chw. It is stored as an image of a .npy file is: with its channels and all its bits where the
  // options say `channels`, and else as RGB of 8 bits. Errors: invalid_argument (bytes that do not fit the
  // shape), and those of arrays: unsupported (another dtype, shape or size), corrupt (an axis of 0).
  void set_array(std::string_view dtype, std::span<const std::uint64_t> shape, ArrayLayout layout,
                 std::span<const std::byte> elements);
  bool is_array = false;  // `image` is what set_array() made
};

// Any number of threads may call add(), try_add(), close() and cancel() at once. What is added before close()
// is stored; what comes after it is an error, also if close() is still at work. A second close() waits for
// the first and returns the same.
class Writer {
 public:
  // Locks `out`. Errors: invalid_argument (`out` holds something else; the message says what to do), resource
  // (another process or Writer works there), io.
  explicit Writer(const WriterOptions& options);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  // Without close(), the data set stays unfinished. Waits for the threads, not for the images that wait.
  // Calls of other threads that wait inside end with `cancelled` first.
  ~Writer();

  // Before the first add(). Errors: invalid_argument (other columns than those of the
  // unfinished data set), io.
  void declare(std::vector<ColumnSpec> columns);
  bool is_declared() const;
  std::vector<ColumnSpec> columns() const;

  // Hands a row over; waits while too many rows wait for the threads. False: an earlier run has stored the
  // row with this key, and nothing happens. Thread safe, but the order of the rows is the order of the
  // calls. Errors: invalid_argument (a key that was added before, an empty key, columns or further images
  // of other sizes, text that is not UTF-8, a writer that is closed), and those of the threads: io;
  // corrupt with OnError::fail.
  bool add(WriterRow row);
  // Waits for `patience` at most. Nothing: there was no room, and `row` is as before.
  std::optional<bool> try_add(WriterRow& row, std::chrono::milliseconds patience);

  // Whether an earlier run has stored (or rejected) the row with this key.
  bool is_done(std::string_view key) const;
  // These keys, in their order.
  std::vector<std::string> keys_done() const;
  // Rows of the data set so far, with those of earlier runs.
  std::uint64_t size() const;
  // What to tell the person if many images of this run were smaller than the size to which they are resized,
  // as a sentence: of the first 64 rows, and each 64th behind them, that were read so far. Empty: few were.
  std::string enlargement() const;

  // Writes what is left and dataset.json, and unlocks `out`. A second call returns the same.
  // Errors: those of add(); invalid_argument if there is no row: then rows can still be added. After io a
  // second call tries again.
  Summary close();
  // Makes add() and close() throw cancelled, in any thread.
  void cancel() noexcept;

 private:
  struct Impl;
  // Does nothing in the child of a fork: the threads and the lock are the parent's.
  struct Destroy {
    void operator()(Impl* impl) const noexcept;
  };
  std::unique_ptr<Impl, Destroy> impl_;
};

}  // namespace shard::convert
