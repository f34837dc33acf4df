// PlanReader: reads and decodes inputs of a plan, one after the other, in any order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "convert/engine/row_source.hpp"
#include "convert/plan/further_reader.hpp"
#include "convert/plan/plan.hpp"
#include "convert/plan/sample_maker.hpp"
#include "convert/sources/input_fetcher.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/image/jpeg_originals.hpp"

namespace shard::convert {

// Not thread safe: each thread has its own.
class PlanReader final : public RowReader {
 public:
  // All must outlive the reader. `fetcher`: of inputs on servers, in the order of the plan. Null: each is
  // read when it is asked for.
  PlanReader(const Plan& plan, const Options& options, const std::atomic<bool>* cancel,
             image::MemoryBudget& memory, InputFetcher* fetcher = nullptr);

  bool take(std::uint64_t shard, std::uint64_t number, InputRow& row) override;
  std::uint64_t read(InputRow& row) override;
  void decode(RowSample& sample) override;
  void release() noexcept override;

  // Of the image that was decoded last, until the next call of a member: what it is, and its pixels; where
  // the codec loses something, those that it keeps.
  const SampleSpec& made() const noexcept { return maker_.made(); }
  std::span<const std::byte> pixels() { return maker_.stored(); }

  // Instead of decode(), if samples are as large as their images: the file that was read, as a frame of codec
  // jpeg. Nothing if it is no JPEG that a frame holds as it is, without a warning. Errors: as decode().
  std::optional<JpegFrame> frame();
  // Where frame() has nothing because the file is progressive, arithmetic-coded or of several scans: a
  // baseline file with its coefficients. Takes three times as long as decode().
  std::optional<JpegFrame> transcoded();
  // Reads an input to `out` without any look at it. False: it has another size. Errors: those of InputReader.
  bool read_file(std::uint64_t input, std::span<std::byte> out);
  // The further images of an image that is stored as `image`. Valid until the next call of a member.
  std::span<const SampleValues> further(const SampleSpec& image);

 private:
  const Input& input() const { return plan_.list.inputs[index_]; }
  image::Size upright_size() const;
  void check_size() const;
  bool is_jpeg() const;

  const Plan& plan_;
  const Options& options_;
  InputFetcher* fetcher_;
  std::uint64_t index_ = 0;
  InputReader reader_;
  InputFetcher::Fetched fetched_;
  std::span<const std::byte> file_;
  FurtherReader further_;
  SampleMaker maker_;
  image::JpegOriginals originals_;
  std::vector<std::byte> transcoded_;  // its pixels
  image::DecodeOptions decode_;
};

}  // namespace shard::convert
