// Views of data sets, and samplings. Arrays come as the bytes of numpy arrays.
#include "shard/selection.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataset.hpp"
#include "sampling.hpp"
#include "shard/error.hpp"
#include "tensor.hpp"

namespace shard::python {

namespace {

DatasetHandle handle(Dataset data) { return {std::make_shared<const Dataset>(std::move(data))}; }

DatasetHandle select(const DatasetHandle& self, const nb::bytes& packed) {
  const std::uint64_t samples = self.data->size();
  if (packed.size() != (samples + 7) / 8)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a selection has {} bytes of bits; {} samples need {}", packed.size(), samples,
                            (samples + 7) / 8));
  SampleBits bits(samples);
  std::memcpy(bits.words().data(), packed.data(), packed.size());
  WithoutGil without_gil;
  return handle(self.data->select(Selection::bits(std::move(bits))));
}

DatasetHandle hashed(const DatasetHandle& self, double from, double to, std::uint64_t seed, bool others) {
  WithoutGil without_gil;
  const Selection part = Selection::hashed(from, to, seed, self.data->cuts(seed));
  return handle(self.data->select(others ? !part : part));
}

DatasetHandle concat(const std::vector<DatasetHandle*>& parts) {
  WithoutGil without_gil;
  std::vector<Dataset> all;
  for (const DatasetHandle* part : parts) all.push_back(*part->data);
  return handle(Dataset::concat(all));
}

// All rows of a column, [sample, ...]; a new copy.
Tensor column(const DatasetHandle& self, const std::string& name) {
  const Dataset& data = *self.data;
  const ColumnSpec* spec = nullptr;
  for (const ColumnSpec& known : data.info().columns)
    if (known.name == name) spec = &known;
  if (spec == nullptr) throw nb::key_error(name.c_str());
  Tensor tensor;
  tensor.dtype = spec->dtype;
  tensor.writable = true;
  tensor.shape.push_back(static_cast<Py_ssize_t>(data.size()));
  for (const std::uint64_t extent : spec->row_shape) tensor.shape.push_back(static_cast<Py_ssize_t>(extent));
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  WithoutGil without_gil;
  bytes->resize(tensor.size_bytes());
  const std::size_t row = bytes->size() / data.size();
  const bool labels = name == "labels" && spec->dtype == DType::i64 && spec->row_shape.empty();
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    const Dataset::Location at = data.locate(i);
    const ShardReader& shard = data.shard(at.shard);
    const std::span<std::byte> target(bytes->data() + i * row, row);
    shard.read_rows(shard.columns().at(name), at.sample, target);
    if (!labels || !data.maps_labels(at.shard)) continue;
    std::int64_t label = 0;
    std::memcpy(&label, target.data(), sizeof(label));
    label = data.label_of(at.shard, label);
    std::memcpy(target.data(), &label, sizeof(label));
  }
  tensor.data = bytes->data();
  tensor.owner = bytes;
  return tensor;
}

// The rows of a column that is ragged or text, and int64 [sample + 1] with the row at which each sample
// begins. Of the samples [first, first + count); new copies.
std::pair<Tensor, Tensor> rows(const DatasetHandle& self, const std::string& name, std::uint64_t first,
                               std::uint64_t count) {
  const Dataset& data = *self.data;
  const auto& columns = data.info().columns;
  const auto spec =
      std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
  if (spec == columns.end()) throw nb::key_error(name.c_str());
  if (first > data.size() || count > data.size() - first)
    throw nb::index_error(fmt::format("samples {} to {} of {}", first, first + count, data.size()).c_str());
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto offsets = std::make_shared<std::vector<std::int64_t>>(1, 0);
  {
    WithoutGil without_gil;
    std::vector<std::byte> row;
    for (std::uint64_t i = first; i < first + count; ++i) {
      data.read_column(i, name, row);
      bytes->insert(bytes->end(), row.begin(), row.end());
      offsets->push_back(static_cast<std::int64_t>(bytes->size() / spec->row_bytes()));
    }
  }
  Tensor values{bytes,       bytes->data(), spec->dtype, {static_cast<Py_ssize_t>(offsets->back())},
                {kDLCPU, 0}, true,          {}};
  for (const std::uint64_t extent : spec->row_shape) values.shape.push_back(static_cast<Py_ssize_t>(extent));
  Tensor where{offsets,     reinterpret_cast<const std::byte*>(offsets->data()),
               DType::i64,  {static_cast<Py_ssize_t>(offsets->size())},
               {kDLCPU, 0}, true,
               {}};
  return {std::move(values), std::move(where)};
}

// The texts of the samples [first, first + count).
std::vector<std::string> texts(const DatasetHandle& self, const std::string& name, std::uint64_t first,
                               std::uint64_t count) {
  WithoutGil without_gil;
  std::vector<std::string> all;
  for (std::uint64_t i = first; i < first + count; ++i) all.push_back(self.data->text(i, name));
  return all;
}

// Which samples of a shard belong to the data set.
std::vector<std::uint64_t> shard_rows(const DatasetHandle& self, std::uint32_t shard) {
  const Dataset& data = *self.data;
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < shard; ++i) first += data.info().shards[i].samples;
  std::vector<std::uint64_t> rows(data.info().shards[shard].samples);
  for (std::uint64_t i = 0; i < rows.size(); ++i) rows[i] = data.locate(first + i).sample;
  return rows;
}

SamplingHandle mix(const std::vector<std::uint64_t>& samples, const std::vector<double>& proportions) {
  std::vector<Sampling::Part> parts;
  for (std::size_t i = 0; i < samples.size(); ++i) parts.push_back({samples[i], proportions.at(i)});
  return {Sampling::mix(parts)};
}

SamplingHandle balanced(const DatasetHandle& data) {
  WithoutGil without_gil;
  return {Sampling::balanced(*data.data)};
}

SamplingHandle weighted(const nb::bytes& float64, bool replacement) {
  std::vector<double> weights(float64.size() / sizeof(double));
  if (!weights.empty()) std::memcpy(weights.data(), float64.data(), weights.size() * sizeof(double));
  WithoutGil without_gil;
  return {Sampling::weighted(weights, replacement)};
}

}  // namespace

void bind_selection(nb::module_& module) {
  nb::class_<SamplingHandle>(module, "Sampling").def_prop_ro("samples", [](const SamplingHandle& self) {
    return self.sampling->samples();
  });
  module.def("select", &select);
  module.def("hashed", &hashed);
  module.def("concat", &concat);
  module.def("column", &column);
  module.def("rows", &rows);
  module.def("texts", &texts);
  module.def("shard_rows", &shard_rows);
  module.def("save_selection", [](const DatasetHandle& self, const std::string& name) {
    WithoutGil without_gil;
    self.data->save_selection(name);
  });
  module.def("selection_digest", [](const DatasetHandle& self) { return self.data->selection_digest(); });
  module.def("source_digest", [](const DatasetHandle& self) { return self.data->info().source_digest; });
  module.def("sampling_mix", &mix);
  module.def("sampling_balanced", &balanced);
  module.def("sampling_weighted", &weighted);
  module.def("sampling_uniform", [](std::uint64_t samples, bool replacement) {
    return SamplingHandle{Sampling::uniform(samples, replacement)};
  });
}

}  // namespace shard::python
