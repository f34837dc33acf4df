// Members of archives, copied from where the archive is mapped: what reaches the device is the member,
// wherever ranges and registrations end.
#include "transport/registered_files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "setup/loader_options.hpp"
#include "shard/convert/source.hpp"
#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPage = 4096;

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

class RegisteredFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path golden = fs::path(SHARD_TEST_DATA) / "golden" / "images" / "jpeg_420_33x20.jpg";
    for (int i = 0; i < kFiles; ++i) {
      fs::create_directories(dir_.path() / "images");
      fs::copy_file(golden, dir_.path() / "images" / (std::to_string(10 + i) + ".jpg"));
    }
    const std::string folder = dir_.path().string();
    ASSERT_EQ(std::system(("tar -cf '" + folder + "/a.tar' -C '" + folder + "/images' .").c_str()), 0);
    wanted_ = bytes_of(golden);
    convert::Options options;
    options.images = folder + "/a.tar";
    options.preprocess.free_size.emplace();
    options.preprocess.dtype = DType::u8;
    options.preprocess.layout = Layout::nhwc;
    options.preprocess.normalization = {};
    data_.emplace(for_device(convert::open_source(options), device_->info()));
    loader_ = check_loader_options({}, *data_, device_->info());
    context_.dataset = &*data_;
    context_.device = device_;
    context_.options = &loader_;
    // All files in one batch.
    target_.resize(kFiles * room());
    for (std::uint32_t i = 0; i < kFiles; ++i) {
      FetchItem item;
      item.sample = i;
      item.at = data_->locate(i);
      item.target = target_.data() + i * room();
      item.is_file = true;
      slot_.fetch.push_back(item);
    }
  }
  std::uint64_t room() const { return wanted_.size() + 100; }
  // Until all rows are in place: what the copies make.
  RegisteredFiles::Rows all_rows(RegisteredFiles& files) {
    RegisteredFiles::Rows rows;
    EXPECT_TRUE(comes_true([&] {
      files.release(rows, Event(), nullptr);
      files.begin(slot_, rows);
      return std::count(rows.in_place.begin(), rows.in_place.end(), 1) == kFiles;
    }));
    return rows;
  }

  static constexpr int kFiles = 40;
  TempDir dir_;
  std::shared_ptr<LimitedDevice> device_ = make_gpu_like_device(1);
  std::vector<std::byte> wanted_;
  std::optional<Dataset> data_;
  LoaderOptions loader_;
  TransportContext context_;
  Slot slot_;
  std::vector<std::byte> target_;
};

TEST_F(RegisteredFilesTest, MembersReachTheDeviceWhole) {
  device_->set_piece_bytes(kPage);
  for (const std::uint64_t range : {kPage, 3 * kPage, RegisteredFiles::kRangeBytes}) {
    std::fill(target_.begin(), target_.end(), std::byte{0xEE});
    RegisteredFiles files(context_, range);
    RegisteredFiles::Rows rows = all_rows(files);
    EXPECT_GE(files.bytes(), kFiles * wanted_.size());
    if (range == RegisteredFiles::kRangeBytes) {
      EXPECT_EQ(files.bytes(), fs::file_size(dir_.path() / "a.tar"));
    }
    EXPECT_EQ(rows.files.size(), 1U);
    EXPECT_GE(rows.copies.size(), kFiles + (kFiles * wanted_.size()) / kPage);
    for (const CopyItem& copy : rows.copies) {
      for (std::uint64_t i : {std::uint64_t{0}, copy.size_bytes - 1})
        EXPECT_TRUE(device_->is_registered(copy.source + i));
      std::memcpy(copy.target, copy.source, copy.size_bytes);
    }
    for (int i = 0; i < kFiles; ++i) {
      const std::byte* const at = target_.data() + i * room();
      EXPECT_TRUE(std::equal(wanted_.begin(), wanted_.end(), at)) << i << ", ranges of " << range;
      EXPECT_EQ(at[wanted_.size()], std::byte{0xEE}) << i;
    }
    EXPECT_NO_THROW(RegisteredFiles::check(rows));
    files.release(rows, Event(), nullptr);
  }
}

// The first batch waits for nothing, and rows whose ranges are not all registered are not in place.
TEST_F(RegisteredFilesTest, OnlyWhatIsRegisteredIsInPlace) {
  loader_.memory.registered_bytes = 2 * kPage;
  RegisteredFiles files(context_, kPage);
  RegisteredFiles::Rows rows;
  files.begin(slot_, rows);
  EXPECT_TRUE(rows.in_place.empty());
  files.begin(slot_, rows);
  EXPECT_TRUE(comes_true([&] { return files.bytes() == 2 * kPage; }));
  files.release(rows, Event(), nullptr);
  files.begin(slot_, rows);
  const auto in_place = std::count(rows.in_place.begin(), rows.in_place.end(), 1);
  EXPECT_GT(in_place, 0);
  EXPECT_LE(in_place, static_cast<long>(2 * kPage / wanted_.size()));
  for (const CopyItem& copy : rows.copies) EXPECT_TRUE(device_->is_registered(copy.source));
  EXPECT_NE(files.remark().find("may be registered"), std::string::npos) << files.remark();
  files.release(rows, Event(), nullptr);
}

// A selection of few members does not bring in whole archives.
TEST_F(RegisteredFilesTest, OnlyWhatBatchesNeedIsRegistered) {
  slot_.fetch.resize(1);
  RegisteredFiles files(context_, kPage);
  RegisteredFiles::Rows rows;
  const auto next = [&] {
    files.release(rows, Event(), nullptr);
    files.begin(slot_, rows);
    return std::count(rows.in_place.begin(), rows.in_place.end(), 1) == 1;
  };
  ASSERT_TRUE(comes_true(next));
  const std::uint64_t of_one = files.bytes();
  EXPECT_LE(of_one, 2 * kPage);
  for (int batch = 0; batch < 100; ++batch) next();
  EXPECT_EQ(files.bytes(), of_one);
  files.release(rows, Event(), nullptr);
}

// In every order: each epoch needs them again, and registering others in their place takes longer than
// reading those.
TEST_F(RegisteredFilesTest, WhatIsRegisteredStays) {
  const std::vector<FetchItem> all = slot_.fetch;
  loader_.memory.registered_bytes = 2 * kPage;
  for (const OrderMode order : {OrderMode::shuffle, OrderMode::windowed, OrderMode::sequential}) {
    loader_.order = order;
    RegisteredFiles files(context_, kPage);
    RegisteredFiles::Rows rows;
    const auto in_place = [&](std::size_t row) {
      slot_.fetch.assign(1, all[row]);
      files.release(rows, Event(), nullptr);
      files.begin(slot_, rows);
      return std::count(rows.in_place.begin(), rows.in_place.end(), 1) == 1;
    };
    ASSERT_TRUE(comes_true([&] { return in_place(0); }));
    for (int batch = 0; batch < 100; ++batch) {  // time for a registration in its place, if there was one
      in_place(39);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(in_place(39));
    EXPECT_TRUE(in_place(0));
    EXPECT_LE(files.bytes(), 2 * kPage);
    files.release(rows, Event(), nullptr);
  }
}

TEST_F(RegisteredFilesTest, ADeviceThatRefusesIsRemarked) {
  device_->refuse_from(DeviceCall::registration, 1, ErrorCode::unsupported);
  RegisteredFiles files(context_);
  RegisteredFiles::Rows rows;
  files.begin(slot_, rows);
  files.begin(slot_, rows);
  EXPECT_TRUE(comes_true([&] { return !files.remark().empty(); }));
  EXPECT_NE(files.remark().find("1 of 1 parts of archives go through staging"), std::string::npos)
      << files.remark();
  files.begin(slot_, rows);
  EXPECT_EQ(std::count(rows.in_place.begin(), rows.in_place.end(), 1), 0);
}

}  // namespace
}  // namespace shard::testing
