// Samples of any size in a room that is too small for a batch; part of the loader's contract.
#pragma once

#include "support/loader/free/support.hpp"

namespace shard::testing {

// Room for the largest sample only: nearly all others of its batch are made one by one.
TEST_P(LoaderContract, MakesSamplesForWhichThereIsNoRoomAfterTheOthers) {
  for (const CodecSpec& codec :
       {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    const std::uint64_t largest = data.info().largest().sample_bytes;
    const TransformOptions view = views_of_any_size()[0].second;
    for (const TransportKind kind : all_transports(dir.path())) {
      SCOPED_TRACE(to_string(codec) + ", " + std::string(to_string(kind)));
      if (kind == TransportKind::mapped && codec.kind == CodecSpec::Kind::zstd) continue;
      LoaderOptions options = free_options(view);
      options.transport = kind;
      options.memory.batch_bytes = largest;
      options.verify = Verify::always;
      Loader loader(data, device_, options);
      expect_views_of_free(*device_, loader, shape, view, 3);
      if (HasFatalFailure()) return;
      if (kind != TransportKind::resident) {
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
      }
    }
    LoaderOptions options = free_options(view);
    options.memory.batch_bytes = largest - 1;
    EXPECT_SHARD_ERROR(Loader(data, device_, options), ErrorCode::resource, "batch_bytes is");
  }
}

// Operations, mixed pairs and several views: whatever the room.
TEST_P(LoaderContract, MakesTheSameOfSamplesOfAnySizeWhateverTheRoom) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    LoaderOptions options = free_options(views_of_any_size()[0].second);
    options.tail = Tail::drop;
    options.transform.dtype = DType::f16;
    ops::ColorJitter jitter;
    jitter.brightness = Range{0.5, 1.5};
    ops::Affine turn;
    turn.degrees = {-30, 30};
    options.transform.operations = {jitter, turn};
    for (const bool mixed : {false, true}) {
      if (mixed)
        options.mix.mixup = 0.4;
      else
        options.further_views = {views_of_any_size()[6].second, views_of_any_size()[3].second};
      std::vector<Seen> first;
      for (const std::uint64_t room : {std::uint64_t{0}, 2 * data.info().largest().sample_bytes}) {
        options.memory.batch_bytes = room;
        options.transport = room == 0 ? TransportKind::automatic : TransportKind::staged;
        Loader loader(data, device_, options);
        const std::vector<Seen> seen = run_epoch(*device_, loader, 1);
        ASSERT_EQ(seen.size(), 5U);
        if (first.empty())
          first = seen;
        else
          EXPECT_EQ(seen, first) << to_string(codec) << (mixed ? ", mixed" : ", views");
      }
      options.further_views.clear();
    }
  }
}

}  // namespace shard::testing
