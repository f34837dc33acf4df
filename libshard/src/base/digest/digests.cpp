#include "base/digest/digests.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mbedtls/base64.h>
#include <mbedtls/md.h>

#include "shard/error.hpp"

namespace shard {
namespace {

void check_digest(int status) {
  if (status != 0) throw Error(ErrorCode::resource, fmt::format("mbedTLS makes no digest: error {}", status));
}

const unsigned char* input_of(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

std::string hex_of(std::span<const std::byte> bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

template <std::size_t size_bytes>
std::array<std::byte, size_bytes> digest_of(mbedtls_md_type_t type, std::span<const std::byte> bytes) {
  std::array<std::byte, size_bytes> digest{};
  check_digest(mbedtls_md(mbedtls_md_info_from_type(type), input_of(bytes), bytes.size(),
                          reinterpret_cast<unsigned char*>(digest.data())));
  return digest;
}

}  // namespace

Md5Digest md5(std::span<const std::byte> bytes) { return digest_of<16>(MBEDTLS_MD_MD5, bytes); }

struct Md5Stream::State {
  mbedtls_md_context_t context;
  State() { mbedtls_md_init(&context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { mbedtls_md_free(&context); }
};

Md5Stream::Md5Stream() : state_(std::make_unique<State>()) {
  check_digest(mbedtls_md_setup(&state_->context, mbedtls_md_info_from_type(MBEDTLS_MD_MD5), 0));
  check_digest(mbedtls_md_starts(&state_->context));
}

Md5Stream::~Md5Stream() = default;

void Md5Stream::update(std::span<const std::byte> bytes) {
  check_digest(mbedtls_md_update(&state_->context, input_of(bytes), bytes.size()));
}

Md5Digest Md5Stream::digest() {
  Md5Digest digest{};
  check_digest(mbedtls_md_finish(&state_->context, reinterpret_cast<unsigned char*>(digest.data())));
  return digest;
}

std::string to_hex(const Md5Digest& digest) { return hex_of(digest); }

std::string to_base64(const Md5Digest& digest) {
  std::array<unsigned char, 32> text{};
  std::size_t size = 0;
  check_digest(mbedtls_base64_encode(text.data(), text.size(), &size, input_of(digest), digest.size()));
  return {text.begin(), text.begin() + size};
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  return hex_of(digest_of<32>(MBEDTLS_MD_SHA256, bytes));
}

}  // namespace shard
