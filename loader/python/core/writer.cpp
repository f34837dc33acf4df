// The writer of data sets whose images a program hands over.
#include "shard/convert/writer.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "buffer_view.hpp"
#include "convert.hpp"
#include "shard/error.hpp"

namespace shard::python {

namespace {

// (name, role, dtype, layout, shape, mean, std, codec)
FieldSpec field_of(const nb::tuple& given) {
  const auto word = [&](std::size_t at) { return nb::cast<std::string>(given[at]); };
  FieldSpec field;
  field.name = word(0);
  const auto role = field_role_from_string(word(1));
  const auto dtype = dtype_from_option(word(2));
  const auto layout = layout_from_string(word(3));
  if (!role || !dtype || !layout)
    throw Error(ErrorCode::invalid_argument,
                "field " + field.name + ": role must be image or mask, layout nhwc, nchw or tensor");
  field.role = *role;
  if (!given[5].is_none()) field.normalization.mean = nb::cast<std::vector<float>>(given[5]);
  if (!given[6].is_none()) field.normalization.std = nb::cast<std::vector<float>>(given[6]);
  try {
    field.spec = spec_of_shape(*dtype, *layout, nb::cast<std::vector<std::uint64_t>>(given[4]));
    field.codec = codec_spec_from_string(word(7));
  } catch (const Error& error) {
    throw Error(error.code(), "field " + field.name + ": " + error.what());
  }
  return field;
}

std::vector<ColumnSpec> columns_of(const nb::list& given) {
  std::vector<ColumnSpec> columns;
  for (nb::handle one : given) {
    const auto column = nb::cast<nb::tuple>(one);
    ColumnSpec spec;
    spec.name = nb::cast<std::string>(column[0]);
    const auto kind = column_kind_from_string(nb::cast<std::string>(column[1]));
    const auto dtype = dtype_from_option(nb::cast<std::string>(column[2]));
    if (!kind || !dtype)
      throw Error(ErrorCode::invalid_argument,
                  "column " + spec.name + ": its kind or data type is not known");
    spec.kind = *kind;
    spec.dtype = *dtype;
    spec.row_shape = nb::cast<std::vector<std::uint64_t>>(column[3]);
    columns.push_back(std::move(spec));
  }
  return columns;
}

class PyWriter {
 public:
  explicit PyWriter(const nb::dict& given) {
    convert::WriterOptions options;
    static_cast<convert::Options&>(options) = options_of(given);
    options.resume = given.contains("resume");
    if (given.contains("image_fields"))
      for (nb::handle field : nb::cast<nb::list>(given["image_fields"]))
        options.image_fields.push_back(field_of(nb::cast<nb::tuple>(field)));
    if (given.contains("tensor")) {
      const auto [dtype, axes] =
          nb::cast<std::tuple<std::string, std::vector<std::uint64_t>>>(given["tensor"]);
      const auto known = dtype_from_option(dtype);
      if (!known) throw Error(ErrorCode::invalid_argument, "sample: its data type is not known");
      options.tensor = tensor_spec(*known, axes);
    }
    WithoutGil without_gil;
    writer_.set(std::make_shared<convert::Writer>(options));
  }
  PyWriter(const PyWriter&) = delete;
  PyWriter& operator=(const PyWriter&) = delete;
  ~PyWriter() { abandon(); }

  // Calls in other threads end, and the last of them lets go of the folder.
  // In the child of a fork nothing happens.
  void abandon() {
    std::shared_ptr<convert::Writer> writer = writer_.take();
    if (!writer) return;
    WithoutGil without_gil;
    writer->cancel();
    writer.reset();
  }

  void declare(const nb::list& columns) { writer()->declare(columns_of(columns)); }

  nb::list columns() {
    nb::list list;
    for (const ColumnSpec& column : writer()->columns())
      list.append(nb::make_tuple(column.name, std::string(to_string(column.kind)),
                                 std::string(to_string(column.dtype)), column.row_shape));
    return list;
  }

  // `image`: bytes of an image file, with `size` None; or pixels, with (height, width, channels);
  // or the path of a file, as bytes, with `size` 0; or an array, with (dtype of numpy, shape, layout).
  // `images`: of the further image fields: (bytes, rows, columns), the sizes of those of any size.
  bool add(const nb::bytes& key, nb::handle image, const nb::object& size, const nb::list& columns,
           const nb::list& images) {
    convert::WriterRow row;
    row.key.assign(key.c_str(), key.size());
    if (nb::isinstance<nb::int_>(size)) {
      const auto path = nb::cast<nb::bytes>(image);
      row.file = std::string(path.c_str(), path.size());
    } else {
      std::vector<std::byte> bytes = BufferView(image).copy();
      if (nb::isinstance<nb::tuple>(size) && nb::isinstance<nb::str>(nb::cast<nb::tuple>(size)[0])) {
        const auto [dtype, shape, layout] =
            nb::cast<std::tuple<std::string, std::vector<std::uint64_t>, std::string>>(size);
        const auto words = convert::words_of(convert::ArrayLayout{});
        const auto word = std::find(words.begin(), words.end(), layout);
        row.set_array(dtype, shape, static_cast<convert::ArrayLayout>(word - words.begin()), bytes);
      } else if (!size.is_none()) {
        row.image = std::move(bytes);
        const auto [height, width, channels] =
            nb::cast<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>(size);
        row.pixels = convert::Pixels{width, height, channels};
      } else {
        row.image = std::move(bytes);
      }
    }
    row.columns.reserve(columns.size());
    for (nb::handle column : columns) row.columns.push_back(BufferView(column).copy());
    for (nb::handle further : images) {
      const auto [sample, height, width] =
          nb::cast<std::tuple<nb::object, std::uint32_t, std::uint32_t>>(further);
      row.images.push_back(BufferView(sample).copy());
      row.image_sizes.push_back({width, height});
    }
    const std::shared_ptr<convert::Writer> to = writer();
    std::optional<bool> added;
    unless_abandoned(to, [&] {
      wait_with_signals([&] {
        added = to->try_add(row, kTick);
        return added.has_value();
      });
    });
    return *added;
  }

  bool is_done(const nb::bytes& key) { return writer()->is_done({key.c_str(), key.size()}); }

  nb::list keys_done() {
    std::vector<std::string> keys;
    {
      const std::shared_ptr<convert::Writer> from = writer();
      WithoutGil without_gil;
      keys = from->keys_done();
    }
    nb::list list;
    for (const std::string& key : keys) list.append(nb::bytes(key.data(), key.size()));
    return list;
  }

  std::uint64_t size() { return writer()->size(); }
  std::string enlargement() {
    const std::optional<Closed> over = closed();
    return over ? over->enlargement : writer()->enlargement();
  }

  nb::dict close() {
    if (const std::optional<Closed> over = closed())
      return dict_of(over->summary);  // another thread was faster
    const std::shared_ptr<convert::Writer> from = writer();
    convert::Summary summary;
    Background work([&](const convert::Hooks&) { summary = from->close(); });
    try {
      unless_abandoned(from, [&] { work.wait([] {}); });
    } catch (const nb::python_error&) {
      from->cancel();  // of a signal handler
      throw;
    }
    {
      const std::lock_guard lock(mutex_);
      closed_ = {summary, from->enlargement()};
    }
    abandon();
    return dict_of(summary);
  }

 private:
  // Who calls it keeps the writer alive: another thread may abandon it meanwhile.
  std::shared_ptr<convert::Writer> writer() {
    if (::getpid() != owner_)
      throw Error(ErrorCode::unsupported,
                  "a Writer cannot be used in the child of a fork: make it in the child");
    std::shared_ptr<convert::Writer> writer = writer_.get();
    if (!writer) throw Error(ErrorCode::invalid_argument, "the writer is closed");
    return writer;
  }

  // Work that ends because another thread has abandoned the writer says so.
  template <class Work>
  void unless_abandoned(const std::shared_ptr<convert::Writer>& writer, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled || writer_.get() == writer) throw;
      throw Error(ErrorCode::invalid_argument, "the writer is closed: another thread has abandoned it");
    }
  }

  struct Closed {
    convert::Summary summary;
    std::string enlargement;
  };
  std::optional<Closed> closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

  const pid_t owner_ = ::getpid();
  SharedPointer<convert::Writer> writer_;
  std::mutex mutex_;
  std::optional<Closed> closed_;  // guarded by mutex_
};

}  // namespace

void bind_writer(nb::module_& module) {
  nb::class_<PyWriter>(module, "Writer")
      .def(nb::init<const nb::dict&>(), nb::arg("options"))
      .def("declare", &PyWriter::declare, nb::arg("columns"))
      .def("columns", &PyWriter::columns)
      .def("add", &PyWriter::add, nb::arg("key"), nb::arg("image"), nb::arg("size").none(),
           nb::arg("columns"), nb::arg("images"))
      .def("is_done", &PyWriter::is_done, nb::arg("key"))
      .def("keys_done", &PyWriter::keys_done)
      .def("__len__", &PyWriter::size)
      .def("enlargement", &PyWriter::enlargement)
      .def("close", &PyWriter::close)
      .def("abandon", &PyWriter::abandon);
}

}  // namespace shard::python
