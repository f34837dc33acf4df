#include "convert/engine/plan_reader.hpp"

#include <fmt/format.h>

#include "base/digest/checksum.hpp"
#include "convert/plan/choose.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"

namespace shard::convert {

PlanReader::PlanReader(const Plan& plan, const Options& options, const std::atomic<bool>* cancel,
                       image::MemoryBudget& memory, InputFetcher* fetcher)
    : plan_(plan),
      options_(options),
      fetcher_(fetcher),
      reader_(plan.list),
      further_(plan.further),
      maker_(options.preprocess, options.codec,
             options.no_sample_digest ? JpegFiles::read : JpegFiles::decode),
      decode_(decode_options(options, cancel)) {
  decode_.memory = &memory;
}

bool PlanReader::take(std::uint64_t shard, std::uint64_t number, InputRow& row) {
  index_ = shard * plan_.per_shard + number;
  row.index = index_;
  row.key = input().key();
  row.size_bytes = plan_.size_of(index_);
  return true;
}

std::uint64_t PlanReader::read(InputRow& row) {
  std::uint64_t stamp = 0;
  if (fetcher_ != nullptr) {
    fetched_ = fetcher_->get(index_);
    file_ = fetched_.bytes;
  } else {
    file_ = reader_.read(input());
    stamp = reader_.stamp();
  }
  plan_.require_same(index_, file_.size(), stamp);
  row.digest = further_.read(index_, xxh3(file_));
  return file_.size() + further_.bytes_read();
}

void PlanReader::decode(RowSample& sample) {
  check_size();
  if (plan_.list.of_arrays() && plan_.list.archives.size() > 1 && !options_.preprocess.wide())
    require_rgb_array(file_, options_.max_pixels);
  if (options_.pages && input().page == Input::kNoPage) require_counted(file_);
  decode_.page = input().page_number();
  sample.warnings = maker_.run_file(file_, decode_);
  sample.image = maker_.values();
  sample.image_bytes = maker_.made().size_bytes();
  sample.jpeg = maker_.jpeg_use();
  sample.fields = further(maker_.made());
  sample.columns.assign(1, plan_.label_row(index_));
  for (const ColumnTable& column : plan_.columns) sample.columns.push_back(column.rows(index_));
}

std::optional<JpegFrame> PlanReader::frame() {
  check_size();
  if (!is_jpeg()) return std::nullopt;
  decode_.page = 0;
  return originals_.take_undecoded(file_, decode_).frame;
}

std::optional<JpegFrame> PlanReader::transcoded() {
  check_size();
  if (!is_jpeg()) return std::nullopt;
  decode_.page = 0;
  image::JpegOriginal original = originals_.take(file_, decode_, transcoded_);
  if (!original.transcoded) return std::nullopt;
  return std::move(original.frame);
}

bool PlanReader::is_jpeg() const {
  return input().page == Input::kNoPage && image::detect_format(file_) == image::Format::jpeg;
}

bool PlanReader::read_file(std::uint64_t input, std::span<std::byte> out) {
  return reader_.read_to(plan_.list.inputs[input], out);
}

std::span<const SampleValues> PlanReader::further(const SampleSpec& image) {
  if (plan_.further.empty()) return {};
  return further_.samples(maker_.decoder(), upright_size(), image, decode_);
}

void PlanReader::release() noexcept {
  fetched_ = {};
  maker_.trim();
}

image::Size PlanReader::upright_size() const {
  const image::WideInfo info = image::read_wide_info(file_, options_.max_pixels, input().page_number());
  return {info.width, info.height};
}

// Annotations of an image of another size would be in the wrong places.
void PlanReader::check_size() const {
  if (plan_.stated_sizes.empty()) return;
  const image::Size stated = plan_.stated_sizes[index_];
  if (stated == image::Size{}) return;
  const image::Size is = upright_size();
  if (is != stated)
    throw Error(ErrorCode::corrupt, fmt::format("its annotations are for {}x{} pixels, it has {}x{}",
                                                stated.width, stated.height, is.width, is.height));
}

}  // namespace shard::convert
