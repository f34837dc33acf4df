// JPEG files to pixels on a device.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "buffer_view.hpp"
#include "device.hpp"
#include "lease.hpp"
#include "shard/loader/jpeg_decoder.hpp"
#include "tensor.hpp"

namespace shard::python {

namespace {

using GivenBox = std::optional<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>>;

// Keys are the keywords of shardloader.decode_jpeg, checked there.
JpegDecodeOptions jpeg_options(const nb::dict& given) {
  JpegDecodeOptions options;
  options.report_failures = true;
  const auto word = [&](const char* name) { return nb::cast<std::string>(given[name]); };
  std::tie(options.height, options.width) = nb::cast<std::tuple<std::uint32_t, std::uint32_t>>(given["size"]);
  options.dtype = *dtype_from_option(word("dtype"));
  options.layout = word("layout") == "nchw" ? shard::Layout::nchw : shard::Layout::nhwc;
  constexpr auto kFilters = words_of(ResizeFilter{});
  options.filter = static_cast<ResizeFilter>(std::find(kFilters.begin(), kFilters.end(), word("filter")) -
                                             kFilters.begin());
  options.upright = nb::cast<bool>(given["upright"]);
  if (given.contains("mean"))
    options.normalization = Normalization{nb::cast<std::vector<float>>(given["mean"]),
                                          nb::cast<std::vector<float>>(given["std"])};
  return options;
}

class PyJpegDecoder {
 public:
  // `current_stream`: as CurrentStream has it.
  PyJpegDecoder(int ordinal, unsigned threads, const nb::object& current_stream) {
    JpegDecoder::LastStream last;
    if (ordinal >= 0) {
      device_ = {kDLCUDA, ordinal};
      last = [current = std::make_shared<CurrentStream>(current_stream)] { return current->get(); };
    }
    WithoutGil without_gil;
    decoder_ = std::make_unique<JpegDecoder>(make_device(ordinal, threads), threads, std::move(last));
  }
  PyJpegDecoder(const PyJpegDecoder&) = delete;
  PyJpegDecoder& operator=(const PyJpegDecoder&) = delete;
  ~PyJpegDecoder() {
    WithoutGil without_gil;
    decoder_.reset();
  }

  // (one tensor of all images, or one of each, or None for those that failed; failures as (number, class,
  // message); how many threads of the host decoded)
  nb::tuple decode(const nb::list& files, const std::optional<std::vector<GivenBox>>& boxes,
                   const nb::dict& given) {
    const JpegDecodeOptions options = jpeg_options(given);
    std::vector<BufferView> views;
    std::vector<JpegInput> inputs;
    views.reserve(files.size());
    inputs.reserve(files.size());
    for (nb::handle file : files) {
      JpegInput& input = inputs.emplace_back();
      input.file = views.emplace_back(file).bytes();
      if (!boxes || !(*boxes)[inputs.size() - 1]) continue;
      const auto [left, top, right, bottom] = *(*boxes)[inputs.size() - 1];
      input.box = JpegBox{left, top, right - left, bottom - top};
    }
    JpegBatch batch;
    {
      WithoutGil without_gil;
      batch = decoder_->decode(inputs, options);
    }
    nb::list failures;
    for (const JpegBatch::Failure& failure : batch.failures)
      failures.append(nb::make_tuple(failure.input, error_class(failure.code), text(failure.message)));
    return nb::make_tuple(images(batch, options), failures, batch.on_host);
  }

 private:
  nb::object images(const JpegBatch& batch, const JpegDecodeOptions& options) const {
    const auto shape_of = [&](std::uint32_t height, std::uint32_t width) {
      const auto rows = static_cast<Py_ssize_t>(height);
      const auto columns = static_cast<Py_ssize_t>(width);
      return options.layout == shard::Layout::nchw ? std::vector<Py_ssize_t>{3, rows, columns}
                                                   : std::vector<Py_ssize_t>{rows, columns, 3};
    };
    const auto tensor_at = [&](std::uint64_t offset, std::vector<Py_ssize_t> shape) {
      return Tensor{
          batch.memory, batch.memory->data() + offset, options.dtype, std::move(shape), device_, true,
          nullptr};
    };
    if (options.height != 0) {
      std::vector<Py_ssize_t> shape = shape_of(options.height, options.width);
      shape.insert(shape.begin(), static_cast<Py_ssize_t>(batch.images.size()));
      return nb::cast(tensor_at(0, std::move(shape)));
    }
    nb::list all;
    for (const JpegBatch::Image& image : batch.images)
      if (image.height == 0)
        all.append(nb::none());
      else
        all.append(nb::cast(tensor_at(image.offset, shape_of(image.height, image.width))));
    return all;
  }

  DLDevice device_{kDLCPU, 0};
  std::unique_ptr<JpegDecoder> decoder_;
};

}  // namespace

void bind_jpeg(nb::module_& module) {
  nb::class_<PyJpegDecoder>(module, "JpegDecoder")
      .def(nb::init<int, unsigned, const nb::object&>(), nb::arg("device"), nb::arg("threads"),
           nb::arg("current_stream").none())
      .def("decode", &PyJpegDecoder::decode, nb::arg("files"), nb::arg("boxes").none(), nb::arg("options"));
}

}  // namespace shard::python
