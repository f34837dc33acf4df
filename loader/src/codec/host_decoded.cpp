// Codec zstd, and data sets whose codecs differ: the host decodes frames on the way,
// so the device gets samples.
#include "codec/stored_form.hpp"

namespace shard {

namespace {

class HostDecodedForm final : public StoredForm {
 public:
  using StoredForm::StoredForm;
  bool decoded_by_host() const noexcept override { return true; }
};

}  // namespace

std::unique_ptr<const StoredForm> make_host_decoded_form(const StoredField& of) {
  return std::make_unique<HostDecodedForm>(of);
}

}  // namespace shard
