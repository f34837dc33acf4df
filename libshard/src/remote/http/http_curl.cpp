// The calls of HttpClient, in a build with libcurl.
#include <algorithm>
#include <utility>

#include "base/system/cpu_count.hpp"
#include "remote/http/http_engine.hpp"

namespace shard {

std::size_t HttpClient::threads() {
  static const std::size_t count = std::clamp(std::size_t{cpu_count()} / 2, std::size_t{2}, kMostThreads);
  return count;
}

HttpClient::HttpClient() = default;

HttpClient::~HttpClient() {
  // A child after fork() has not got the threads: what belongs to them stays.
  for (const auto& place : engines_) {
    HttpEngine* const engine = place.load(std::memory_order_acquire);
    if (engine != nullptr && engine->of_this_process()) delete engine;
  }
}

HttpEngine& HttpClient::engine(std::size_t number) {
  std::atomic<HttpEngine*>& place = engines_[number];
  HttpEngine* current = place.load(std::memory_order_acquire);
  if (current != nullptr && current->of_this_process()) return *current;
  auto made = std::make_unique<HttpEngine>(stats_);
  if (place.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *current;  // another thread was faster
}

// The thread with the fewest requests; the first of them, whose connections exist.
std::size_t HttpClient::least_busy() const {
  std::size_t best = 0;
  std::size_t fewest = ~std::size_t{0};
  for (std::size_t i = 0; i < threads() && fewest != 0; ++i) {
    const HttpEngine* const engine = engines_[i].load(std::memory_order_acquire);
    const std::size_t requests = engine == nullptr ? 0 : engine->requests();
    if (requests < fewest) best = i;
    fewest = std::min(fewest, requests);
  }
  return best;
}

// The threads take the pieces in turn.
void HttpClient::run(HttpJob& job, const std::stop_token& stop) {
  job.left = job.pieces.size();
  if (job.left == 0) return;
  if (AwsKeys* const keys = job.object.access().keys.get()) keys->prepare();
  std::vector<HttpEngine*> engines;
  const std::size_t first = job.urgent ? least_busy() : turn_++;
  for (std::size_t i = 0; i < std::min(threads(), job.pieces.size()); ++i)
    engines.push_back(&engine((first + i) % threads()));
  for (std::size_t i = 0; i < engines.size(); ++i) engines[i]->submit(job, i, engines.size());
  const auto wake = [&] {
    for (HttpEngine* const engine : engines) engine->wake();
  };
  {
    const std::stop_callback cancel(stop, [&] {
      job.cancelled = true;
      wake();
    });
    std::unique_lock lock(job.mutex);
    while (job.left != 0) {
      job.over.wait(lock, [&] { return job.left == 0 || job.expired_keys != 0; });
      if (job.expired_keys == 0) continue;
      job.renew_keys(lock);
      wake();
    }
  }
  if (job.error) std::rethrow_exception(job.error);
}

std::vector<std::byte> HttpClient::read_all(HttpObject& object, std::uint64_t max_bytes,
                                            const std::stop_token& stop) {
  HttpJob job{object, HttpJob::Sink::document};
  job.max_bytes = max_bytes;
  job.urgent = true;
  job.pieces = {{0, 0}};
  run(job, stop);
  return std::move(job.document);
}

namespace {

std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces_of(std::uint64_t begin, std::uint64_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  for (std::uint64_t at = begin; at < begin + size; at += HttpClient::kPieceBytes)
    pieces.emplace_back(at, std::min(at + HttpClient::kPieceBytes, begin + size));
  return pieces;
}

}  // namespace

void HttpClient::read(HttpObject& object, std::uint64_t begin, std::span<std::byte> out,
                      const std::stop_token& stop) {
  HttpJob job{object, HttpJob::Sink::memory};
  job.begin = begin;
  job.memory = out.data();
  job.urgent = true;
  job.pieces = pieces_of(begin, out.size());
  run(job, stop);
}

void HttpClient::copy_to(HttpObject& object, std::uint64_t begin, std::uint64_t size_bytes, int fd,
                         std::uint64_t offset, const std::stop_token& stop, const Arrived& arrived) {
  // One job has so many pieces, however many bytes are claimed.
  constexpr std::uint64_t kJobBytes = 1024 * kPieceBytes;
  for (std::uint64_t at = 0; at < size_bytes; at += kJobBytes) {
    HttpJob job{object, HttpJob::Sink::file};
    job.arrived = arrived;
    job.path = object.name();
    job.begin = begin + at;
    job.fd = fd;
    job.offset = offset + at;
    job.pieces = pieces_of(begin + at, std::min(kJobBytes, size_bytes - at));
    run(job, stop);
  }
}

}  // namespace shard
