#include "engine/prepare_slot.hpp"

#include <memory>
#include <string>
#include <utility>

#include "fields/delivered_columns.hpp"

namespace shard {

namespace {

void prepare_fields(Slot& slot, const LoaderSetup& setup, const SlotMemory& memory) {
  auto offset = memory.fields_offsets.begin();
  for (const DeliveredField& field : setup.fields)
    for (std::size_t view = 0; view < field.views.size(); ++view) {
      const FieldView& of = field.views[view];
      SlotColumn column{field.name, view, of.delivered.dtype, {setup.options.most_rows()}, nullptr, nullptr};
      const std::vector<std::uint64_t> shape = of.shape(of.delivered.height, of.delivered.width);
      column.shape.insert(column.shape.end(), shape.begin(), shape.end());
      column.device = slot.images->data() + *offset++;
      slot.fields.push_back(std::move(column));
    }
}

void prepare_columns(Slot& slot, const LoaderSetup& setup, const SlotMemory& memory) {
  slot.columns_host = setup.device->allocate_pinned(memory.columns_bytes);
  slot.columns_device = setup.device->allocate_device(memory.columns_bytes);
  slot.columns_copy = {slot.columns_device->data(), slot.columns_host->data(), memory.columns_bytes};
  auto offset = memory.columns_offsets.begin();
  const auto place = [&](const std::string& name, DType dtype) {
    const std::uint64_t at = *offset++;
    return SlotColumn{name,
                      0,
                      dtype,
                      {setup.options.most_rows()},
                      slot.columns_host->data() + at,
                      slot.columns_device->data() + at};
  };
  for (const DeliveredColumn& column : delivered_columns(setup.dataset.info(), setup.options)) {
    SlotColumn view = place(column.name, column.dtype);
    view.view = column.view;
    view.shape.insert(view.shape.end(), column.shape.begin(), column.shape.end());
    slot.columns.push_back(std::move(view));
  }
  slot.ids = place("ids", DType::i64);
  slot.mask = place("mask", DType::boolean);
}

}  // namespace

void prepare_slot(Slot& slot, const LoaderSetup& setup, const SlotMemory& memory) {
  Device& device = *setup.device;
  slot.images = device.allocate_device(memory.images_bytes);
  slot.images_offsets = memory.images_offsets;
  if (memory.verdict_bytes > 0)
    slot.verdict = std::make_unique<Verdict>(setup.dataset, setup.forms, device, setup.options.most_rows());
  prepare_fields(slot, setup, memory);
  prepare_columns(slot, setup, memory);
}

}  // namespace shard
