#include "image/codecs/jpeg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "image/codecs/jpeg_errors.hpp"
#include "image/codecs/jpeg_scan.hpp"
#include "image/metadata/orientation.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "image/pixels/pixel_buffer.hpp"
#include "jpeg/cmyk.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kRowsBetweenPolls = 64;

// Progressive files of cameras and encoders have about 10 scans. A file with thousands would only take time,
// because each scan is a pass over the whole image.
constexpr int kMaxScans = 64;
constexpr std::uint32_t kRowsAtOnce = 16;  // row pointers handed to libjpeg in one call

// Whether the inverse DCT of a block reads its neighbours: libjpeg smooths progressive images whose
// low-frequency coefficients are not all complete. Only then do rows and columns outside of a box change the
// pixels inside.
bool smooths_blocks(const jpeg_decompress_struct& info) {
  if (!info.progressive_mode || info.coef_bits == nullptr) return false;
  for (int component = 0; component < info.num_components; ++component)
    for (int k = 0; k < DCTSIZE2; ++k)
      if (info.coef_bits[component][k] != 0) return true;
  return false;
}

// Whether skipping rows and columns does not change the others. libjpeg-turbo 2.1.5 loses its position in
// scaled images of 4x2 and 2x4 sampling. So rows are skipped only for samplings that cameras and encoders
// write. Other images are decoded completely.
bool skips_exactly(const jpeg_decompress_struct& info) {
  const int horizontal = info.max_h_samp_factor;
  const int vertical = info.max_v_samp_factor;
  const bool common =
      (horizontal <= 2 && vertical <= 2) || (horizontal == 4 && vertical == 1 && info.scale_num == 8);
  return common && !smooths_blocks(info);
}

}  // namespace

struct JpegReader::Impl {
  Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { jpeg_destroy_decompress(&info); }

  // Makes a new decompressor. libjpeg keeps quantisation and Huffman tables, and the content of markers, for
  // the next file, so that files without tables ("abbreviated") can follow one with tables. Here each file
  // must be complete.
  void renew(OnWarning choice);
  static void on_progress(j_common_ptr common);
  static boolean on_app1(j_decompress_ptr info);
  bool cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
  void choose_scale(std::uint32_t min_short_side);
  void read_into(std::uint8_t* out, std::size_t stride_bytes, std::uint32_t rows);
  void drop_rows(std::uint32_t rows);
  SequentialScan scan() const;
  void judge_warnings(const SequentialScan& read);
  std::size_t stored_row_bytes() const {
    return std::size_t{info.output_width} * static_cast<std::size_t>(info.output_components);
  }

  JpegErrors errors;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
  const std::atomic<bool>* cancel = nullptr;
  OnWarning on_warning = OnWarning::harmless;
  WarningSet warnings;
  std::span<const std::byte> scan_data;  // behind the header of the first scan
  std::span<const std::byte> exif;       // in the file: of several the first one
  std::span<const std::byte> xmp;        // the last one
  JpegHeader header;
  Box box;
  std::uint32_t rows_left = 0;    // of the box
  std::uint32_t skip_pixels = 0;  // at the left of each row that libjpeg delivers
  bool skip_exact = false;
  PixelBuffer rows;     // what read_rows() lends
  PixelBuffer scratch;  // rows as libjpeg delivers them, where they are not yet RGB of the box
};

JpegReader::Impl::Impl() {
  info.err = errors.manager();  // jpeg_destroy_decompress is harmless before the first renew()
  progress.progress_monitor = on_progress;
}

void JpegReader::Impl::renew(OnWarning choice) {
  jpeg_destroy_decompress(&info);
  info = {};
  on_warning = choice;
  errors.reset(choice);
  info.err = errors.manager();
  warnings = {};
  scan_data = exif = xmp = {};
  header = {};
  box = {};
  rows_left = skip_pixels = 0;
  skip_exact = false;
  errors.guard([this] { jpeg_create_decompress(&info); });
  info.client_data = this;
}

void JpegReader::Impl::on_progress(j_common_ptr common) {
  auto* self = static_cast<Impl*>(common->client_data);
  if (self->cancelled()) self->errors.cancel();
  if (self->info.input_scan_number > kMaxScans)
    self->errors.too_much("more than 64 scans, each a pass over the whole image");
}

// Looks at a segment where it is in the file, and skips it as libjpeg does. What libjpeg saves is a list that
// it walks for each segment, so the time grows with the square of their number.
boolean JpegReader::Impl::on_app1(j_decompress_ptr info) {
  using namespace std::string_view_literals;
  constexpr std::string_view kExif = "Exif\0"sv;
  constexpr std::string_view kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
  auto* self = static_cast<Impl*>(info->client_data);
  jpeg_source_mgr& source = *info->src;
  long size = -2;
  for (int shift = 8; shift >= 0; shift -= 8) {
    if (source.bytes_in_buffer == 0) source.fill_input_buffer(info);
    --source.bytes_in_buffer;
    size += long{*source.next_input_byte++} << shift;
  }
  if (size <= 0) return TRUE;
  const auto bytes = static_cast<std::size_t>(size);
  const std::string_view text(reinterpret_cast<const char*>(source.next_input_byte),
                              std::min(bytes, source.bytes_in_buffer));
  const std::span<const std::byte> data = std::as_bytes(std::span(text));
  if (text.starts_with(kExif) && text.size() >= 6 && self->exif.empty()) self->exif = data;
  if (text.starts_with(kXmp)) self->xmp = data.subspan(kXmp.size());
  source.skip_input_data(info, size);
  return TRUE;
}

void JpegReader::Impl::choose_scale(std::uint32_t min_short_side) {
  info.scale_denom = 8;
  info.scale_num = min_short_side == 0 ? 8 : 1;
  for (;; ++info.scale_num) {
    jpeg_calc_output_dimensions(&info);
    if (info.scale_num == 8 || std::min(info.output_width, info.output_height) >= min_short_side) return;
  }
}

// Runs under the guard: no object with a destructor.
void JpegReader::Impl::read_into(std::uint8_t* out, std::size_t stride_bytes, std::uint32_t count) {
  std::array<JSAMPROW, kRowsAtOnce> pointers;
  for (std::uint32_t done = 0; done < count;) {
    const std::uint32_t batch = std::min(count - done, kRowsAtOnce);
    for (std::uint32_t i = 0; i < batch; ++i) pointers[i] = out + (done + i) * stride_bytes;
    done += jpeg_read_scanlines(&info, pointers.data(), batch);
  }
}

// Drops rows, but not the last row of the image: with it, libjpeg would also skip the check of the rest of
// the file.
void JpegReader::Impl::drop_rows(std::uint32_t count) {
  if (count == 0) return;
  if (skip_exact) {
    jpeg_skip_scanlines(&info, count);
  } else {
    for (std::uint32_t i = 0; i < count; ++i) read_into(scratch.data(), 0, 1);
  }
}

// What libjpeg knows about the current scan. Empty unless it is a sequential scan with Huffman codes.
SequentialScan JpegReader::Impl::scan() const {
  SequentialScan scan;
  if (info.progressive_mode || info.arith_code || info.comps_in_scan != info.num_components) return scan;
  for (int i = 0; i < info.blocks_in_MCU; ++i) {
    const jpeg_component_info* component = info.cur_comp_info[info.MCU_membership[i]];
    const JHUFF_TBL* dc = info.dc_huff_tbl_ptrs[component->dc_tbl_no];
    const JHUFF_TBL* ac = info.ac_huff_tbl_ptrs[component->ac_tbl_no];
    if (dc == nullptr || ac == nullptr) return {};
    SequentialScan::Block& block = scan.blocks.emplace_back();
    for (const auto& [from, to] : {std::pair{dc, &block.dc}, std::pair{ac, &block.ac}}) {
      std::copy_n(from->bits, to->counts.size(), to->counts.begin());
      std::copy_n(from->huffval, to->symbols.size(), to->symbols.begin());
    }
  }
  scan.mcus = std::uint64_t{info.MCUs_per_row} * info.MCU_rows_in_scan;
  scan.restart_interval = info.restart_interval;
  return scan;
}

// Extra bytes before a marker of the header have no meaning. After image data they may come from damage.
void JpegReader::Impl::judge_warnings(const SequentialScan& read) {
  const WarningSet found = errors.take_warnings();
  warnings.add(found);
  if (on_warning == OnWarning::harmless && found.has(Warning::extraneous_bytes) &&
      !ends_where_encoders_end(read, scan_data))
    throw Error(ErrorCode::corrupt, "JPEG: extraneous bytes after the image data, as in damaged files");
}

JpegReader::JpegReader() : impl_(std::make_unique<Impl>()) {}
JpegReader::JpegReader(JpegReader&&) noexcept = default;
JpegReader& JpegReader::operator=(JpegReader&&) noexcept = default;
JpegReader::~JpegReader() = default;

const JpegHeader& JpegReader::open(std::span<const std::byte> file, const DecodeOptions& options) {
  Impl& self = *impl_;
  jpeg_decompress_struct& info = self.info;
  self.cancel = options.cancel;
  self.renew(options.on_warning);
  self.errors.guard([&] {
    jpeg_set_marker_processor(&info, JPEG_APP0 + 1, Impl::on_app1);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()),
                 static_cast<unsigned long>(file.size()));
    jpeg_read_header(&info, TRUE);
  });
  self.warnings = self.errors.take_warnings();
  self.scan_data = file.last(info.src->bytes_in_buffer);
  check_pixel_bound(info.image_width, info.image_height, options.max_pixels);
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4)
    throw Error(ErrorCode::unsupported,
                fmt::format("JPEG: {} colour components; 1, 3 and 4 are supported", info.num_components));
  self.errors.guard([&] {
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    self.choose_scale(options.fast_min_short_side);
  });
  self.header = {info.image_width, info.image_height, info.output_width, info.output_height,
                 choose_orientation(self.exif, self.xmp)};
  return self.header;
}

std::uint64_t JpegReader::memory_bytes() const noexcept {
  jpeg_decompress_struct& info = impl_->info;
  if (jpeg_has_multiple_scans(&info) == FALSE) return 0;
  std::uint64_t blocks = 0;
  for (int i = 0; i < info.num_components; ++i)
    blocks += std::uint64_t{info.comp_info[i].width_in_blocks} * info.comp_info[i].height_in_blocks;
  return blocks * sizeof(JBLOCK);
}

void JpegReader::close() noexcept { jpeg_abort_decompress(&impl_->info); }

void JpegReader::start(const Box& box) {
  Impl& self = *impl_;
  jpeg_decompress_struct& info = self.info;
  if (box.width == 0 || box.height == 0 || box.left >= info.output_width || box.top >= info.output_height ||
      box.width > info.output_width - box.left || box.height > info.output_height - box.top)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("box {}x{}+{}+{} lies outside of the {}x{} image", box.width, box.height,
                            box.left, box.top, info.output_width, info.output_height));
  self.errors.guard([&] {
    if (jpeg_has_multiple_scans(&info)) info.progress = &self.progress;
    jpeg_start_decompress(&info);
  });
  self.box = box;
  // If damage is accepted, nothing is known about rows that were not decoded.
  self.skip_exact = self.on_warning != OnWarning::accept && skips_exactly(info);
  JDIMENSION left = 0;
  if (self.skip_exact) {
    // Upsampling looks one chroma sample to the side, and treats the first and last of a row apart.
    const auto margin = static_cast<std::uint32_t>(2 * info.max_h_samp_factor);
    left = box.left - std::min(box.left, margin);
    JDIMENSION width = std::min(info.output_width - left, box.left - left + box.width + margin);
    self.errors.guard([&] { jpeg_crop_scanline(&info, &left, &width); });
  }
  self.skip_pixels = box.left - left;
  self.scratch.reserve(self.stored_row_bytes());
  self.errors.guard([&] { self.drop_rows(box.top); });
  self.rows_left = box.height;
}

std::uint32_t JpegReader::read_rows(std::uint8_t* out, std::size_t stride_bytes, std::uint32_t max_rows) {
  Impl& self = *impl_;
  if (self.cancelled()) throw Error(ErrorCode::cancelled, "JPEG: decoding was cancelled");
  const std::uint32_t count = std::min(max_rows, self.rows_left);
  if (self.info.out_color_space == JCS_RGB && self.info.output_width == self.box.width) {
    self.errors.guard([&] { self.read_into(out, stride_bytes, count); });
  } else {
    const std::size_t pixel_bytes = static_cast<std::size_t>(self.info.output_components);
    for (std::uint32_t i = 0; i < count; ++i) {
      self.errors.guard([&] { self.read_into(self.scratch.data(), 0, 1); });
      const std::uint8_t* from = self.scratch.data() + self.skip_pixels * pixel_bytes;
      std::uint8_t* to = out + i * stride_bytes;
      if (pixel_bytes == 4)
        jpeg::inverted_cmyk_to_rgb(from, to, self.box.width);
      else
        std::copy_n(from, std::size_t{self.box.width} * 3, to);
    }
  }
  self.rows_left -= count;
  return count;
}

RgbView JpegReader::read_rows(std::uint32_t max_rows) {
  Impl& self = *impl_;
  const std::uint32_t count = std::min(max_rows, self.rows_left);
  const std::size_t stride = std::size_t{std::max(self.info.output_width, self.box.width)} * 3;
  std::uint8_t* out = self.rows.reserve(stride * max_rows);
  if (self.info.out_color_space != JCS_RGB) {
    read_rows(out, stride, count);
    return {out, self.box.width, count, stride};
  }
  if (self.cancelled()) throw Error(ErrorCode::cancelled, "JPEG: decoding was cancelled");
  self.errors.guard([&] { self.read_into(out, stride, count); });
  self.rows_left -= count;
  return {out + std::size_t{self.skip_pixels} * 3, self.box.width, count, stride};
}

void JpegReader::finish() {
  Impl& self = *impl_;
  jpeg_decompress_struct& info = self.info;
  self.rows_left = 0;
  if (jpeg_has_multiple_scans(&info)) {  // entropy-decoded to its end by start()
    self.judge_warnings({});
    self.errors.guard([&] { jpeg_abort_decompress(&info); });
    return;
  }
  while (info.output_scanline < info.output_height) {
    if (self.cancelled()) throw Error(ErrorCode::cancelled, "JPEG: decoding was cancelled");
    const std::uint32_t left = info.output_height - info.output_scanline;
    self.errors.guard([&] {
      if (left == 1)
        self.read_into(self.scratch.data(), 0, 1);
      else
        self.drop_rows(std::min(left - 1, std::uint32_t{512}));
    });
  }
  const SequentialScan scan = self.on_warning == OnWarning::harmless ? self.scan() : SequentialScan{};
  self.errors.guard([&] { jpeg_finish_decompress(&info); });
  self.judge_warnings(scan);
}

const WarningSet& JpegReader::warnings() const noexcept { return impl_->warnings; }

ImageInfo read_jpeg_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  DecodeOptions options;
  options.max_pixels = max_pixels;
  JpegReader reader;
  const JpegHeader& header = reader.open(file, options);
  return {Format::jpeg, header.stored_width, header.stored_height, header.orientation};
}

StoredImage decode_jpeg(JpegReader& reader, std::span<const std::byte> file, const DecodeOptions& options,
                        PixelBuffer& pixels) {
  const JpegHeader header = reader.open(file, options);
  auto share = take_memory(
      options, reader.memory_bytes() + rgb_bytes(header.width, header.height, header.orientation));
  const std::size_t stride = std::size_t{header.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * header.height);
  reader.start(Box{0, 0, header.width, header.height});
  for (std::uint32_t row = 0; row < header.height;)
    row += reader.read_rows(out + row * stride, stride, kRowsBetweenPolls);
  reader.finish();
  return {
      {out, header.width, header.height, stride}, header.orientation, std::move(share), reader.warnings()};
}

std::string jpeg_version() {
#define SHARD_TEXT_OF(x) #x
#define SHARD_TEXT(x) SHARD_TEXT_OF(x)
  return "libjpeg-turbo " SHARD_TEXT(LIBJPEG_TURBO_VERSION);
#undef SHARD_TEXT
#undef SHARD_TEXT_OF
}

}  // namespace shard::image
