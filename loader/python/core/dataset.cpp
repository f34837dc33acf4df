#include "dataset.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "base/cpu_count.hpp"
#include "shard/error.hpp"
#include "tensor.hpp"

namespace shard::python {

namespace {

constexpr std::uint64_t kVerifyStep = 64;  // samples that a thread takes at once

std::vector<Py_ssize_t> extents(std::uint64_t first, const auto& rest) {
  std::vector<Py_ssize_t> shape{static_cast<Py_ssize_t>(first)};
  for (const auto extent : rest) shape.push_back(static_cast<Py_ssize_t>(extent));
  return shape;
}

std::shared_ptr<void> owner_of(const DatasetHandle& self) {
  return std::const_pointer_cast<Dataset>(self.data);
}

const ShardReader& open_shard(const DatasetHandle& self, std::uint32_t shard) {
  nb::gil_scoped_release without_gil;  // it is mapped at first use
  return self.data->shard(shard);
}

Dataset::Location locate(const DatasetHandle& self, std::uint64_t index) {
  if (index >= self.data->size())
    throw nb::index_error(fmt::format("sample {} of {}", index, self.data->size()).c_str());
  return self.data->locate(index);
}

// A view of the mapping; with a codec a new, decoded sample.
Tensor sample(const DatasetHandle& self, std::uint64_t index) {
  const Dataset::Location at = locate(self, index);
  const ShardReader& shard = open_shard(self, at.shard);
  const SampleSpec& spec = self.data->info().spec;
  Tensor tensor;
  tensor.dtype = spec.dtype;
  const auto axes = spec.shape();
  tensor.shape.assign(axes.begin(), axes.end());
  if (self.data->info().codec.kind == Codec::Kind::none) {
    tensor.owner = owner_of(self);
    tensor.data = shard.frame(at.sample).data();
    return tensor;
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(spec.size_bytes());
  {
    nb::gil_scoped_release without_gil;
    shard.read(at.sample, *bytes);
  }
  tensor.data = bytes->data();
  tensor.writable = true;
  tensor.owner = std::move(bytes);
  return tensor;
}

// All samples of a shard, as they are mapped.
Tensor shard_images(const DatasetHandle& self, std::uint32_t index) {
  if (self.data->info().codec.kind != Codec::Kind::none)
    throw Error(ErrorCode::unsupported,
                fmt::format("the samples are stored with codec {}: only those of codec none are mapped as "
                            "they are; read them one by one",
                            to_string(self.data->info().codec)));
  const ShardReader& shard = open_shard(self, index);
  const SampleSpec& spec = self.data->info().spec;
  return {owner_of(self), shard.frame(0).data(),
          spec.dtype,     extents(shard.size(), spec.shape()),
          {kDLCPU, 0},    false,
          nullptr};
}

Tensor shard_column(const DatasetHandle& self, std::uint32_t index, const std::string& name) {
  const ShardReader& shard = open_shard(self, index);
  const auto found = shard.columns().find(name);
  if (found == shard.columns().end()) throw nb::key_error(name.c_str());
  const Column& column = found->second;
  return {owner_of(self), column.bytes.data(),
          column.dtype,   extents(shard.size(), column.row_shape),
          {kDLCPU, 0},    false,
          nullptr};
}

nb::object label(const DatasetHandle& self, std::uint64_t index) {
  const Dataset::Location at = locate(self, index);
  const ShardReader& shard = open_shard(self, at.shard);
  const Column& column = shard.columns().at("labels");
  if (column.dtype == DType::i64 && column.row_shape.empty()) return nb::int_(shard.label(at.sample));
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
  result["samples"] = info.samples();
  result["dtype"] = nb::cast(std::string(to_string(info.spec.dtype)));
  result["layout"] = nb::cast(std::string(to_string(info.spec.layout)));
  nb::list shape;
  for (std::uint32_t extent : info.spec.shape()) shape.append(extent);
  result["shape"] = nb::tuple(shape);
  result["mean"] = nb::tuple(nb::cast(info.normalization.mean));
  result["std"] = nb::tuple(nb::cast(info.normalization.std));
  result["codec"] = text(to_string(info.codec));
  result["fingerprint"] = text(info.fingerprint);
  result["inputs"] = info.inputs;
  result["rejects"] = info.rejects;
  nb::dict pipeline;
  for (const auto& [name, value] : info.pipeline) pipeline[text(name)] = text(value);
  result["pipeline"] = pipeline;
  nb::list classes;
  for (const std::string& name : info.classes) classes.append(text(name));
  result["classes"] = nb::tuple(classes);
  nb::list columns;
  for (const ColumnSpec& column : info.columns) columns.append(text(column.name));
  result["columns"] = nb::tuple(columns);
  nb::list shards;
  for (const ShardSummary& shard : info.shards)
    shards.append(nb::make_tuple(text(shard.file), shard.samples));
  result["shards"] = nb::tuple(shards);
  return result;
}

// The checking of all shards by several threads.
class Check {
 public:
  struct Failure {
    std::uint32_t shard = 0;
    std::int64_t sample = -1;  // in the shard; -1: the shard as a whole
    std::string message;
  };

  explicit Check(std::shared_ptr<const Dataset> data) : data_(std::move(data)) {
    for (std::uint32_t s = 0; s < data_->info().shards.size(); ++s)
      for (std::uint64_t begin = 0; begin < data_->info().shards[s].samples; begin += kVerifyStep)
        units_.push_back({s, begin});
  }
  ~Check() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  void start(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { work(); });
      ++running_;
    }
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTick, [&] { return ended_ == running_; });
  }
  std::vector<Failure> failures() {
    std::sort(failures_.begin(), failures_.end(), [](const Failure& a, const Failure& b) {
      return std::pair(a.shard, a.sample) < std::pair(b.shard, b.sample);
    });
    return failures_;
  }

 private:
  struct Unit {
    std::uint32_t shard = 0;
    std::uint64_t begin = 0;
  };
  void work() noexcept {
    std::vector<std::byte> scratch;
    for (std::size_t i = next_++; i < units_.size() && !stop_; i = next_++) check(units_[i], scratch);
    std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }
  void check(const Unit& unit, std::vector<std::byte>& scratch) {
    std::int64_t at = -1;
    const bool first = unit.begin == 0;
    try {
      const ShardReader& shard = data_->shard(unit.shard);
      shard.check_unchanged();
      if (first) shard.verify_head();
      for (std::uint64_t s = unit.begin; s < std::min(unit.begin + kVerifyStep, shard.size()) && !stop_;
           ++s) {
        at = static_cast<std::int64_t>(s);
        try {
          shard.verify_sample(s, scratch);
        } catch (const Error& error) {
          add({unit.shard, at, error.what()});
        }
      }
    } catch (const std::exception& error) {
      if (first || at >= 0) add({unit.shard, at, error.what()});  // a shard as a whole is reported once
    }
  }
  void add(Failure failure) {
    std::lock_guard lock(mutex_);
    failures_.push_back(std::move(failure));
  }

  std::shared_ptr<const Dataset> data_;
  std::vector<Unit> units_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned running_ = 0;
  unsigned ended_ = 0;
  std::vector<Failure> failures_;
  std::vector<std::thread> threads_;
};

nb::list verify(const DatasetHandle& self, unsigned threads) {
  std::optional<Check> check;
  check.emplace(self.data);
  struct Ender {  // joins without the GIL, also after an interrupt
    std::optional<Check>& check;
    ~Ender() {
      nb::gil_scoped_release without_gil;
      check.reset();
    }
  } ender{check};
  check->start(threads != 0 ? threads : std::min(cpu_count(), 64U));
  wait_with_signals([&] { return check->wait(); });
  nb::list result;
  for (const Check::Failure& failure : check->failures())
    result.append(nb::make_tuple(text(self.data->info().shards[failure.shard].file), failure.sample,
                                 text(failure.message)));
  return result;
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<DatasetHandle>(module, "Dataset")
      .def("__init__",
           [](DatasetHandle* self, const std::filesystem::path& folder) {
             nb::gil_scoped_release without_gil;
             new (self) DatasetHandle{std::make_shared<const Dataset>(Dataset::open(folder))};
           })
      .def("__len__", [](const DatasetHandle& self) { return self.data->size(); })
      .def("info", &info)
      .def("sample", &sample)
      .def("label", &label)
      .def("key",
           [](const DatasetHandle& self, std::uint64_t index) {
             const Dataset::Location at = locate(self, index);
             return text(open_shard(self, at.shard).key(at.sample));
           })
      .def("shard_images", &shard_images)
      .def("shard_column", &shard_column)
      .def("verify", &verify);
}

}  // namespace shard::python
