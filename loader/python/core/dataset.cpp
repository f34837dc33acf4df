#include "dataset.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include "base/system/cpu_count.hpp"
#include "shard/convert/verify_tables.hpp"
#include "shard/error.hpp"
#include "shard/verify.hpp"
#include "tensor.hpp"

namespace shard::python {

namespace {

std::vector<Py_ssize_t> extents(std::uint64_t first, const auto& rest) {
  std::vector<Py_ssize_t> shape{static_cast<Py_ssize_t>(first)};
  for (const auto extent : rest) shape.push_back(static_cast<Py_ssize_t>(extent));
  return shape;
}

std::shared_ptr<void> owner_of(const DatasetHandle& self) {
  return std::const_pointer_cast<Dataset>(self.data);
}

const ShardReader& open_shard(const DatasetHandle& self, std::uint32_t shard) {
  WithoutGil without_gil;  // it is mapped at first use
  return self.data->shard(shard);
}

Dataset::Location locate(const DatasetHandle& self, std::uint64_t index) {
  if (index >= self.data->size())
    throw nb::index_error(
        fmt::format("sample {} of {}; expected 0 to {}", index, self.data->size(), self.data->size() - 1)
            .c_str());
  return self.data->locate(index);
}

// From the main images or a further field: a view of the mapping; with a codec or from a server a copy.
Tensor sample(const DatasetHandle& self, std::uint64_t index, std::optional<std::size_t> field) {
  const Dataset::Location at = locate(self, index);
  const ShardReader& shard = open_shard(self, at.shard);
  const StoredImages& images = shard.images(field);
  const SampleSpec of = images.spec_of(at.sample);
  Tensor tensor;
  tensor.dtype = of.dtype;
  const auto axes = of.shape();
  tensor.shape.assign(axes.begin(), axes.end());
  if (!images.framed() && !shard.is_remote() && !shard.is_unconverted()) {
    shard.check_unchanged();  // what reads a view behind the end of its file gets SIGBUS
    tensor.owner = owner_of(self);
    tensor.data = images.frame(at.sample).data();
    return tensor;
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(of.size_bytes());
  {
    WithoutGil without_gil;
    images.read(at.sample, *bytes);
  }
  tensor.data = bytes->data();
  tensor.writable = true;
  tensor.owner = std::move(bytes);
  return tensor;
}

// All samples of a shard, as they are mapped.
Tensor shard_images(const DatasetHandle& self, std::uint32_t index) {
  const ShardReader& shard = open_shard(self, index);
  const StoredImages& images = shard.images();
  if (images.spec().is_free())
    throw Error(ErrorCode::unsupported,
                "each sample has its own size, so they are no one array: read them one by one");
  if (images.framed())
    throw Error(ErrorCode::unsupported,
                fmt::format("the samples are stored with codec {}: only those of codec none are mapped as "
                            "they are; read them one by one",
                            to_string(shard.header().codec)));
  shard.check_unchanged();
  const SampleSpec& spec = images.spec();
  return {owner_of(self), images.frame(0).data(),
          spec.dtype,     extents(shard.size(), spec.shape()),
          {kDLCPU, 0},    false,
          nullptr};
}

nb::object label(const DatasetHandle& self, std::uint64_t index) {
  const Dataset::Location at = locate(self, index);
  const ShardReader& shard = open_shard(self, at.shard);
  const Column& column = shard.columns().at("labels");
  if (column.dtype == DType::i64 && column.row_shape.empty()) return nb::int_(self.data->label(index));
  Tensor row{owner_of(self), column.bytes.data() + at.sample * column.row_bytes,
             column.dtype,   {},
             {kDLCPU, 0},    false,
             nullptr};
  for (std::uint64_t extent : column.row_shape) row.shape.push_back(static_cast<Py_ssize_t>(extent));
  return nb::cast(std::move(row));
}

nb::dict info(const DatasetHandle& self) {
  const DatasetInfo& info = self.data->info();
  nb::dict result;
  result["folder"] = nb::cast(self.data->folder());
  result["samples"] = info.samples();
  result["dtype"] = nb::cast(std::string(to_string(info.spec.dtype)));
  result["layout"] = nb::cast(std::string(to_string(info.spec.layout)));
  nb::list shape;
  for (std::uint32_t extent : info.spec.shape()) shape.append(extent);
  result["shape"] = nb::tuple(shape);
  result["mean"] = nb::tuple(nb::cast(info.normalization.mean));
  result["std"] = nb::tuple(nb::cast(info.normalization.std));
  result["codec"] = info.mixed_codecs ? nb::str("mixed") : text(to_string(info.codec));
  result["fingerprint"] = text(info.fingerprint);
  result["inputs"] = info.inputs;
  result["rejects"] = info.rejects;
  nb::dict pipeline;
  for (const auto& [name, value] : info.provenance) pipeline[text(name)] = text(value);
  result["pipeline"] = pipeline;
  nb::list classes;
  for (const std::string& name : info.classes) classes.append(text(name));
  result["classes"] = nb::tuple(classes);
  nb::list columns;
  nb::dict kinds;
  for (const ColumnSpec& column : info.columns) {
    columns.append(text(column.name));
    nb::list row;
    for (const std::uint64_t extent : column.row_shape) row.append(extent);
    kinds[text(column.name)] = nb::make_tuple(text(std::string(to_string(column.kind))),
                                              text(std::string(to_string(column.dtype))), nb::tuple(row));
  }
  result["columns"] = nb::tuple(columns);
  result["kinds"] = kinds;
  nb::dict targets;
  for (const auto& [name, kind] : known_targets(info)) targets[text(name)] = text(to_string(kind));
  result["targets"] = targets;
  nb::dict images;
  for (const FieldSpec& field : info.fields) {
    nb::list axes;
    for (const std::uint32_t extent : field.spec.shape()) axes.append(extent);
    images[text(field.name)] =
        nb::make_tuple(text(std::string(to_string(field.role))),
                       text(std::string(to_string(field.spec.dtype))), nb::tuple(axes));
  }
  result["images"] = images;
  nb::list shards;
  std::uint64_t size_bytes = 0;
  for (const ShardSummary& shard : info.shards) {
    shards.append(nb::make_tuple(text(shard.file), shard.samples));
    size_bytes += shard.size_bytes;
  }
  result["shards"] = nb::tuple(shards);
  result["size_bytes"] = size_bytes;
  return result;
}

nb::list verify(const DatasetHandle& self, unsigned threads) {
  const auto tasks = verify_tasks(*self.data);
  VerifyFindings findings;
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::jthread work([&](const std::stop_token& stop) {
    try {
      const DatasetInfo& info = self.data->info();  // its tables are those of one folder
      if (!info.tables.empty() && self.data->selection_digest() == 0)
        convert::verify_tables(self.data->path(), info, findings);
      verify_shards(tasks, threads != 0 ? threads : std::min(cpu_count(), 64U), findings, {}, stop);
      promise.set_value();
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  });
  struct Ender {  // joins without the GIL, also after an interrupt
    std::jthread& work;
    ~Ender() {
      WithoutGil without_gil;
      work.request_stop();
      work.join();
    }
  } ender{work};
  wait_with_signals([&] { return done.wait_for(kTick) == std::future_status::ready; });
  done.get();
  nb::list result;
  for (const VerifyFailure& failure : findings.sorted())
    result.append(nb::make_tuple(text(failure.file),
                                 failure.sample ? static_cast<std::int64_t>(*failure.sample) : -1,
                                 text(failure.message)));
  return result;
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<DatasetHandle>(module, "Dataset")
      .def("__init__",
           [](DatasetHandle* self, const std::filesystem::path& folder) {
             WithoutGil without_gil;
             new (self) DatasetHandle{std::make_shared<const Dataset>(Dataset::open(folder))};
           })
      .def("__len__", [](const DatasetHandle& self) { return self.data->size(); })
      .def("info", &info)
      .def("sample", &sample, nb::arg("index"), nb::arg("field") = nb::none())
      .def("label", &label)
      .def("key",
           [](const DatasetHandle& self, std::uint64_t index) {
             const Dataset::Location at = locate(self, index);
             return text(open_shard(self, at.shard).key(at.sample));
           })
      .def("shard_images", &shard_images)
      .def("verify", &verify);
}

}  // namespace shard::python
