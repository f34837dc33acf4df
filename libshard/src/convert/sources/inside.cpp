#include "convert/sources/inside.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/text/quote.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

fs::path real_of(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(path, error);
  if (error) throw Error(ErrorCode::io, fmt::format("cannot look at {}: {}", quoted(path), error.message()));
  return real.has_filename() ? real : real.parent_path();
}

}  // namespace

void refuse_inside(const fs::path& folder, const fs::path& of) {
  const fs::path real = real_of(folder);
  const fs::path real_data = real_of(of);
  for (fs::path at = real;; at = at.parent_path()) {
    if (at == real_data)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {} the data set {}: choose a folder outside", quoted(folder),
                              at == real ? "is" : "is inside", quoted(of)));
    if (at == at.parent_path()) return;
  }
}

}  // namespace shard::convert
