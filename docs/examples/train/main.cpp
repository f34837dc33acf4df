// Trains a small network on a data set made by shardify: the loop that shard::loader is for.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "checkpoint.hpp"
#include "mlp.hpp"
#include "options.hpp"
#include "report.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/loader.hpp"

namespace train {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw shard::Error(shard::ErrorCode::invalid_argument, message);
}

shard::Dataset open_dataset(const std::string& folder) {
  auto data = shard::Dataset::open(folder);
  if (data.info().classes.size() < 2) refuse("'" + folder + "' has no classes to tell apart");
  return data;
}

// Float32 NCHW of one size for the network. Training sees another part of a picture in every epoch, sometimes
// mirrored; a test sees the largest square in its middle.
shard::LoaderOptions loader_options(const Options& options, bool training) {
  shard::LoaderOptions loader;
  loader.seed = options.seed;
  loader.batch_size = options.batch_size;
  loader.order = training ? shard::OrderMode::shuffle : shard::OrderMode::sequential;
  loader.tail = training ? shard::Tail::drop : shard::Tail::pad;
  loader.transform.dtype = shard::DType::f32;
  loader.transform.layout = shard::Layout::nchw;
  loader.transform.crop = shard::CropKind::random_resized;
  loader.transform.crop_height = loader.transform.crop_width = options.size;
  loader.transform.scale = {training ? 0.35 : 1.0, 1.0};
  if (!training) loader.transform.ratio = {1.0, 1.0};
  loader.transform.flip = training ? 0.5 : 0.0;
  return loader;
}

// What must be the same for a checkpoint to be of use; the loader's state says the rest.
std::string settings_of(const Options& options, const shard::DatasetInfo& info, const MlpShape& shape) {
  std::ostringstream text;
  text << "data " << info.fingerprint << '-' << info.source_digest << " size " << options.size << " hidden "
       << shape.hidden << " classes " << shape.classes << " rate " << options.rate << " momentum "
       << options.momentum;
  return text.str();
}

void test(Backend& backend, Mlp& model, shard::Loader& loader) {
  backend.set_totals({});
  for (shard::Batch& batch : loader.epoch(0)) {
    backend.wait_for(batch);
    model.evaluate(batch);
  }
  const Totals totals = backend.totals();
  std::printf("test: loss %.4f, accuracy %.1f%% of %.0f samples\n", totals.loss / totals.samples,
              100 * totals.correct / totals.samples, totals.samples);
}

int run(const Options& options) {
  const std::unique_ptr<Backend> backend = make_backend(options.device);
  const shard::Dataset data = open_dataset(options.dataset);
  shard::Loader loader(data, backend->device(), loader_options(options, true));
  std::optional<shard::Loader> test_loader;
  if (!options.test_dataset.empty()) {
    const shard::Dataset test_data = open_dataset(options.test_dataset);
    if (test_data.info().classes != data.info().classes)
      refuse("'" + options.test_dataset + "' has other classes than '" + options.dataset + "'");
    test_loader.emplace(test_data, backend->device(), loader_options(options, false));
  }

  const MlpShape shape{loader.delivered().elements(), options.hidden, data.info().classes.size()};
  Mlp model(*backend, shape, options.batch_size, options.seed);
  const std::string settings = settings_of(options, data.info(), shape);
  const auto save = [&](const shard::LoaderState& next) {
    if (!options.checkpoint.empty())
      save_checkpoint(options.checkpoint, {settings, next, backend->totals(), model.values()});
  };
  if (!options.checkpoint.empty() && std::filesystem::exists(options.checkpoint)) {
    const Checkpoint checkpoint = load_checkpoint(options.checkpoint, settings);
    loader.resume(checkpoint.loader);
    backend->set_totals(checkpoint.totals);
    model.set_values(checkpoint.values);
    std::printf("resumed from %s: epoch %llu, sample %llu\n", options.checkpoint.c_str(),
                static_cast<unsigned long long>(checkpoint.loader.epoch),
                static_cast<unsigned long long>(checkpoint.loader.position));
  }

  Report report(*backend, options.print_every);
  std::uint64_t batches = 0;  // of this run
  for (std::uint64_t epoch = loader.state().epoch; epoch < options.epochs; ++epoch) {
    if (epoch != loader.state().epoch) loader.start_epoch(epoch);
    report.begin_epoch(epoch);
    for (;;) {
      report.asked();
      std::optional<shard::Batch> batch = loader.next();
      if (!batch) break;
      report.loaded();
      backend->mark();
      backend->wait_for(*batch);
      backend->mark();
      model.train(*batch, options.rate, options.momentum);
      backend->mark();
      const std::uint64_t index = batch->index();
      batch->release();  // nothing of the batch is touched from here on
      report.done(index);
      ++batches;
      const bool stop = batches == options.stop_after;
      if (stop || (options.checkpoint_every > 0 && batches % options.checkpoint_every == 0))
        save(loader.state());
      if (stop) {
        std::printf("stopped after %llu batches\n", static_cast<unsigned long long>(batches));
        Report::print_stats(loader.stats());
        return 0;
      }
    }
    report.end_epoch();
    if (test_loader) test(*backend, model, *test_loader);
    backend->set_totals({});
    shard::LoaderState next = loader.state();  // the begin of the epoch that follows
    next.epoch = epoch + 1;
    next.position = 0;
    save(next);
  }
  Report::print_stats(loader.stats());
  return 0;
}

}  // namespace
}  // namespace train

int main(int argc, char** argv) try {
  train::Options options;
  int exit_code = 0;
  return train::parse_options(argc, argv, options, exit_code) ? train::run(options) : exit_code;
} catch (const std::exception& error) {
  std::cerr << "train: " << error.what() << '\n';
  return 2;
}
