// Codec none: samples are stored, sent and transformed as they are.
#include "codec/stored_form.hpp"

namespace shard {

std::unique_ptr<const StoredForm> make_raw_form(const StoredField& of) {
  return std::make_unique<StoredForm>(of);
}

}  // namespace shard
