// DLPack 1.0 export (https://dmlc.github.io/dlpack/latest/c_api.html).
#include <fmt/format.h>

#include <vector>

#include "lease.hpp"
#include "shard/error.hpp"
#include "shard/loader/dlpack.hpp"

namespace shard {

namespace {

// What the deleter frees: its share of the slot, which is not reused while the tensor lives, and then after
// the work in the streams that the batch was handed to.
struct Exported {
  std::shared_ptr<LentSlot> lent;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  DLManagedTensorVersioned tensor{};
};

DLManagedTensorVersioned* export_tensor(std::shared_ptr<LentSlot> lent, const std::byte* data, DType dtype,
                                        std::vector<std::int64_t> shape) {
  auto exported = std::make_unique<Exported>();
  const DeviceInfo& device = lent->device().info();
  exported->lent = std::move(lent);
  exported->shape = std::move(shape);
  exported->strides.assign(exported->shape.size(), 1);
  for (std::size_t i = exported->shape.size(); i-- > 1;)
    exported->strides[i - 1] = exported->strides[i] * exported->shape[i];
  DLManagedTensorVersioned& tensor = exported->tensor;
  tensor.version = {kDLPackMajorVersion, kDLPackMinorVersion};
  tensor.flags = kDLPackFlagReadOnly;
  tensor.manager_ctx = exported.get();
  tensor.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Exported*>(self->manager_ctx); };
  tensor.dl_tensor.data = const_cast<std::byte*>(data);
  tensor.dl_tensor.device = {device.kind == DeviceKind::cuda ? kDLCUDA : kDLCPU, device.ordinal};
  tensor.dl_tensor.ndim = static_cast<std::int32_t>(exported->shape.size());
  tensor.dl_tensor.dtype = dlpack_dtype(dtype);
  tensor.dl_tensor.shape = exported->shape.data();
  tensor.dl_tensor.strides = exported->strides.data();
  tensor.dl_tensor.byte_offset = 0;
  return &exported.release()->tensor;
}

}  // namespace

DLDataType dlpack_dtype(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_bytes(dtype));
  switch (dtype) {
    case DType::boolean:
      return {kDLBool, 8, 1};
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return {kDLUInt, bits, 1};
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return {kDLInt, bits, 1};
    case DType::bf16:
      return {kDLBfloat, 16, 1};
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return {kDLFloat, bits, 1};
  }
  throw Error(ErrorCode::unsupported, "a dtype that DLPack does not have");
}

DLManagedTensorVersioned* Batch::to_dlpack_images() {
  lease().held().wait_unless_ordered();
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(size())};
  for (std::uint32_t extent : spec().shape()) shape.push_back(extent);
  return export_tensor(lease().lent, images(), spec().dtype, std::move(shape));
}

DLManagedTensorVersioned* Batch::to_dlpack_images(StreamRef consumer) {
  wait_on(consumer);
  return to_dlpack_images();
}

DLManagedTensorVersioned* Batch::to_dlpack_column(std::string_view name) { return to_dlpack(column(name)); }
DLManagedTensorVersioned* Batch::to_dlpack_ids() { return to_dlpack(ids_column()); }
DLManagedTensorVersioned* Batch::to_dlpack_mask() { return to_dlpack(mask_column()); }

DLManagedTensorVersioned* Batch::to_dlpack_column(std::string_view name, StreamRef consumer) {
  const ColumnView& view = column(name);
  wait_on(consumer);
  return to_dlpack(view);
}

DLManagedTensorVersioned* Batch::to_dlpack_ids(StreamRef consumer) {
  wait_on(consumer);
  return to_dlpack_ids();
}

DLManagedTensorVersioned* Batch::to_dlpack_mask(StreamRef consumer) {
  wait_on(consumer);
  return to_dlpack_mask();
}

DLManagedTensorVersioned* Batch::to_dlpack(const ColumnView& view) {
  lease().held().wait_unless_ordered();
  std::vector<std::int64_t> shape(view.shape.begin(), view.shape.end());
  return export_tensor(lease().lent, view.device, view.dtype, std::move(shape));
}

}  // namespace shard
