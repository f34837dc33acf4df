// Codec none: samples are stored, sent and transformed as they are.
#include "codec/stored_form.hpp"

namespace shard {

std::unique_ptr<const StoredForm> make_raw_form(const SampleSpec& recorded, std::optional<std::size_t> field,
                                                const LargestSample& largest) {
  return std::make_unique<StoredForm>(recorded, field, largest);
}

}  // namespace shard
