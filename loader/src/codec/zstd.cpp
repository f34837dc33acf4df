// Codec zstd: the host decompresses frames on the way, so the device gets samples.
#include "codec/stored_form.hpp"

namespace shard {

namespace {

class ZstdForm final : public StoredForm {
 public:
  using StoredForm::StoredForm;
  bool decoded_by_host() const noexcept override { return true; }
};

}  // namespace

std::unique_ptr<const StoredForm> make_zstd_form(const DatasetInfo& info) {
  return std::make_unique<ZstdForm>(info.spec);
}

}  // namespace shard
