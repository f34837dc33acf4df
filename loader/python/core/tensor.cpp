#include "tensor.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace shard::python {

namespace {

constexpr const char* kLegacyName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

// DLPack before 1.0, which has no version and no flags.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

template <class Managed>
struct Exported {
  Tensor tensor;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  Managed managed{};
};

// Of the buffer protocol (Python's struct module); bfloat16, which it does not have, as its bits.
// In the order of DType.
constexpr std::array<const char*, 13> kFormats{"?", "B", "b", "H", "h", "e", "H",
                                               "I", "i", "f", "Q", "q", "d"};
static_assert(static_cast<std::size_t>(DType::f64) + 1 == kFormats.size());

// A capsule that nobody took deletes the tensor itself; a consumer renames it.
template <class Managed>
void destroy_capsule(PyObject* capsule) {
  for (const char* name : {kLegacyName, kVersionedName})
    if (PyCapsule_IsValid(capsule, name) != 0) {
      auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
      managed->deleter(managed);
    }
}

template <class Managed>
nb::object make_capsule(const Tensor& tensor, const char* name) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->tensor = tensor;
  exported->shape.assign(tensor.shape.begin(), tensor.shape.end());
  const std::vector<Py_ssize_t> strides = tensor.strides(1);
  exported->strides.assign(strides.begin(), strides.end());
  DLTensor& dl = exported->managed.dl_tensor;
  dl.data = const_cast<std::byte*>(tensor.data);
  dl.device = tensor.device;
  dl.ndim = static_cast<std::int32_t>(exported->shape.size());
  dl.dtype = dlpack_dtype(tensor.dtype);
  dl.shape = exported->shape.data();
  dl.strides = exported->strides.data();
  dl.byte_offset = 0;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    exported->managed.version = {kDLPackMajorVersion, kDLPackMinorVersion};
    exported->managed.flags = tensor.writable ? 0 : kDLPackFlagReadOnly;
  }
  PyObject* const capsule = PyCapsule_New(&exported->managed, name, &destroy_capsule<Managed>);
  if (capsule == nullptr) throw nb::python_error();
  static_cast<void>(exported.release());
  return nb::steal<nb::object>(capsule);
}

// -1, or what CUDA has.
std::int64_t stream_number(const nb::object& stream) {
  std::int64_t number = 0;
  if (!nb::try_cast<std::int64_t>(stream, number) || number < -1)
    throw nb::buffer_error(
        fmt::format("stream is {}: expected None, -1, 1, or the address of a stream of CUDA",
                    nb::repr(stream).c_str())
            .c_str());
  return number;
}

nb::object dlpack(const Tensor& self, const nb::object& stream, const nb::object& max_version,
                  const nb::object& dl_device, const nb::object& copy) {
  if (!copy.is_none() && nb::cast<bool>(copy))
    throw nb::buffer_error("copy=True: copies are made by the consumer");
  if (!dl_device.is_none() && nb::cast<std::pair<int, int>>(dl_device) !=
                                  std::pair<int, int>(self.device.device_type, self.device.device_id))
    throw nb::buffer_error("dl_device is another device than the tensor's: the consumer must copy");
  const bool versioned =
      !max_version.is_none() && nb::cast<std::pair<int, int>>(max_version) >= std::pair<int, int>(1, 0);
  if (!versioned && !self.writable)
    throw nb::buffer_error("read-only memory needs a consumer of DLPack 1.0 (max_version=(1, 0))");
  const std::int64_t number = stream.is_none() ? 1 : stream_number(stream);
  if (self.device.device_type == kDLCUDA && self.lease) {
    if (number == 2) throw nb::buffer_error("the per-thread default stream is not supported");
    if (number < 0) {  // -1: no stream is to be ordered after the batch, so its bytes must be there already
      wait_with_signals([&] { return self.lease->batch().wait_ready(kTick); });
      WithoutGil without_gil;
      self.lease->batch().wait();
    } else {
      WithoutGil without_gil;
      self.lease->batch().wait_on(stream_of(static_cast<std::uint64_t>(number)));
    }
  }
  return versioned ? make_capsule<DLManagedTensorVersioned>(self, kVersionedName)
                   : make_capsule<DLManagedTensor>(self, kLegacyName);
}

struct Layout {  // of a Py_buffer: lives until it is released
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  const Tensor& self = *nb::inst_ptr<Tensor>(object);
  view->obj = nullptr;
  if (self.device.device_type != kDLCPU) {
    PyErr_SetString(PyExc_BufferError, "the tensor is in device memory: use DLPack");
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) != 0 && !self.writable) {
    PyErr_SetString(PyExc_BufferError, "the memory is read-only");
    return -1;
  }
  const std::size_t unit = size_bytes(self.dtype);
  auto layout = std::make_unique<Layout>(Layout{self.shape, self.strides(unit)});
  view->buf = const_cast<std::byte*>(self.data);
  view->len = static_cast<Py_ssize_t>(self.size_bytes());
  view->itemsize = static_cast<Py_ssize_t>(unit);
  view->readonly = self.writable ? 0 : 1;
  view->ndim = static_cast<int>(self.shape.size());
  view->format = const_cast<char*>(kFormats[static_cast<std::size_t>(self.dtype)]);
  view->shape = layout->shape.data();
  view->strides = layout->strides.data();
  view->suboffsets = nullptr;
  view->internal = layout.release();
  view->obj = object;
  Py_INCREF(object);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Layout*>(view->internal); }

PyType_Slot tensor_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                              {0, nullptr}};

}  // namespace

std::vector<Py_ssize_t> Tensor::strides(std::size_t unit_bytes) const {
  std::vector<Py_ssize_t> result(shape.size(), static_cast<Py_ssize_t>(unit_bytes));
  for (std::size_t i = shape.size(); i-- > 1;) result[i - 1] = result[i] * shape[i];
  return result;
}

std::size_t Tensor::size_bytes() const {
  std::size_t size = shard::size_bytes(dtype);
  for (Py_ssize_t extent : shape) size *= static_cast<std::size_t>(extent);
  return size;
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(
      module, "Tensor", nb::type_slots(tensor_slots),
      "Memory of a batch or a data set, for any framework: DLPack (torch.from_dlpack, cupy.from_dlpack,\n"
      "numpy.from_dlpack) and, on the host, numpy.asarray. Contiguous, C order. What is made from it\n"
      "keeps the memory alive. bfloat16 goes through the buffer protocol as uint16.")
      .def_prop_ro(
          "shape",
          [](const Tensor& self) {
            nb::list extents;
            for (Py_ssize_t extent : self.shape) extents.append(extent);
            return nb::tuple(extents);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Extents of the axes, the sample first.")
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return long_name(self.dtype); },
          "\"uint8\", \"float16\", \"bfloat16\", \"float32\", \"int64\", ...")
      .def_prop_ro(
          "device",
          [](const Tensor& self) {
            return self.device.device_type == kDLCPU ? std::string("cpu")
                                                     : "cuda:" + std::to_string(self.device.device_id);
          },
          "\"cpu\" or \"cuda:0\".")
      .def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
           nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
           nb::arg("copy").none() = nb::none(),
           "A capsule as DLPack 1.0 states. On CUDA work queued later in `stream` comes after the batch's "
           "bytes. stream=-1: the host waits for them, and the consumer keeps the capsule's tensor until its "
           "work is done.")
      .def("__dlpack_device__",
           [](const Tensor& self) {
             return std::pair<int, int>(self.device.device_type, self.device.device_id);
           })
      .def(
          "capsule",
          [](const Tensor& self) {
            if (!self.writable)
              throw nb::buffer_error("read-only memory: use __dlpack__(max_version=(1, 0))");
            return make_capsule<DLManagedTensor>(self, kLegacyName);
          },
          "A DLPack capsule for a consumer that has ordered itself after the batch.");
}

}  // namespace shard::python
