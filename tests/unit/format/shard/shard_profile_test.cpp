// A valid safetensors file that breaks one rule of the profile is refused with that rule; its digest is made
// right again, so that it is the rule that refuses it.
#include <gtest/gtest.h>

#include <functional>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "format/shard/shard_profile.hpp"
#include "support/expect_error.hpp"
#include "support/format/golden_cases.hpp"
#include "support/format/shard_parts.hpp"
#include "support/format/shard_samples.hpp"
#include "support/memory_file.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

class Profile : public ::testing::Test {
 protected:
  static Parts good(const CodecSpec& codec = {}, bool fields = false) {
    const DType dtype = codec.kind == CodecSpec::Kind::packed ? DType::u8 : DType::f16;
    ShardWriterOptions options = small_options(dtype, Layout::nchw, codec);
    options.columns.push_back({"mask", DType::u8, {3}});
    if (fields) {
      options.columns.push_back({"caption", DType::u8, {}, ColumnKind::text});
      options.columns.push_back({"boxes", DType::f32, {4}, ColumnKind::ragged});
    }
    return good(options);
  }
  static Parts good(const ShardWriterOptions& options) {
    const TempDir dir;
    write_shard(dir.path() / "s", options, 4);
    return take_apart(file_bytes(dir.path() / "s"));
  }
  void open(std::span<const std::byte> bytes) {
    file_.assign(bytes);
    verify_shard(ShardReader::open(file_.path()));
  }
  void refused(const std::function<void(Parts&)>& change, const char* why,
               ErrorCode code = ErrorCode::corrupt, const CodecSpec& codec = {}) {
    Parts parts = good(codec);
    change(parts);
    EXPECT_SHARD_ERROR(open(put_together(std::move(parts))), code, why);
  }
  MemoryFile file_;
};

// Version 2.
class Fields : public Profile {
 protected:
  void refused(const std::function<void(Parts&)>& change, const char* why,
               ErrorCode code = ErrorCode::corrupt) {
    Parts parts = good({}, true);
    change(parts);
    EXPECT_SHARD_ERROR(open(put_together(std::move(parts))), code, why);
  }
  static std::function<void(Parts&)> set(const char* key, const char* value) {
    return [=](Parts& p) { p.header.metadata[key] = value; };
  }
  static std::function<void(Parts&)> set_offset(const char* tensor, std::size_t index, std::uint64_t value) {
    return [=](Parts& p) { store_u64(p.data.at(tensor), index * 8, value); };
  }
};

TEST_F(Fields, PutTogetherUnchangedItIsSound) { EXPECT_NO_THROW(open(put_together(good({}, true)))); }

TEST_F(Fields, KindsAndTensorsMustFit) {
  refused(set("field.boxes", "video"), "field \"boxes\" is \"video\"", ErrorCode::unsupported);
  refused(set("field.boxes", "image"), "__metadata__ has no \"image.boxes.dtype\"");
  refused(set("field.boxes", "fixed"), "field \"boxes\" is \"fixed\"", ErrorCode::unsupported);
  refused(set("field.boxes", "text"), "they must be u8 []");
  refused(set("field.labels", "ragged"), "\"labels_offsets\" is missing");
  refused(set("field.mask", "ragged"), "\"mask_offsets\" is missing");
  refused(set("field.none", "ragged"), "there is no such column");
  refused(set("field.keys", "text"), "there is no such column");
  refused(set("field.", "text"), "there is no such column");
  refused([](Parts& p) { p.header.metadata.erase("field.boxes"); }, "first axis must be the 4 samples");
  refused([](Parts& p) { p.erase("boxes_offsets"); }, "\"boxes_offsets\" is missing");
  refused([](Parts& p) { p.tensor("boxes_offsets").dtype = DType::i64; }, "it must be U64 [5]");
  refused([](Parts& p) { p.erase("boxes"); }, "there is no such column");
  refused(set("shard.profile", "1"), "first axis must be the 4 samples");
  refused(
      [](Parts& p) {
        p.header.metadata["field.boxes_offsets"] = "ragged";
        p.insert("boxes_offsets_offsets", DType::u64, {5}, 40);
      },
      "has the name of the offsets of another one");
}

TEST_F(Fields, OffsetsAndTextMustBeRight) {
  refused(set_offset("boxes_offsets", 0, 1), "\"boxes_offsets\"[0] is 1: it must be 0");
  refused(set_offset("boxes_offsets", 1, 9), "[1] is 9: there are only 4");
  refused(set_offset("boxes_offsets", 2, 0), "less than the 1 before it");
  refused(set_offset("boxes_offsets", 4, 3), "[4] is 3: it must be 4");
  refused(set_offset("caption_offsets", 4, 13), "there are only 12");
  refused(set_offset("caption_offsets", 4, 11), "it must be 12");
  refused(set_offset("caption_offsets", 3, ~std::uint64_t{0}), "there are only 12");
  refused([](Parts& p) { p.data.at("caption")[0] = std::byte{0xff}; },
          "text of column \"caption\" is not UTF-8");
  refused(set_offset("caption_offsets", 2, 1), "sample 1: the text of column \"caption\" is not UTF-8");
}

// Further image fields.
class ImageFields : public Profile {
 protected:
  void refused(const std::function<void(Parts&)>& change, const char* why,
               ErrorCode code = ErrorCode::corrupt, std::size_t of = 0) {
    Parts parts = good(image_field_cases()[of].options);
    change(parts);
    EXPECT_SHARD_ERROR(open(put_together(std::move(parts))), code, why);
  }
  static std::function<void(Parts&)> set(const char* key, const char* value) {
    return [=](Parts& p) { p.header.metadata[key] = value; };
  }
  static std::function<void(Parts&)> drop(const char* key) {
    return [=](Parts& p) { p.header.metadata.erase(key); };
  }
};

TEST_F(ImageFields, PutTogetherUnchangedTheyAreSound) {
  for (const GoldenCase& of : image_field_cases()) EXPECT_NO_THROW(open(put_together(good(of.options))));
}

TEST_F(ImageFields, MetadataRules) {
  for (const char* key : {"image.mask.dtype", "image.mask.layout", "image.mask.shape", "image.mask.mean",
                          "image.mask.std", "image.mask.codec"})
    refused(drop(key), key);
  refused(set("field.mask", "ragged"), "there is no such column");
  refused(set("field.depth", "ragged"), "\"depth_offsets\" is missing");
  refused(drop("field.mask"), "first axis must be the 4 samples");
  refused(set("field.depth", "mask"), "field \"depth\" is a mask: its mean and std must be 0 and 1");
  refused(set("field.latent z", "mask"), "is a mask of f16");
  refused(set("image.depth.dtype", "f16"), "it must be F16 [4, 1, 3, 2]");
  refused(set("image.depth.dtype", "f8"), "dtype \"f8\"", ErrorCode::unsupported);
  refused(set("image.depth.shape", "1,3,3"), "it must be U16 [4, 1, 3, 3]");
  refused(set("image.depth.shape", "1,3"), "three numbers");
  refused(set("image.depth.codec", "packed"), "\"depth.frames\" is missing");
  refused(set("image.depth.codec", "lz4"), "codec \"lz4\"", ErrorCode::unsupported);
  refused(set("image.depth.std", "0,1,1"), "std of channel 0");
  refused(set("image.mask.shape", "4,5,3"), "with 3 channels");
  refused(set("shard.profile", "1"), "first axis must be the 4 samples");
}

TEST_F(ImageFields, TensorRules) {
  for (const char* name : {"depth", "depth.checksums", "depth.padding", "mask.frames", "mask.frame_offsets",
                           "mask.frame_checksums"})
    refused([&](Parts& p) { p.erase(name); }, "is missing");
  refused([](Parts& p) { p.tensor("mask.checksums").dtype = DType::i64; }, "it must be U64 [4]");
  refused([](Parts& p) { p.tensor("mask.frames").dtype = DType::i8; }, "it must be U8");
  refused([](Parts& p) { p.tensor("depth").shape = {4, 6}; }, "it must be U16 [4, 1, 3, 2]");
  refused([](Parts& p) { p.data.at("depth.padding").pop_back(), --p.tensor("depth.padding").shape[0]; },
          "it must be U8 [4048]");
  refused([](Parts& p) { p.data.at("depth.padding")[7] = std::byte{1}; },
          "the padding behind field \"depth\" is not zero");
  refused([](Parts& p) { store_u64(p.data.at("mask.frame_offsets"), 16, 1); }, "mask.frame_offsets[2] is 1");
  refused([](Parts& p) { store_u64(p.data.at("mask.frame_offsets"), 8, 8); }, "field \"mask\": the frame of");
  refused([](Parts& p) { p.data.at("depth")[13] ^= std::byte{1}; },
          "sample 1 (\"class/photo 1.jpg\"): field \"depth\": its XXH3-64");
  refused([](Parts& p) { p.data.at("mask.frame_checksums")[1] ^= std::byte{1}; },
          "field \"mask\": its stored frame");
  refused([](Parts& p) { p.data.at("latent z.frames")[3] ^= std::byte{1}; },
          "field \"latent z\": its stored frame", ErrorCode::corrupt, 1);
  // A column between the images of fields, whose bytes no digest would cover.
  refused(
      [](Parts& p) {
        p.header.tensors.insert(p.header.tensors.end() - 1, {"odd", DType::u8, {4, 1024}, 0, 0});
        p.data["odd"].assign(4096, std::byte{1});
      },
      "are expected before the main images");
  refused([](Parts& p) { p.insert_early("mask", DType::u8, {4}, 4); }, "there is another tensor");
}

// Samples of any size: version 3. Sample i of the shard is sized_spec(spec, i): 3x2, 6x9, 4x5, 7x12.
class FreeSamples : public Profile {
 protected:
  static constexpr std::size_t kPlain = 0;   // u8 nhwc, codec none
  static constexpr std::size_t kImages = 4;  // zstd, with a mask (packed) and depth (none) of any size
  void refused(const std::function<void(Parts&)>& change, const char* why,
               ErrorCode code = ErrorCode::corrupt, std::size_t of = kPlain) {
    Parts parts = good(free_cases()[of].options);
    change(parts);
    EXPECT_SHARD_ERROR(open(put_together(std::move(parts))), code, why);
  }
  static std::function<void(Parts&)> set(const char* key, const char* value) {
    return [=](Parts& p) { p.header.metadata[key] = value; };
  }
  static std::function<void(Parts&)> drop(const char* key) {
    return [=](Parts& p) { p.header.metadata.erase(key); };
  }
  static std::function<void(Parts&)> set_size(const char* tensor, std::size_t sample, std::uint32_t rows,
                                              std::uint32_t columns) {
    return [=](Parts& p) {
      store_u32(p.data.at(tensor), sample * 8, rows);
      store_u32(p.data.at(tensor), sample * 8 + 4, columns);
    };
  }
  static std::function<void(Parts&)> set_offset(const char* tensor, std::size_t index, std::uint64_t value) {
    return [=](Parts& p) { store_u64(p.data.at(tensor), index * 8, value); };
  }
};

TEST_F(FreeSamples, PutTogetherUnchangedTheyAreSound) {
  for (const GoldenCase& of : free_cases()) EXPECT_NO_THROW(open(put_together(good(of.options)))) << of.name;
}

TEST_F(FreeSamples, MetadataRules) {
  EXPECT_EQ(good(free_cases()[kPlain].options).header.metadata.at("largest"), "7,12,252,252");
  EXPECT_EQ(good(free_cases()[kPlain].options).header.metadata.at("shape"), "0,0,3");
  refused(set("shard.profile", "1"), "version 1 does not have samples of any size");
  refused(set("shard.profile", "2"), "version 2 does not have samples of any size");
  refused(drop("largest"), "__metadata__ has no \"largest\"");
  for (const char* text : {"", "7,12,252", "7,12,252,252,1", "7,12,252,252 ", "7,12,252,0252", "7,12,252,-1",
                           "65536,12,252,252", "7,12,252,99999999999999999999"})
    refused(set("largest", text), "it must be rows, columns, bytes of a sample and bytes of a frame");
  for (const char* text : {"8,12,252,252", "7,13,252,252", "7,12,253,252", "7,12,252,253", "7,12,0,252"})
    refused(set("largest", text), "as the largest samples: they have \"7,12,252,252\"");
  refused(set("shape", "0,5,3"), "height is 0");
  refused(set("shape", "4,0,3"), "width is 0");
  refused(set("shape", "4,5,3"), "the last tensor is \"image_frames\": it must be \"images\"");
  refused(set("shape", "0,0,4"), "the frame of sample 0 has 18 bytes, too few for the 24");
  refused(set("shape", "0,0,0"), "channels is 0");
  refused(set("layout", "tensor"), "each axis must be at least 1");
  refused(drop("image.mask.largest"), "image.mask.largest", ErrorCode::corrupt, kImages);
  refused(set("image.depth.largest", "1,1,1,1"), "field \"depth\": its metadata give", ErrorCode::corrupt,
          kImages);
  refused(set("shard.profile", "2"), "version 2 does not have samples of any size", ErrorCode::corrupt,
          kImages);
  refused(set("shard.profile", "2"), "version 2 does not have further image fields of any size",
          ErrorCode::corrupt, 5);
}

TEST_F(FreeSamples, TensorRules) {
  for (const char* name : {"shapes", "frame_offsets", "frame_checksums", "image_frames"})
    refused([&](Parts& p) { p.erase(name); }, name);
  refused([](Parts& p) { p.tensor("shapes").dtype = DType::i32; }, "it must be U32 [4, 2]");
  refused([](Parts& p) { p.tensor("shapes").shape = {2, 4}; }, "it must be U32 [4, 2]");
  refused(
      [](Parts& p) { p.tensor("image_frames").name = "images", p.data["images"] = p.data["image_frames"]; },
      "it must be \"image_frames\"");
  for (const char* name : {"mask.shapes", "depth.shapes", "depth.frames", "depth.frame_offsets"})
    refused([&](Parts& p) { p.erase(name); }, "is missing", ErrorCode::corrupt, kImages);
}

TEST_F(FreeSamples, SizesAndFramesMustFit) {
  refused(set_size("shapes", 1, 0, 9), "the size of sample 1: sample height is 0");
  refused(set_size("shapes", 1, 6, 0), "the size of sample 1: sample width is 0");
  refused(set_size("shapes", 1, 0, 0), "the size of sample 1: 0 rows and 0 columns");
  refused(set_size("shapes", 1, 65536, 9), "the size of sample 1: sample height is 65536");
  refused(set_size("shapes", 1, 0xffffffff, 0xffffffff), "the size of sample 1: sample height is 4294967295");
  refused(set_size("shapes", 1, 65535, 65535), "the frame of sample 1 has 162 bytes, too few for the");
  refused(set_size("shapes", 1, 6, 8), "the frame of sample 1 has 162 bytes, more than 144");
  refused(set_size("shapes", 1, 6, 10), "the frame of sample 1 has 162 bytes, too few for the 180");
  // As many bytes, of another shape.
  refused(set_size("shapes", 1, 9, 6), "they have \"9,12,252,252\"");
  refused(set_size("shapes", 2, 5, 4), "packed frame states 3 channels of", ErrorCode::corrupt, 1);
  refused(set_offset("frame_offsets", 0, 1), "frame_offsets[0] is 1: it must be 0");
  refused(set_offset("frame_offsets", 1, 17), "the frame of sample 0 has 17 bytes, too few");
  refused(set_offset("frame_offsets", 1, 19), "the frame of sample 0 has 19 bytes, more than 18");
  refused(set_offset("frame_offsets", 2, 0), "frame_offsets[2] is 0, less than the 18 before it");
  refused(set_offset("frame_offsets", 3, ~std::uint64_t{0}), "frame_offsets[3] is");
  refused([](Parts& p) { p.data.at("image_frames").pop_back(), --p.tensor("image_frames").shape[0]; },
          "there are only");
  refused(set_size("depth.shapes", 0, 1, 1), "field \"depth\": the frame of sample 0", ErrorCode::corrupt,
          kImages);
  refused([](Parts& p) { p.data.at("image_frames")[20] ^= std::byte{1}; },
          "sample 1 (\"class/photo 1.jpg\"): its stored frame has the XXH3-64");
}

TEST_F(FreeSamples, NamesOfTheirTensorsAreTaken) {
  ShardWriterOptions options = free_cases()[kPlain].options;
  options.columns.push_back({"shapes", DType::u8, {}});
  EXPECT_SHARD_ERROR(good(options), ErrorCode::invalid_argument, "the sizes of the images have this name");
  options.spec.height = 4;  // one size: the name is free
  options.spec.width = 5;
  EXPECT_NO_THROW(open(put_together(good(options))));
}

constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 3};
constexpr CodecSpec kPacked{CodecSpec::Kind::packed, 3};

TEST_F(Profile, PutTogetherUnchangedItIsSound) {
  EXPECT_NO_THROW(open(put_together(good())));
  EXPECT_NO_THROW(open(put_together(good(kZstd))));
  EXPECT_NO_THROW(open(put_together(good(kPacked))));
}

TEST_F(Profile, MetadataRules) {
  const auto set = [](const char* key, const char* value) {
    return [=](Parts& p) { p.header.metadata[key] = value; };
  };
  const auto drop = [](const char* key) { return [=](Parts& p) { p.header.metadata.erase(key); }; };
  for (const char* key : {"dtype", "layout", "shape", "mean", "std", "codec", "fingerprint", "head_digest"})
    refused(drop(key), key);
  refused(drop("shard.profile"), "not a shard");
  refused(set("shard.profile", "4"), "version \"4\"", ErrorCode::unsupported);
  refused(set("shard.profile", "03"), "version \"03\"", ErrorCode::unsupported);
  refused(set("dtype", "f8"), "dtype \"f8\"", ErrorCode::unsupported);
  refused(set("dtype", "i64"), "dtype is i64");
  refused(set("dtype", "f32"), "it must be F32 [4, 3, 4, 5]");
  refused(set("layout", "chwn"), "layout \"chwn\"", ErrorCode::unsupported);
  refused(set("layout", "nhwc"), "version 1 does not have samples of more than 4 channels");
  refused(set("layout", "tensor"), "samples of layout tensor have a mean and std");
  refused(set("codec", "lz4"), "codec \"lz4\"", ErrorCode::unsupported);
  refused(set("codec", "packed:1"), "codec \"packed:1\"", ErrorCode::unsupported);
  refused(set("codec", "zstd"), "must be written zstd:3");
  refused(set("codec", "zstd:3"), "must be \"image_frames\"");
  for (const char* shape : {"", "3", "3,4", "3,4,5,", "3,4,5,6", "3,4,-5", "3, 4,5", "3,4,99999999999"})
    refused(set("shape", shape), "three numbers");
  refused(set("shape", "3,4,6"), "it must be F16 [4, 3, 4, 6]");
  refused(set("shape", "3,0,5"), "height is 0");
  for (const char* mean : {"", "0.5,0.5,0.5,", "0.5,0.5,nan", "0.5,0.5,inf", "0.5,,0.5"})
    refused(set("mean", mean), "three finite numbers");
  refused(set("mean", "0.5,0.5"), "mean has 2 numbers and std 3");
  refused(set("std", "1,0,1"), "std of channel 1");
  refused(set("fingerprint", "0123456789ABCDEF"), "fingerprint");
  refused(set("head_digest", "0123456789ABCDEF"), "in exactly this form");
  refused(set("head_digest", "0"), "in exactly this form");
  refused(set("pipeline.A", "x"), "pipeline key");
}

TEST_F(Profile, RulesOfWideSamples) {
  const ShardWriterOptions tensor = wide_cases().back().options;  // f32 [2, 3, 1, 5]
  const auto set = [](const char* key, const char* value) {
    return [=](Parts& p) { p.header.metadata[key] = value; };
  };
  const auto refused_of = [&](const ShardWriterOptions& options, auto&& change, const char* why) {
    Parts parts = good(options);
    change(parts);
    EXPECT_SHARD_ERROR(open(put_together(parts)), ErrorCode::corrupt, why);
  };
  EXPECT_NO_THROW(open(put_together(good(tensor))));
  refused_of(tensor, set("shard.profile", "1"), "version 1 does not have samples of layout tensor");
  for (const char* shape : {"", "2,3,1,5,1", "2,3,1,5,", "2,,5", "-2,3,5"})
    refused_of(tensor, set("shape", shape), "one to four numbers");
  refused_of(tensor, set("shape", "2,3,5"), "it must be F32 [4, 2, 3, 5]");
  refused_of(tensor, set("shape", "2,0,5"), "each axis must be at least 1");
  refused_of(tensor, set("shape", "65536,65536"), "at most 2147483647");
  refused_of(tensor, set("codec", "packed"), "codec packed holds images");
  const ShardWriterOptions bands = wide_cases()[2].options;  // u8 [4, 5, 13], a mean for each band
  refused_of(bands, set("shard.profile", "1"), "version 1 does not have samples of more than 4 channels");
  refused_of(bands, set("shape", "4,5,4097"), "channels is 4097");
  refused_of(bands, set("mean", "0,0,0"), "mean has 3 numbers and std 13");
  const ShardWriterOptions deep = wide_cases()[0].options;  // u16
  refused_of(deep, set("shard.profile", "1"), "version 1 does not have samples of dtype u16");
  refused_of(deep, set("dtype", "f16"), "it must be F16 [4, 3, 4, 5]");
}

TEST_F(Profile, UnknownMetadataAreIgnored) {
  Parts parts = good();
  parts.header.metadata["note"] = "\"head_digest\":\"0000000000000000\"";
  EXPECT_NO_THROW(open(put_together(std::move(parts))));
}

TEST_F(Profile, TensorRules) {
  for (const char* name : {"labels", "checksums", "key_offsets", "keys", "images"})
    refused([&](Parts& p) { p.erase(name); }, name);
  for (const char* name : {"frame_offsets", "frame_checksums", "image_frames"}) {
    refused([&](Parts& p) { p.erase(name); }, name, ErrorCode::corrupt, kZstd);
  }
  refused([](Parts& p) { p.tensor("checksums").dtype = DType::i64; }, "it must be U64 [4]");
  refused([](Parts& p) { p.tensor("checksums").shape = {2, 2}; }, "2 axes");
  refused([](Parts& p) { p.tensor("key_offsets").dtype = DType::i64; }, "it must be U64 [5]");
  refused([](Parts& p) { p.tensor("keys").dtype = DType::i8; }, "it must be U8");
  refused([](Parts& p) { p.tensor("images").shape = {4, 60}; }, "it must be F16 [4, 3, 4, 5]");
  refused([](Parts& p) { p.tensor("images").dtype = DType::bf16; }, "it must be F16");
  refused([](Parts& p) { p.tensor("labels").shape = {2, 2}; }, "first axis must be the 4 samples");
  refused([](Parts& p) { p.tensor("labels").dtype = DType::u64; }, "labels must be");
  refused([](Parts& p) { p.tensor("mask").shape = {3, 4}; }, "first axis must be the 4 samples");
  refused([](Parts& p) { p.insert("scalar", DType::u8, {}, 1); }, "first axis");
  refused([](Parts& p) { p.insert("frame_offsets", DType::u8, {4}, 4); }, "does not belong to codec none");
  refused([](Parts& p) { p.insert("images", DType::u8, {4}, 4); }, "does not belong", ErrorCode::corrupt,
          kZstd);
  refused([](Parts& p) { p.insert("odd", DType::i16, {4}, 8), p.insert("late", DType::f64, {4}, 32); },
          "multiple of its element size");
  refused([](Parts& p) { std::swap(p.header.tensors[p.header.tensors.size() - 1], p.header.tensors[0]); },
          "the last tensor");
}

TEST_F(Profile, ImagesStandOnAPage) {
  EXPECT_SHARD_ERROR(open(put_together(good(), 2048)), ErrorCode::corrupt, "multiple of 4096");
}

TEST_F(Profile, OffsetRules) {
  const auto set = [](const char* name, std::size_t i, std::uint64_t value) {
    return [=](Parts& p) { store_u64(p.data.at(name), i * 8, value); };
  };
  refused(set("key_offsets", 0, 1), "key_offsets[0] is 1");
  refused(set("key_offsets", 2, 1'000'000), "key_offsets[2] is 1000000");
  refused(set("key_offsets", 2, 0), "key_offsets[2] is 0");
  refused(set("key_offsets", 4, ~std::uint64_t{0}), "key_offsets[4]");
  refused(set("frame_offsets", 0, 1), "frame_offsets[0]", ErrorCode::corrupt, kZstd);
  refused(set("frame_offsets", 4, 1'000'000), "frame_offsets[4]", ErrorCode::corrupt, kZstd);
  refused(set("frame_offsets", 3, 1), "frame_offsets[3] is 1", ErrorCode::corrupt, kZstd);
  refused(
      [](Parts& p) { p.data["image_frames"].push_back(std::byte{0}), ++p.tensor("image_frames").shape[0]; },
      "it must be", ErrorCode::corrupt, kZstd);
}

TEST_F(Profile, KeysAreEscapedAndPaddedWithZeros) {
  refused([](Parts& p) { p.data["keys"][0] = std::byte{'\n'}; }, "control character");
  refused([](Parts& p) { p.data["keys"][0] = std::byte{0xff}; }, "sample 0");
  refused([](Parts& p) { store_u64(p.data["key_offsets"], 32, load_u64(p.data["key_offsets"], 24)); },
          "padding");
}

TEST_F(Profile, ChecksumsOfSamplesAndFramesAreHeld) {
  const auto change = [](const char* name) { return [=](Parts& p) { p.data.at(name)[9] ^= std::byte{4}; }; };
  refused(change("checksums"), "sample 1 (\"class/photo 1.jpg\"): its XXH3-64");
  refused(change("checksums"), "sample 1", ErrorCode::corrupt, kZstd);
  refused(change("frame_checksums"), "its stored frame", ErrorCode::corrupt, kZstd);
}

TEST_F(Profile, FramesHoldExactlyOneSample) {
  // The frames exchanged for other bytes whose checksum is right: only decoding can tell.
  CodecSpec codec = kZstd;
  const auto frame = [&](const std::function<void(std::vector<std::byte>&)>& edit, const char* why) {
    refused(
        [&](Parts& p) {
          auto& frames = p.data["image_frames"];
          auto& offsets = p.data["frame_offsets"];
          std::vector<std::byte> last(frames.begin() + static_cast<std::ptrdiff_t>(load_u64(offsets, 24)),
                                      frames.end());
          frames.resize(static_cast<std::size_t>(load_u64(offsets, 24)));
          edit(last);
          frames.insert(frames.end(), last.begin(), last.end());
          store_u64(offsets, 32, frames.size());
          store_u64(p.data["frame_checksums"], 24, xxh3(last));
          p.tensor("image_frames").shape = {frames.size()};
        },
        why, ErrorCode::corrupt, codec);
  };
  frame([](auto& f) { f.push_back(std::byte{0}); }, "stored bytes");
  frame([](auto& f) { f.insert(f.end(), f.begin(), f.end()); }, "stored bytes");
  frame([](auto& f) { f.pop_back(); }, "damaged");
  frame([](auto& f) { f[0] = std::byte{0x27}; }, "magic");
  frame([](auto& f) { f[5] ^= std::byte{1}; }, "bytes of content: a sample has 120");
  frame(
      [](auto& f) {
        f.assign({std::byte{0x50}, std::byte{0x2a}, std::byte{0x4d}, std::byte{0x18}, {}, {}, {}, {}});
      },
      "magic");
  codec = kPacked;
  frame([](auto& f) { f.insert(f.end(), 16, std::byte{0}); },
        "sample 3 (\"class/photo 9.jpg\"): packed frame");
  frame([](auto& f) { f.insert(f.end(), f.begin(), f.end()); }, "a stored sample takes 80");
  frame([](auto& f) { f[0] = std::byte{2}; }, "version 2");
  frame([](auto& f) { f[6] = std::byte{6}; }, "states 3 channels of 6x4: a sample has 3 of 5x4");
  // These are seen when the shard is opened.
  frame([](auto& f) { f.push_back(std::byte{0}); }, "must be a multiple of 16");
  frame([](auto& f) { f.resize(f.size() - 1); }, "must be a multiple of 16");
  frame([](auto& f) { f.resize(16); }, "too few for the 60 bytes");
  frame([](auto& f) { f.resize(std::size_t{2} << 20U); }, "more than 1048816 for a sample of 60 bytes");
}

TEST_F(Profile, ASampleSizeThatTheFramesCannotHoldIsRefusedBeforeMemoryIsTaken) {
  for (const CodecSpec& codec : {kZstd, kPacked}) {
    refused([](Parts& p) { p.header.metadata["shape"] = "4,65535,65535"; }, "too few for the",
            ErrorCode::corrupt, codec);
  }
}

}  // namespace
}  // namespace shard
