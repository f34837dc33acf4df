// The loader and its batches.
#include "shard/loader/loader.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "augment.hpp"
#include "base/system/cpu_count.hpp"
#include "dataset.hpp"
#include "device.hpp"
#include "lease.hpp"
#include "options.hpp"
#include "shard/error.hpp"
#include "tensor.hpp"

namespace shard::python {

namespace {

struct PyBatch {
  std::shared_ptr<Lease> lease;
  DLDevice device{kDLCPU, 0};

  Batch& batch() const { return lease->batch(); }
  Tensor images() const { return tensor(batch().images()); }
  Tensor view(std::size_t number) const { return tensor(batch().images(number)); }
  Tensor column(const std::string& name, std::size_t view) const {
    return tensor(batch().column(name, view));
  }
  // Which of the batches it is that were made as one; none: it was made alone.
  std::optional<std::size_t> place() const {
    if (batch().rows_together().size() == 1) return std::nullopt;
    return batch().place_together();
  }
  Tensor field(const std::string& name, std::size_t view) const { return tensor(batch().field(name, view)); }
  std::vector<std::string> texts(const std::string& name) const {
    WithoutGil without_gil;
    return batch().texts(name);
  }
  Tensor ids() const { return tensor(batch().device_ids()); }
  // 1: a real sample. `dtype`: boolean, or u8 for consumers whose DLPack has no booleans.
  Tensor mask(DType dtype) const {
    TensorView view = batch().device_mask();
    view.dtype = dtype;
    return tensor(view);
  }
  Tensor tensor(const TensorView& view) const {
    return {lease, view.data, view.dtype, {view.shape.begin(), view.shape.end()}, device, true, lease};
  }
};

// One consumer at a time is inside; others wait for their turn. cancel() and stats() may be called meanwhile.
class PyLoader {
 public:
  PyLoader(const DatasetHandle& data, int device, const nb::dict& options, const nb::object& current_stream) {
    const LoaderOptions parsed = loader_options(options);
    std::shared_ptr<Device> made;
    {
      WithoutGil without_gil;
      made = make_device(device, parsed.threads);
      loader_.set(std::make_shared<Loader>(*data.data, made, parsed));
    }
    if (device >= 0) {
      device_ = {kDLCUDA, device};
      current_ = std::make_shared<CurrentStream>(current_stream);
    }
  }
  PyLoader(const PyLoader&) = delete;
  PyLoader& operator=(const PyLoader&) = delete;
  ~PyLoader() { close(); }

  // The loader, alive for as long as this lives, even if another thread closes it.
  class Held {
   public:
    explicit Held(std::shared_ptr<Loader> loader) : loader_(std::move(loader)) {
      if (!loader_) throw Error(ErrorCode::invalid_argument, "the loader was closed");
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { drop(std::move(loader_)); }
    Loader* operator->() const { return loader_.get(); }

   private:
    std::shared_ptr<Loader> loader_;
  };

  void close() {
    std::shared_ptr<Loader> loader = loader_.take();
    if (!loader) return;
    loader->cancel();  // who waits in next() is told so
    drop(std::move(loader));
  }
  Held loader() const { return Held(loader_.get()); }

  // Without `stream`: the host waits. -1: nobody does yet.
  std::optional<PyBatch> next(std::optional<std::int64_t> stream) {
    const Turn turn(*this);
    wait_with_signals([&] { return turn.loader()->wait_ready(kTick); });
    std::optional<PyBatch> result;
    {
      WithoutGil without_gil;
      std::optional<Batch> batch = turn.loader()->next();
      if (!batch) return std::nullopt;
      result = PyBatch{std::make_shared<Lease>(std::move(*batch), current_), device_};
    }
    if (!stream) wait_with_signals([&] { return result->batch().wait_ready(kTick); });
    WithoutGil without_gil;
    if (!stream)
      result->batch().wait();
    else if (*stream >= 0)
      result->batch().wait_on(stream_of(static_cast<std::uint64_t>(*stream)));
    return result;
  }
  // resumed: the rest of the epoch, where the loader was resumed inside it.
  void begin(std::uint64_t epoch, bool resumed) {
    const Turn turn(*this);
    WithoutGil without_gil;
    if (resumed)
      static_cast<void>(turn.loader()->epoch(epoch));
    else
      turn.loader()->start_epoch(epoch);
  }
  // keep_views: the loader's, not those of the state.
  void resume(const std::string& state, bool keep_views) {
    LoaderState parsed = LoaderState::parse(state);
    if (keep_views) {
      parsed.views.clear();
      parsed.next_views.clear();
    }
    const Turn turn(*this);
    WithoutGil without_gil;
    turn.loader()->resume(parsed);
  }

  // options: those of view 0, and further_views.
  void set_views(const nb::dict& options) {
    std::vector<TransformOptions> views = views_of(options);
    TransformOptions first = std::move(views.front());
    views.erase(views.begin());
    const Turn turn(*this);
    WithoutGil without_gil;
    turn.loader()->set_views(std::move(first), std::move(views));
  }

  // See Loader::set_data().
  void set_data(const DatasetHandle& data) {
    const Turn turn(*this);
    WithoutGil without_gil;
    turn.loader()->set_data(*data.data);
  }

 private:
  // The loader, for as long as one thread works with it.
  class Turn {
   public:
    explicit Turn(PyLoader& self) : self_(self), loader_(self.loader_.get()) {
      if (::getpid() != self.process_) static_cast<void>(loader_->state());  // says what is wrong
      if (!self_.mutex_.try_lock()) wait_with_signals([&] { return self_.mutex_.try_lock_for(kTick); });
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { self_.mutex_.unlock(); }
    const Held& loader() const { return loader_; }

   private:
    PyLoader& self_;
    const Held loader_;
  };
  // The last one joins the loader's threads, which may take a moment.
  static void drop(std::shared_ptr<Loader> loader) {
    if (loader.use_count() > 1) return;
    WithoutGil without_gil;
    loader.reset();
  }

  const int process_ = ::getpid();
  SharedPointer<Loader> loader_;
  std::shared_ptr<CurrentStream> current_;  // null: the host device
  DLDevice device_{kDLCPU, 0};
  std::timed_mutex mutex_;
};

const char* name_of(TransportKind kind) { return to_string(kind).data(); }

template <class T>
nb::object value_of(const T& statistic) {
  if constexpr (std::is_arithmetic_v<T>)
    return nb::cast(statistic);
  else if constexpr (std::is_enum_v<T>)
    return nb::str(name_of(statistic));
  else
    return text(statistic);
}

nb::dict stats(const PyLoader& self) {
  const LoaderStats stats = self.loader()->stats();
  nb::dict result;
  const auto add = [&](const Statistic& statistic, auto member) {
    result[nb::str(statistic.name.data(), statistic.name.size())] = value_of(stats.*member);
  };
  LoaderStats::members(add);
  return result;
}

// [(name, Python's type, sentence)]
nb::list statistics() {
  nb::list all;
  const LoaderStats none;
  const auto add = [&](const Statistic& statistic, auto member) {
    const nb::object value = value_of(none.*member);
    all.append(nb::make_tuple(statistic.name, value.type().attr("__name__"), statistic.sentence));
  };
  LoaderStats::members(add);
  return all;
}

nb::tuple state(const PyLoader& self) {
  LoaderState state = self.loader()->state();
  state.inputs = 0;  // state_dict() has an entry of its own
  return nb::make_tuple(state.epoch, state.global_batch == 0 ? 0 : state.position / state.global_batch,
                        text(state.serialize()));
}

// Of a sample in a view (draw_places()), with the loader's seed. `shape`: as it is stored.
nb::tuple geometry(const PyLoader& self, const std::array<std::uint32_t, 3>& shape, std::uint64_t epoch,
                   std::uint64_t sample, std::uint32_t view) {
  const PyLoader::Held loader = self.loader();
  const LoaderOptions& options = loader->options();
  const std::size_t views = 1 + options.further_views.size();
  if (view >= views)
    throw Error(ErrorCode::invalid_argument, fmt::format("view {} of a loader with {}", view, views));
  TransformOptions chosen = view == 0 ? options.transform : options.further_views[view - 1];
  if (chosen.patch != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {} is delivered as patches, which have no geometry of one image", view));
  if (!options.buckets.empty())
    chosen = view_of_bucket(options, options.buckets[bucket_of(shape[0], shape[1], options.buckets)]);
  return draw_places(chosen, shape, options.seed, epoch, sample, view);
}

nb::tuple delivered(const PyLoader& self) {
  const SampleSpec spec = self.loader()->delivered();
  nb::list shape;
  for (std::uint32_t extent : spec.shape()) shape.append(extent);
  return nb::make_tuple(nb::tuple(shape), nb::str(to_string(spec.dtype).data()),
                        nb::str(to_string(spec.layout).data()));
}

}  // namespace

void bind_loader(nb::module_& module) {
  module.def("buckets", [](std::uint64_t area, std::uint32_t step, double max_aspect) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (const Bucket& bucket : make_buckets(area, step, max_aspect))
      all.emplace_back(bucket.height, bucket.width);
    return all;
  });
  nb::class_<PyBatch>(module, "Batch")
      .def_prop_ro("size", [](const PyBatch& self) { return self.batch().size(); })
      .def_prop_ro("epoch", [](const PyBatch& self) { return self.batch().epoch(); })
      .def_prop_ro("index", [](const PyBatch& self) { return self.batch().index(); })
      .def_prop_ro("images", &PyBatch::images)
      .def_prop_ro("views", [](const PyBatch& self) { return self.batch().views(); })
      .def("view", &PyBatch::view)
      .def_prop_ro("ids", &PyBatch::ids)
      .def_prop_ro("mask", [](const PyBatch& self) { return self.mask(DType::boolean); })
      .def_prop_ro("mask_bytes", [](const PyBatch& self) { return self.mask(DType::u8); })
      .def("texts", &PyBatch::texts)
      .def("column", &PyBatch::column)
      .def_prop_ro("place", &PyBatch::place)
      .def_prop_ro("rows_together", [](const PyBatch& self) { return self.batch().rows_together(); })
      .def("column_together",
           [](const PyBatch& self, const std::string& name) {
             return self.tensor(self.batch().column_together(name));
           })
      .def("field", &PyBatch::field);
  nb::class_<PyLoader>(module, "Loader")
      .def(nb::init<const DatasetHandle&, int, const nb::dict&, const nb::object&>(), nb::arg("data"),
           nb::arg("device"), nb::arg("options"), nb::arg("current_stream").none())
      .def("next", &PyLoader::next, nb::arg("stream").none())
      .def("begin", &PyLoader::begin)
      .def("resume", &PyLoader::resume, nb::arg("state"), nb::arg("keep_views"))
      .def("set_views", &PyLoader::set_views)
      .def("set_data", &PyLoader::set_data)
      .def("geometry", &geometry)
      .def("close", &PyLoader::close)
      .def("cancel", [](const PyLoader& self) { self.loader()->cancel(); })
      .def("batches", [](const PyLoader& self) { return self.loader()->batches_per_epoch(); })
      .def("state", &state)
      .def("stats", &stats)
      .def("delivered", &delivered);
  module.def("statistics", &statistics);
  module.def("cuda_device_count", [] {
#ifdef SHARD_PYTHON_CUDA
    WithoutGil without_gil;
    return cuda_device_count();
#else
    return 0;
#endif
  });
#ifdef SHARD_PYTHON_CUDA
  module.attr("has_cuda") = true;
#else
  module.attr("has_cuda") = false;
#endif
}

}  // namespace shard::python
