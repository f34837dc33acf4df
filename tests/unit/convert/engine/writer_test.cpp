// Data sets of images that a program hands over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/writer.hpp"
#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/idle_threads.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<std::byte> file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class WriterTest : public ::testing::Test {
 protected:
  WriterTest() {
    for (int i = 0; i < 10; ++i) {
      const bool bad = i == 5;
      const std::string key = std::string(i < 5 ? "ant" : "bee") + "/" + std::to_string(i) + ".jpg";
      fs::create_directories((images_ / key).parent_path());
      fs::copy_file(fs::path(SHARD_TEST_DATA) / "golden" /
                        (bad          ? "refused/corrupt-jpeg-no-end.jpg"
                         : i % 2 == 0 ? "images/jpeg_420_33x20.jpg"
                                      : "images/jpeg_orientation_6.jpg"),
                    images_ / key);
      keys_.push_back(key);
    }
  }
  template <class T>
  T with_options(const fs::path& out) const {
    T options;
    options.images = images_.string();
    options.out = out;
    options.preprocess.resize_short = 8;
    options.preprocess.crop = image::Size{8, 8};
    options.samples_per_shard = 3;
    options.jobs = 2;
    return options;
  }
  WriterOptions options() const {
    auto options = with_options<WriterOptions>(out_);
    options.classes = {"ant", "bee"};
    options.fields = {{"labels", DType::i64, {}}};
    return options;
  }
  WriterRow row(std::size_t i) const {
    WriterRow row(keys_[i], file_bytes(images_ / keys_[i]));
    row.set_label(i < 5 ? 0 : 1);
    return row;
  }
  // The shards and tables of the data set that run() makes, and of `out_`.
  void expect_as_from_files() const {
    const fs::path files = dir_.path() / "files";
    run(with_options<Options>(files));
    std::set<std::string> names;
    for (const fs::path& folder : {files, out_})
      for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    for (const std::string& name : names) {
      if (name == kDatasetFile) continue;
      EXPECT_EQ(file_bytes(files / name), file_bytes(out_ / name)) << name;
    }
    DatasetInfo info = Dataset::open(out_).info();
    const DatasetInfo expected = Dataset::open(files).info();
    EXPECT_NE(info.source_digest, expected.source_digest);
    info.source_digest = expected.source_digest;
    EXPECT_EQ(serialize_dataset(info), serialize_dataset(expected));
  }

  testing::TempDir dir_;
  fs::path images_ = dir_.path() / "images";
  fs::path out_ = dir_.path() / "out";
  std::vector<std::string> keys_;
};

TEST_F(WriterTest, MakesTheBytesThatAConversionOfTheSameFilesMakes) {
  for (const char* codec : {"none", "zstd:1", "packed", "jpeg:80"}) {
    WriterOptions with = options();
    with.codec = codec_spec_from_string(codec);
    with.out = dir_.path() / codec;
    Options files = with_options<Options>(dir_.path() / (std::string(codec) + " files"));
    files.codec = with.codec;
    for (Options* const each : {static_cast<Options*>(&with), &files}) {
      each->preprocess.dtype = DType::u8;
      each->preprocess.layout = Layout::nhwc;
    }
    run(files);
    Writer writer(with);
    for (std::size_t i = 0; i < keys_.size(); ++i) EXPECT_TRUE(writer.add(row(i)));
    EXPECT_EQ(writer.size(), 10U);
    const Summary summary = writer.close();
    EXPECT_TRUE(summary.complete);
    EXPECT_EQ(summary.samples, 9U);
    EXPECT_EQ(summary.rejects, 1U);
    EXPECT_EQ(summary.converted_shards, 4U);
    EXPECT_EQ(writer.close().samples, 9U);
    for (int i = 0; i < 4; ++i) {
      const std::string name = "shard-0000" + std::to_string(i) + ".safetensors";
      EXPECT_EQ(file_bytes(with.out / name), file_bytes(files.out / name)) << codec << " " << name;
    }
  }
}

// What is stored of pixels is what libjpeg-turbo decodes of their JPEG; the digest is of that.
TEST_F(WriterTest, EncodesImagesAndFurtherImagesAsJpegs) {
  WriterOptions with = options();
  with.preprocess.dtype = DType::u8;
  with.preprocess.layout = Layout::nhwc;
  with.codec = codec_spec_from_string("jpeg:90");
  with.image_fields = {
      {"left", FieldRole::image, {DType::u8, Layout::nhwc, 1, 0, 0}, {}, {CodecSpec::Kind::jpeg}}};
  {
    Writer writer(with);
    for (std::size_t i = 0; i < 5; ++i) {
      WriterRow one = row(i);
      one.images = {std::vector<std::byte>(20 * (7 + i), std::byte{77})};
      one.image_sizes = {{static_cast<std::uint32_t>(7 + i), 20}};
      writer.add(std::move(one));
    }
    writer.close();
  }
  const Dataset made = Dataset::open(out_);
  EXPECT_EQ(to_string(made.info().codec), "jpeg:90");
  EXPECT_EQ(made.info().fields, with.image_fields);
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < made.size(); ++i) {
    const Dataset::Location at = made.locate(i);
    const ShardReader& shard = made.shard(at.shard);
    EXPECT_NO_THROW(shard.verify_sample(at.sample, scratch));
    std::vector<std::byte> left(20 * (7 + i));
    shard.images(0).read(at.sample, left);
    EXPECT_EQ(left, std::vector<std::byte>(left.size(), std::byte{77}));  // a block of one value is exact
  }
  WriterOptions planar = with_options<WriterOptions>(dir_.path() / "planar");
  planar.codec = with.codec;
  planar.fields = with.fields;
  planar.preprocess.dtype = DType::u8;
  planar.preprocess.layout = Layout::nchw;
  EXPECT_SHARD_ERROR(Writer{planar}, ErrorCode::invalid_argument,
                     "codec jpeg holds images of u8 nhwc with 1 or 3 channels, not u8 nchw");
}

TEST_F(WriterTest, GoesOnAfterTheLastWholeShard) {
  {
    Writer writer(options());
    for (std::size_t i = 0; i < 8; ++i) writer.add(row(i));
    while (!fs::exists(out_ / ".shard-00001.done.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(folder_state(out_), FolderState::incomplete);
  EXPECT_SHARD_ERROR(Writer{options()}, ErrorCode::invalid_argument, "`resume`");
  WriterOptions resumed = options();
  resumed.resume = true;
  resumed.preprocess.crop = image::Size{4, 4};
  EXPECT_SHARD_ERROR(Writer{resumed}, ErrorCode::invalid_argument, "crop");
  resumed = options();
  resumed.resume = true;
  resumed.classes.push_back("cow");
  EXPECT_SHARD_ERROR(Writer{resumed}, ErrorCode::invalid_argument, "classes");
  resumed = options();
  resumed.resume = true;
  resumed.fields.clear();
  {
    Writer writer(resumed);
    EXPECT_TRUE(writer.is_declared());
    EXPECT_EQ(writer.keys_done(), std::vector<std::string>(keys_.begin(), keys_.begin() + 6));
    EXPECT_TRUE(writer.is_done(keys_[5]));  // a reject
    EXPECT_FALSE(writer.is_done(keys_[6]));
    for (std::size_t i = 0; i < keys_.size(); ++i) EXPECT_EQ(writer.add(row(i)), i >= 6);
    EXPECT_EQ(writer.close().samples, 9U);
  }
  expect_as_from_files();
  EXPECT_SHARD_ERROR(Writer{options()}, ErrorCode::invalid_argument, "finished data set");
  Writer again(resumed);
  EXPECT_FALSE(again.add(row(9)));
  EXPECT_EQ(again.keys_done(), keys_);
  WriterRow more = row(0);
  more.key = "more";
  EXPECT_SHARD_ERROR(again.add(more), ErrorCode::invalid_argument, "is finished");
  EXPECT_TRUE(again.close().was_complete);
}

TEST_F(WriterTest, FinishesWithoutARowIfAllWereStoredBefore) {
  {
    Writer writer(options());
    for (std::size_t i = 0; i < 9; ++i) writer.add(row(i));
    while (!fs::exists(out_ / ".shard-00002.done.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  WriterOptions resumed = options();
  resumed.resume = true;
  resumed.fields.clear();
  Writer writer(resumed);
  EXPECT_EQ(writer.close().samples, 8U);
}

TEST_F(WriterTest, RefusesRowsThatDoNotFit) {
  Writer writer(options());
  EXPECT_SHARD_ERROR(writer.close(), ErrorCode::invalid_argument, "nothing was added");
  writer.add(row(0));
  EXPECT_SHARD_ERROR(writer.add(row(0)), ErrorCode::invalid_argument, "was added before");
  WriterRow wrong = row(1);
  wrong.key.clear();
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "empty key");
  wrong = row(1);
  wrong.set_label(2);
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "label 2, but there are 2 classes");
  wrong = row(1);
  wrong.columns.emplace_back();
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "2 columns, but the data set has 1");
  wrong = row(1);
  wrong.columns[0].pop_back();
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "7 bytes");
  wrong = row(1);
  wrong.pixels = Pixels{4, 4, 2};
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "4x4 pixels");
  wrong = row(1);
  wrong.file = images_.string() + "/" + keys_[1] + std::string("\0.jpg", 5);
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "\\x00.jpg\" has a zero byte");
  EXPECT_SHARD_ERROR(writer.declare({{"labels", DType::f32, {2}}}), ErrorCode::invalid_argument,
                     "other columns");
  EXPECT_SHARD_ERROR(Writer{options()}, ErrorCode::resource, "is at work there");
  writer.add(row(1));  // and goes on
  EXPECT_EQ(writer.close().samples, 2U);
  EXPECT_SHARD_ERROR(writer.add(row(2)), ErrorCode::invalid_argument, "closed");
}

TEST_F(WriterTest, StopsAtABadImageIfAsked) {
  WriterOptions strict = options();
  strict.on_error = OnError::fail;
  Writer writer(strict);
  EXPECT_SHARD_ERROR(
      {
        for (std::size_t i = 0; i < keys_.size(); ++i) writer.add(row(i));
        writer.close();
      },
      ErrorCode::corrupt, "bee/5.jpg");
  EXPECT_SHARD_ERROR(writer.close(), ErrorCode::corrupt, "bee/5.jpg");
  EXPECT_EQ(folder_state(out_), FolderState::incomplete);
}

TEST_F(WriterTest, TakesPixelsFilesAndColumnsOfEveryKind) {
  WriterOptions with = options();
  with.classes.clear();
  with.fields = {{"labels", DType::i64, {}},
                 {"pose", DType::f64, {2}},
                 {"boxes", DType::f32, {4}, ColumnKind::ragged},
                 {"caption", DType::u8, {}, ColumnKind::text}};
  Writer writer(with);
  const std::string text = "an ant";
  for (std::uint32_t channels : {1U, 3U, 4U}) {
    WriterRow row;
    row.key = std::to_string(channels);
    row.pixels = Pixels{10, 12, channels};
    row.image.assign(std::size_t{10} * 12 * channels,
                     std::byte{channels == 4 ? std::uint8_t{3} : std::uint8_t{7}});
    row.set_label(channels);
    row.columns.resize(4);
    row.columns[1].resize(16);
    row.columns[2].resize(16 * channels);
    const auto bytes = std::as_bytes(std::span(text));
    row.columns[3].assign(bytes.begin(), bytes.end());
    writer.add(std::move(row));
  }
  WriterRow from_file;
  from_file.key = "file";
  from_file.file = images_ / keys_[0];
  from_file.columns = {std::vector<std::byte>(8), std::vector<std::byte>(16), {}, {}};
  writer.add(from_file);
  WriterRow missing = from_file;
  missing.key = "missing";
  missing.file = images_ / "none.jpg";
  writer.add(missing);
  const Summary summary = writer.close();
  EXPECT_EQ(summary.samples, 4U);
  EXPECT_EQ(summary.rejects, 1U);
  const Dataset data = Dataset::open(out_);
  std::vector<std::byte> rows;
  data.read_column(2, "boxes", rows);
  EXPECT_EQ(rows.size(), 64U);
  EXPECT_EQ(data.text(1, "caption"), text);
  EXPECT_EQ(data.text(3, "caption"), "");
  std::vector<std::byte> gray(data.info().spec.size_bytes());
  std::vector<std::byte> colour(gray.size());
  data.read(0, gray);
  data.read(1, colour);
  EXPECT_EQ(gray, colour);
}

TEST_F(WriterTest, SeveralWritersAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([this, t] {
      WriterOptions mine = options();
      mine.out = dir_.path() / std::to_string(t);
      Writer writer(mine);
      for (std::size_t i = 0; i < keys_.size(); ++i) writer.add(row(i));
      EXPECT_EQ(writer.close().samples, 9U);
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < 3; ++t)
    EXPECT_EQ(file_bytes(dir_.path() / "0" / kDatasetFile),
              file_bytes(dir_.path() / std::to_string(t) / kDatasetFile));
}

TEST_F(WriterTest, DoesNotContinueAConversionOfFiles) {
  Options files = with_options<Options>(out_);
  std::atomic<bool> cancel{true};
  EXPECT_THROW(run(files, {nullptr, &cancel}), Error);
  ASSERT_EQ(folder_state(out_), FolderState::incomplete);
  WriterOptions resumed = options();
  resumed.resume = true;
  EXPECT_SHARD_ERROR(Writer{resumed}, ErrorCode::invalid_argument, "unfinished conversion of files");
}

// A call that waits in vain would wait for ever: each test has its own end.
TEST_F(WriterTest, RowsAreStoredOrRefusedWhileAnotherThreadCloses) {
  for (int round = 0; round < 20; ++round) {
    WriterOptions with = options();
    with.out = dir_.path() / std::to_string(round);
    with.samples_per_shard = 5;
    Writer writer(with);
    WriterRow first = row(0);
    first.key = "first";
    writer.add(std::move(first));
    std::atomic<std::uint64_t> added{1};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        try {
          for (int i = 0;; ++i) {
            WriterRow next = row(0);
            next.key = std::to_string(t) + " " + std::to_string(i);
            writer.add(std::move(next));
            ++added;
          }
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
          EXPECT_THAT(error.what(), HasSubstr("the writer is closed"));
        }
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    const Summary summary = writer.close();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(summary.samples, added.load());
    EXPECT_EQ(Dataset::open(with.out).info().samples(), added.load());
    EXPECT_EQ(writer.size(), added.load());
    EXPECT_SHARD_ERROR(writer.add(row(1)), ErrorCode::invalid_argument, "comes too late");
  }
}

TEST_F(WriterTest, TwoThreadsThatCloseGetTheSame) {
  Writer writer(options());
  for (std::size_t i = 0; i < keys_.size(); ++i) writer.add(row(i));
  std::vector<Summary> found(4);
  std::vector<std::thread> threads;
  for (Summary& summary : found) threads.emplace_back([&] { summary = writer.close(); });
  for (std::thread& thread : threads) thread.join();
  for (const Summary& summary : found) EXPECT_EQ(summary.samples, 9U);
}

TEST_F(WriterTest, LetsGoOfTheFolderWhenItIsClosed) {
  Writer writer(options());
  writer.add(row(0));
  writer.close();
  WriterOptions again = options();
  again.overwrite = true;
  Writer next(again);
}

TEST_F(WriterTest, IsDestroyedWhileAThreadWaitsInIt) {
  for (int round = 0; round < 10; ++round) {
    WriterOptions with = options();
    with.out = dir_.path() / std::to_string(round);
    with.jobs = 1;
    auto writer = std::make_unique<Writer>(with);
    std::atomic<bool> full{false};
    std::thread thread([&full, &to = *writer, this] {
      try {
        for (int i = 0;; ++i) {
          WriterRow next = row(0);
          next.key = std::to_string(i);
          if (i == 40) full = true;
          to.add(std::move(next));
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cancelled);
      }
    });
    while (!full) std::this_thread::yield();
    writer->cancel();
    thread.join();
    writer.reset();
    EXPECT_EQ(folder_state(with.out), FolderState::incomplete);
  }
}

TEST_F(WriterTest, RefusesToWorkInTheChildOfAFork) {
  Writer writer(options());
  writer.add(row(0));
  ASSERT_TRUE(wait_for_idle_threads());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // it must not hang
    int wrong = 0;
    const auto refused = [&](const auto& work) {
      try {
        work();
        ++wrong;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported ||
            std::string(error.what()).find("of which this is a fork") == std::string::npos)
          ++wrong;
      }
    };
    refused([&] { writer.add(row(1)); });
    refused([&] { writer.close(); });
    refused([&] { static_cast<void>(writer.size()); });
    refused([&] { static_cast<void>(writer.keys_done()); });
    refused([&] { static_cast<void>(writer.is_done("a")); });
    refused([&] { static_cast<void>(writer.columns()); });
    writer.cancel();
    { const Writer moved(std::move(writer)); }  // destroyed
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_SHARD_ERROR(Writer{options()}, ErrorCode::resource, "is at work there");  // the lock is still held
  writer.add(row(1));
  EXPECT_EQ(writer.close().samples, 2U);
}

TEST_F(WriterTest, TheDefaultFitsSmallSamplesAndWideColumns) {
  WriterOptions with = options();
  with.classes.clear();
  with.samples_per_shard = 0;
  with.tensor = tensor_spec(DType::f32, std::vector<std::uint64_t>{2048});
  with.fields = {{"labels", DType::i64, {}}, {"embedding", DType::f32, {2048}}};
  EXPECT_EQ(with.per_shard(with.tensor->size_bytes()), 131'072U);  // 1 GiB of samples, and of columns
  EXPECT_EQ(with.rows_per_shard(with.fields), 32'668U);
  WriterOptions small = with;
  small.out = dir_.path() / "small";
  small.tensor = tensor_spec(DType::u8, std::vector<std::uint64_t>{1});
  small.fields = {{"labels", DType::i64, {}}};
  EXPECT_EQ(small.rows_per_shard(small.fields), 4'194'304U);
  for (const WriterOptions* one : {&with, &small}) {
    Writer writer(*one);
    for (const char* key : {"a", "b"}) {
      WriterRow row;
      row.key = key;
      row.image.resize(one->tensor->size_bytes());
      for (const ColumnSpec& column : one->fields) row.columns.emplace_back(column.row_bytes());
      writer.add(std::move(row));
    }
    EXPECT_EQ(writer.close().samples, 2U);
    EXPECT_EQ(Dataset::open(one->out).info().samples(), 2U);
  }
  WriterOptions asked = with;
  asked.out = dir_.path() / "asked";
  asked.samples_per_shard = 131'072;
  EXPECT_SHARD_ERROR(Writer{asked}, ErrorCode::invalid_argument,
                     "`samples_per_shard` is 131072, but a shard has at most");
}

TEST_F(WriterTest, AShardEndsWhereItsColumnsFillIt) {
  WriterOptions with = options();
  with.samples_per_shard = 100;
  with.fields.push_back({"tokens", DType::u8, {1 << 20}, ColumnKind::ragged});
  // Images that are rejects, so that their columns need no memory: 12 rows of 100 MiB,
  // and an image before and behind them.
  const auto add_all = [&](Writer& writer) {
    std::uint64_t added = 0;
    for (int i = 0; i < 14; ++i) {
      WriterRow next = row(0);
      next.key = std::to_string(i);
      if (i != 0 && i != 13) next.image.assign(4, std::byte{1});
      next.columns.emplace_back(i != 0 && i != 13 ? std::size_t{100} << 20 : std::size_t{2} << 20,
                                static_cast<std::byte>(i));
      added += writer.add(std::move(next)) ? 1 : 0;
    }
    return added;
  };
  {
    Writer writer(with);
    EXPECT_EQ(add_all(writer), 14U);
    while (!fs::exists(out_ / ".shard-00000.done.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  with.resume = true;
  Writer writer(with);
  EXPECT_EQ(writer.keys_done().size(), 0U);  // the shard is short and none follows: it may have been the last
  EXPECT_EQ(add_all(writer), 14U);
  const Summary summary = writer.close();
  EXPECT_EQ(summary.samples, 2U);
  EXPECT_EQ(summary.rejects, 12U);
  const Dataset data = Dataset::open(out_);
  EXPECT_EQ(data.info().shards.size(), 2U);
  std::vector<std::byte> rows;
  data.read_column(1, "tokens", rows);
  EXPECT_EQ(rows.size(), std::size_t{2} << 20);
  EXPECT_EQ(rows.front(), std::byte{13});
}

TEST_F(WriterTest, ReplacesADataSetOnRequest) {
  {
    Writer writer(options());
    for (std::size_t i = 0; i < 4; ++i) writer.add(row(i));
    writer.close();
  }
  EXPECT_SHARD_ERROR(Writer{options()}, ErrorCode::invalid_argument, "`overwrite` to replace it");
  WriterOptions with = options();
  with.overwrite = true;
  const auto samples = [&] { return Dataset::open(out_).info().samples(); };
  {
    Writer writer(with);
    for (std::size_t i = 0; i < 8; ++i) writer.add(row(i));
    while (!fs::exists(out_ / ".shardify-next" / ".shard-00001.done.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(samples(), 4U);
  }
  EXPECT_EQ(samples(), 4U);  // not closed: as it was
  with.resume = true;
  with.fields.clear();
  {
    Writer writer(with);
    EXPECT_EQ(writer.keys_done().size(), 6U);
    for (std::size_t i = 0; i < keys_.size(); ++i) EXPECT_EQ(writer.add(row(i)), i >= 6);
    EXPECT_EQ(samples(), 4U);
    EXPECT_EQ(writer.close().samples, 9U);
    EXPECT_EQ(writer.keys_done().size(), 6U);
  }
  EXPECT_EQ(samples(), 9U);
  expect_as_from_files();
  with = options();
  with.overwrite = true;  // an earlier replacement leaves nothing, and does not go on without `resume`
  {
    Writer writer(with);
    writer.add(row(0));
  }
  Writer writer(with);
  writer.add(row(1));
  EXPECT_EQ(writer.close().samples, 1U);
  EXPECT_EQ(samples(), 1U);
}

TEST_F(WriterTest, ReplacesAnUnfinishedConversionButNoOtherFiles) {
  Options files = with_options<Options>(out_);
  std::atomic<bool> cancel{true};
  EXPECT_THROW(run(files, {nullptr, &cancel}), Error);
  WriterOptions with = options();
  with.overwrite = true;
  {
    Writer writer(with);
    writer.add(row(0));
    EXPECT_EQ(folder_state(out_), FolderState::incomplete);
    EXPECT_EQ(writer.close().samples, 1U);
  }
  EXPECT_EQ(Dataset::open(out_).info().samples(), 1U);
  with.out = images_;
  EXPECT_SHARD_ERROR(Writer{with}, ErrorCode::invalid_argument, "holds no data set of shardify");
}

TEST_F(WriterTest, RefusesOptionsThatAreForFiles) {
  const auto refuses = [&](const char* member, const auto& set) {
    WriterOptions with = options();
    set(with);
    EXPECT_SHARD_ERROR(Writer{with}, ErrorCode::invalid_argument, member);
  };
  refuses("`append`", [](WriterOptions& of) { of.append = true; });
  refuses("`refresh`", [](WriterOptions& of) { of.refresh = true; });
  refuses("`claim`", [](WriterOptions& of) { of.claim = true; });
  refuses("`world_size`", [](WriterOptions& of) { of.world_size = 2; });
  refuses("`labels`", [](WriterOptions& of) { of.labels = "x.csv"; });
  refuses("`coco`", [](WriterOptions& of) { of.coco = "x.json"; });
  refuses("`channels` keep", [](WriterOptions& of) { of.keep_channels = true; });
  refuses("`pages`", [](WriterOptions& of) { of.pages = true; });
}

TEST_F(WriterTest, ARowThatDoesNotFitEndsNothing) {
  WriterOptions with = options();
  with.fields.push_back({"caption", DType::u8, {}, ColumnKind::text});
  Writer writer(with);
  WriterRow wrong = row(0);
  wrong.columns.push_back({std::byte{0xFF}});
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "is not UTF-8");
  wrong.columns.back().clear();
  wrong.key.assign(20'000, 'x');
  EXPECT_SHARD_ERROR(writer.add(wrong), ErrorCode::invalid_argument, "has 20000 bytes: at most 16384");
  wrong.key = "right";
  writer.add(wrong);
  EXPECT_EQ(writer.close().samples, 1U);
}

}  // namespace
}  // namespace shard::convert
