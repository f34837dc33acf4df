#include "shard/convert/inputs.hpp"

#include "convert/sources/input_file.hpp"
#include "convert/sources/scan.hpp"

namespace shard::convert {

Inputs::Inputs(const std::string& images)
    : list_(std::make_shared<const InputList>(scan({.images = images, .labelled = true}))) {}

std::uint64_t Inputs::size() const noexcept { return list_->inputs.size(); }
const std::filesystem::path& Inputs::root() const noexcept { return list_->root; }
const std::string& Inputs::path(std::uint64_t index) const noexcept { return list_->inputs[index].path; }

Inputs::Reader::Reader(const Inputs& inputs)
    : list_(inputs.list_), reader_(std::make_unique<InputReader>(*list_)) {}
Inputs::Reader::Reader(Reader&&) noexcept = default;
Inputs::Reader& Inputs::Reader::operator=(Reader&&) noexcept = default;
Inputs::Reader::~Reader() = default;

std::span<const std::byte> Inputs::Reader::read(std::uint64_t index) {
  return reader_->read(list_->inputs[index]);
}

}  // namespace shard::convert
