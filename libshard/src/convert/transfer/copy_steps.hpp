// The two ways of a copy.
#pragma once

#include <memory>
#include <string>

#include "shard/convert/copy.hpp"

namespace shard::convert {

std::unique_ptr<Copy> copy_to_folder(const std::string& from, const std::string& to);
std::unique_ptr<Copy> copy_to_store(const std::string& from, const std::string& to);

}  // namespace shard::convert
