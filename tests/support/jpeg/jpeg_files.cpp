#include "support/jpeg/jpeg_files.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "libjpeg/errors.hpp"

namespace shard::testing {
namespace {

using JpegErrors = libjpeg::Errors;

void choose_colours(jpeg_compress_struct& info, const JpegOptions& options) {
  info.image_width = options.width;
  info.image_height = options.height;
  info.input_components = options.components;
  info.in_color_space = options.components == 1   ? JCS_GRAYSCALE
                        : options.components == 3 ? JCS_RGB
                                                  : JCS_CMYK;
  jpeg_set_defaults(&info);
  if (options.components == 4) jpeg_set_colorspace(&info, options.as_is ? JCS_CMYK : JCS_YCCK);
  if (options.components == 3 && options.as_is) jpeg_set_colorspace(&info, JCS_RGB);
}

void choose_tables(jpeg_compress_struct& info, const JpegOptions& options) {
  jpeg_set_quality(&info, options.quality, options.wide_tables ? FALSE : TRUE);
  for (int c = 0; c < options.components; ++c) {
    jpeg_component_info& component = info.comp_info[c];
    component.h_samp_factor = options.factors[static_cast<std::size_t>(c)][0];
    component.v_samp_factor = options.factors[static_cast<std::size_t>(c)][1];
    if (options.table_of_each) {
      std::array<unsigned, DCTSIZE2> values{};
      for (unsigned k = 0; k < values.size(); ++k) values[k] = 1 + k * static_cast<unsigned>(c + 1) / 3;
      jpeg_add_quant_table(&info, c, values.data(), 100, FALSE);
      component.quant_tbl_no = c;
      component.dc_tbl_no = component.ac_tbl_no = c;
    }
  }
  if (!options.wide_tables) return;
  for (JQUANT_TBL* table : info.quant_tbl_ptrs)
    for (int k = 0; table != nullptr && k < DCTSIZE2; ++k)
      if (k % 5 == 3) table->quantval[k] = static_cast<UINT16>(300 + k);
}

}  // namespace

std::string JpegOptions::text() const {
  std::string all =
      fmt::format("{}x{}x{} quality {} restart {}", width, height, components, quality, restart_interval);
  for (int c = 0; c < components; ++c)
    all += fmt::format(" {}x{}", factors[static_cast<std::size_t>(c)][0],
                       factors[static_cast<std::size_t>(c)][1]);
  for (const auto& [on, name] :
       std::initializer_list<std::pair<bool, const char*>>{{as_is, "as_is"},
                                                           {wide_tables, "wide_tables"},
                                                           {table_of_each, "table_of_each"},
                                                           {optimize, "optimize"},
                                                           {progressive, "progressive"},
                                                           {arithmetic, "arithmetic"},
                                                           {scan_of_each, "scan_of_each"}})
    if (on) all += fmt::format(" {}", name);
  return all;
}

std::vector<std::byte> encode_jpeg(const JpegOptions& options, std::span<const std::uint8_t> samples) {
  JpegErrors errors;
  jpeg_compress_struct info{};
  info.err = errors.manager();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  std::array<jpeg_scan_info, 4> scans{};
  errors.guard([&] {
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &size);
    choose_colours(info, options);
    choose_tables(info, options);
    info.restart_interval = static_cast<unsigned>(options.restart_interval);
    info.arith_code = options.arithmetic ? TRUE : FALSE;
    // Tables 2 and 3 have no standard codes.
    const bool own_codes = !options.arithmetic && (options.optimize || options.table_of_each);
    info.optimize_coding = own_codes ? TRUE : FALSE;
    if (options.progressive) jpeg_simple_progression(&info);
    if (options.scan_of_each) {
      for (int c = 0; c < options.components; ++c) {
        jpeg_scan_info& scan = scans[static_cast<std::size_t>(c)];
        scan.comps_in_scan = 1;
        scan.component_index[0] = c;
        scan.Se = 63;
      }
      info.scan_info = scans.data();
      info.num_scans = options.components;
    }
    jpeg_start_compress(&info, TRUE);
    const std::size_t stride = std::size_t{options.width} * static_cast<unsigned>(options.components);
    while (info.next_scanline < info.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(samples.data() + stride * info.next_scanline);
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
  });
  jpeg_destroy_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> file(first, first + size);
  std::free(bytes);
  return file;
}

namespace {

// Destroys itself also where an Error leaves.
struct Source {
  explicit Source(bool accept) {
    errors.reset(accept ? [](void*, int) noexcept { return true; } : JpegErrors::Passes{});
    info.err = errors.manager();
    errors.guard([this] { jpeg_create_decompress(&info); });
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { jpeg_destroy_decompress(&info); }
  void open(std::span<const std::byte> file) {
    errors.guard([&] {
      jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()),
                   static_cast<unsigned long>(file.size()));
      jpeg_read_header(&info, TRUE);
    });
  }
  JpegErrors errors;
  jpeg_decompress_struct info{};
};

}  // namespace

JpegPixels decode_jpeg(std::span<const std::byte> file, bool accept) {
  Source source(accept);
  jpeg_decompress_struct& info = source.info;
  source.open(file);
  source.errors.guard([&] { jpeg_start_decompress(&info); });
  JpegPixels pixels{
      info.output_width, info.output_height, static_cast<std::uint32_t>(info.output_components), {}};
  const std::size_t stride = std::size_t{pixels.width} * pixels.channels;
  pixels.values.resize(stride * pixels.height);
  source.errors.guard([&] {
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels.values.data() + stride * info.output_scanline;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  });
  return pixels;
}

std::vector<std::vector<std::int16_t>> coefficients_of(std::span<const std::byte> file) {
  Source source(false);
  jpeg_decompress_struct& info = source.info;
  source.open(file);
  jvirt_barray_ptr* arrays = nullptr;
  source.errors.guard([&] { arrays = jpeg_read_coefficients(&info); });
  std::vector<std::vector<std::int16_t>> all(static_cast<std::size_t>(info.num_components));
  for (std::size_t c = 0; c < all.size(); ++c) {
    const jpeg_component_info& component = info.comp_info[c];
    all[c].resize(std::size_t{component.width_in_blocks} * component.height_in_blocks * DCTSIZE2);
    std::int16_t* to = all[c].data();
    for (JDIMENSION row = 0; row < component.height_in_blocks; ++row) {
      JBLOCKARRAY blocks = nullptr;
      source.errors.guard([&] {
        blocks =
            info.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&info), arrays[c], row, 1, FALSE);
      });
      std::memcpy(to, blocks[0], std::size_t{component.width_in_blocks} * DCTSIZE2 * sizeof(std::int16_t));
      to += std::size_t{component.width_in_blocks} * DCTSIZE2;
    }
  }
  return all;
}

}  // namespace shard::testing
