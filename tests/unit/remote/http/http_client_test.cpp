// How requests of HttpClient wait for their turn, and how long they have patience.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_handle.hpp"
#include "remote/http/http_client.hpp"
#include "shard/remote.hpp"
#include "support/deadline.hpp"
#include "support/expect_error.hpp"
#include "support/tiny_server.hpp"

namespace {
std::atomic<bool> no_more_requests{false};
}

// In place of libcurl's. CURLM_OUT_OF_MEMORY is 3.
extern "C" int curl_multi_add_handle(void* multi, void* easy) {
  using Function = int(void*, void*);
  static auto* const real = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "curl_multi_add_handle"));
  return no_more_requests ? 3 : real(multi, easy);
}

namespace shard {
namespace {

using namespace std::chrono_literals;
using testing::comes_true;
using testing::TinyServer;

constexpr std::uint64_t kRead = 16'000;
// What a slow line brings in kTurn: far more than what counts as a stall, also on a machine that is busy.
constexpr std::uint64_t kSlowBytes = 4000;
constexpr auto kTurn = 100ms;
constexpr std::uint64_t kSlowRead = 600 * kSlowBytes;  // a minute

struct Requests : ::testing::Test {
  void SetUp() override { make("1"); }
  void make(const char* patience) {
    if (remote_library() == "none") GTEST_SKIP() << "this build has no libcurl";
    ::setenv("SHARD_HTTP_PATIENCE", patience, 1);
    client = std::make_unique<HttpClient>();
  }
  void TearDown() override {
    client.reset();
    ::unsetenv("SHARD_HTTP_PATIENCE");
  }

  static HttpObject object(const TinyServer& server, const std::string& path, std::uint64_t size = 0) {
    return {server.url() + path, "the object " + path, std::make_shared<const HttpAccess>(), size};
  }
  void read(const TinyServer& server, const std::string& path, std::uint64_t size = kRead) const {
    HttpObject from = object(server, path, size);
    std::vector<std::byte> bytes(size);
    client->read(from, 0, bytes);
    EXPECT_EQ(bytes, std::vector<std::byte>(size, std::byte{'x'}));
  }
  static std::size_t places() { return HttpClient::threads() * HttpClient::requests_of_thread(); }

  std::unique_ptr<HttpClient> client;
};

TEST_F(Requests, ThatAreWaitedForDoNotQueueBehindThoseOfCopies) {
  constexpr std::uint64_t kSize = 4 * HttpClient::kRequests * HttpClient::kPieceBytes;
  std::atomic<std::size_t> held{0};
  const TinyServer server([&](const TinyServer::Request& request, const TinyServer::Send& send) {
    const bool bulk = request.path == "/bulk";
    send(TinyServer::partial(request, bulk ? kSize : kRead));
    if (!bulk) return static_cast<void>(send(std::string(kRead, 'x')));
    ++held;
    while (send(std::string(kSlowBytes, 'x'))) std::this_thread::sleep_for(kTurn);
  });
  const UniqueFd nothing(::memfd_create("nothing", MFD_CLOEXEC));
  std::stop_source stop;
  std::thread copy([&] {
    HttpObject bulk = object(server, "/bulk", kSize);
    EXPECT_SHARD_ERROR(client->copy_to(bulk, 0, kSize, nothing.get(), 0, stop.get_token()),
                       ErrorCode::cancelled, "cancelled");
  });
  EXPECT_TRUE(comes_true([&] { return held >= places(); }));
  auto done = std::async(std::launch::async, [&] { read(server, "/small"); });
  EXPECT_EQ(done.wait_for(20s), std::future_status::ready);
  stop.request_stop();
  copy.join();
}

TEST_F(Requests, HavePatienceFromTheFirstAttemptOnHoweverLongTheyHaveWaited) {
  make("2");
  std::atomic<std::size_t> slow{0};
  std::atomic<int> released{0};  // slow ones that are to end
  std::atomic<int> refused{0};
  const TinyServer server([&](const TinyServer::Request& request, const TinyServer::Send& send) {
    if (request.path == "/last" && refused++ < 2)
      return static_cast<void>(send(TinyServer::whole("503 Slow Down", "")));
    std::uint64_t left = request.end - request.begin;
    send(TinyServer::partial(request, request.path == "/slow" ? kSlowRead : kRead));
    if (request.path == "/slow") ++slow;
    for (; request.path == "/slow" && left > kSlowBytes && send(std::string(kSlowBytes, 'x'));
         left -= kSlowBytes) {
      std::this_thread::sleep_for(kTurn);
      if (released > 0 && released-- > 0) break;
    }
    send(std::string(left, 'x'));
  });
  std::vector<std::thread> first;
  for (std::size_t i = 0; i < places(); ++i) {  // one after the other: so they take all places of all threads
    first.emplace_back([&] { read(server, "/slow", kSlowRead); });
    EXPECT_TRUE(comes_true([&] { return slow >= i + 1; }));
  }
  auto last = std::async(std::launch::async, [&] { read(server, "/last"); });
  EXPECT_EQ(last.wait_for(2500ms), std::future_status::timeout);
  EXPECT_EQ(refused, 0) << "it should wait for a place";
  while (last.wait_for(kTurn) != std::future_status::ready) ++released;  // of any thread
  EXPECT_NO_THROW(last.get());
  EXPECT_EQ(refused, 3);
  released = 10'000;
  for (std::thread& thread : first) thread.join();
}

TEST_F(Requests, HavePatienceAgainWithEachNewByte) {
  std::atomic<int> attempts{0};
  const TinyServer server([&](const TinyServer::Request& request, const TinyServer::Send& send) {
    ++attempts;
    send(TinyServer::partial(request, kRead));
    send(std::string(std::min<std::uint64_t>(kRead / 10, request.end - request.begin), 'x'));  // and breaks
  });
  const auto begin = std::chrono::steady_clock::now();
  read(server, "/a");
  EXPECT_EQ(attempts, 10);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 1s) << "else this test shows nothing";
}

TEST_F(Requests, EndWhereNoByteIsNew) {
  const auto fails = [](const auto& call, ErrorCode code, const char* words) {
    auto done = std::async(std::launch::async, [&] { EXPECT_SHARD_ERROR(call(), code, words); });
    if (done.wait_for(30s) == std::future_status::ready) return;
    ADD_FAILURE() << "it goes on for ever";
    std::abort();  // nothing ends it
  };
  const TinyServer server([&](const TinyServer::Request& request, const TinyServer::Send& send) {
    if (request.path == "/nothing") {  // an answer that is complete, and too short
      std::string head = TinyServer::partial(request, kRead);
      const std::string length = "Content-Length: ";
      const std::size_t at = head.find(length) + length.size();
      send(head.replace(at, head.find('\r', at) - at, "0"));
    } else if (request.path == "/cut") {  // always after the same bytes
      send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n" +
           std::string(100'000, 'x'));
    } else {  // S3 may say this
      send(TinyServer::whole("200 OK", "<Error><Code>InternalError</Code></Error>"));
    }
  });
  HttpObject nothing = object(server, "/nothing"), cut = object(server, "/cut"),
             error = object(server, "/error");
  std::vector<std::byte> bytes(kRead);
  fails([&] { client->read(nothing, 0, bytes); }, ErrorCode::io, "bytes are missing");
  fails([&] { static_cast<void>(client->read_all(cut, 1 << 20)); }, ErrorCode::io, "cannot read");
  fails([&] { static_cast<void>(client->call(error, {"POST"})); }, ErrorCode::io, "InternalError");
}

TEST_F(Requests, ThatLibcurlDoesNotTakeAreAnError) {
  const TinyServer server([](const TinyServer::Request& request, const TinyServer::Send& send) {
    send(TinyServer::partial(request, kRead));
    send(std::string(kRead, 'x'));
  });
  no_more_requests = true;
  EXPECT_SHARD_ERROR(read(server, "/a"), ErrorCode::resource, "cannot start a request for");
  no_more_requests = false;
  read(server, "/a");
}

}  // namespace
}  // namespace shard
