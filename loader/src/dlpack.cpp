// DLPack 1.0 export (https://dmlc.github.io/dlpack/latest/c_api.html).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/lease.hpp"
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

// Whether the view lies inside memory of the slot, on the device that it names.
bool is_of(const TensorView& view, const Slot& slot, const DeviceInfo& device) {
  const bool on_device = view.device == device.kind && view.ordinal == device.ordinal;
  const auto inside = [&](const Block& block) {
    const std::byte* const begin = block.data();
    return view.data >= begin && view.size_bytes() <= block.size_bytes() &&
           view.data + view.size_bytes() <= begin + block.size_bytes();
  };
  if (on_device && (inside(*slot.images) || inside(*slot.columns_device))) return true;
  return view.device == DeviceKind::host && inside(*slot.columns_host);
}

DLManagedTensorVersioned* export_tensor(std::shared_ptr<LentSlot> lent, const TensorView& view) {
  auto exported = std::make_unique<Exported>();
  exported->lent = std::move(lent);
  exported->shape.assign(view.shape.begin(), view.shape.end());
  exported->strides = view.strides;
  DLManagedTensorVersioned& tensor = exported->tensor;
  tensor.version = {kDLPackMajorVersion, kDLPackMinorVersion};
  tensor.flags = kDLPackFlagReadOnly;
  tensor.manager_ctx = exported.get();
  tensor.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Exported*>(self->manager_ctx); };
  tensor.dl_tensor.data = const_cast<std::byte*>(view.data);
  tensor.dl_tensor.device = {view.device == DeviceKind::cuda ? kDLCUDA : kDLCPU, view.ordinal};
  tensor.dl_tensor.ndim = static_cast<std::int32_t>(exported->shape.size());
  tensor.dl_tensor.dtype = dlpack_dtype(view.dtype);
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

// Whether the view lies inside a tensor of this batch, of a slot that holds several.
bool Batch::is_mine(const TensorView& view) const {
  const Slot& slot = lease().held().slot();
  const auto inside = [&](const TensorView& whole) {
    return view.device == whole.device && view.data >= whole.data &&
           view.data + view.size_bytes() <= whole.data + whole.size_bytes();
  };
  const auto of_column = [&](const SlotColumn& column) {
    return inside(rows_of(column, column.device, true)) ||
           (column.host != nullptr && inside(rows_of(column, column.host, false)));
  };
  for (std::size_t number = 0; number < views(); ++number)
    if (inside(images(number))) return true;
  return of_column(slot.ids) || of_column(slot.mask) ||
         std::any_of(slot.columns.begin(), slot.columns.end(), of_column) ||
         std::any_of(slot.fields.begin(), slot.fields.end(), of_column);
}

DLManagedTensorVersioned* Batch::to_dlpack(const TensorView& view) {
  LentSlot& held = lease().held();
  if (!is_of(view, held.slot(), held.device().info()) || (held.slot().batches > 1 && !is_mine(view)))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("to_dlpack: this view is not of batch {} of epoch {}: give one that images(), "
                            "column() or another member of it returned",
                            index(), epoch()));
  held.wait_unless_ordered();
  return export_tensor(lease().lent, view);
}

DLManagedTensorVersioned* Batch::to_dlpack(const TensorView& view, StreamRef consumer) {
  wait_on(consumer);
  return to_dlpack(view);
}

}  // namespace shard
