// The converter, in this process.
#include "convert.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common.hpp"
#include "dataset.hpp"
#include "shard/convert/class_names.hpp"
#include "shard/convert/image_cache.hpp"
#include "shard/convert/source.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/convert/work_plan.hpp"
#include "shard/error.hpp"

namespace shard::python {

namespace {

template <class T>
void set(T& target, const nb::dict& given, const char* name) {
  if (given.contains(name)) target = nb::cast<T>(given[name]);
}

// Python has no paths with zero bytes, and has checked that it is a path.
std::filesystem::path path_of(const nb::dict& given, const char* name) {
  std::filesystem::path path;
  if (!nb::try_cast(nb::object(given[name]), path))
    throw Error(ErrorCode::invalid_argument,
                "`" + std::string(name) + "` has a zero byte, and no file has such a name: remove it");
  return path;
}

// A value as shardify's option takes it.
std::string text_of(const nb::handle& value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value) ? "true" : "false";
  return nb::cast<std::string>(nb::str(value));
}

}  // namespace

convert::Options options_of(const nb::dict& given) {
  convert::TextOptions words;
  for (const convert::TextOption& option : convert::text_options()) {
    const std::string name(option.name == "classes" ? "classes_from" : option.name);
    if (!given.contains(name.c_str())) continue;
    const nb::object value = given[name.c_str()];
    if (option.several)
      for (const nb::handle one : nb::cast<nb::list>(value)) words.add(option.name, text_of(one));
    else
      words.add(option.name, text_of(value));
  }
  convert::Options options;
  convert::apply(words, options);
  options.images = path_of(given, "images").native();
  if (given.contains("out")) options.out = path_of(given, "out");
  if (given.contains("classes"))
    for (nb::handle name : nb::cast<nb::list>(given["classes"])) {
      const auto bytes = nb::cast<nb::bytes>(name);
      options.classes.emplace_back(bytes.c_str(), bytes.size());
    }
  set(options.jobs, given, "jobs");
  // Never from the environment: a script that torchrun or srun started for training converts everything where
  // it calls this, and not one rank's part without a word.
  set(options.rank, given, "rank");
  set(options.world_size, given, "world_size");
  set(options.claim, given, "claim");
  return options;
}

nb::dict dict_of(const convert::Summary& summary) {
  nb::dict result;
  result["complete"] = summary.complete;
  result["was_complete"] = summary.was_complete;
  result["inputs"] = summary.inputs;
  result["samples"] = summary.samples;
  result["rejects"] = summary.rejects;
  nb::dict warnings;
  for (std::size_t i = 0; i < image::kWarnings; ++i) {
    const std::string name(image::to_string(static_cast<image::Warning>(i)));
    if (summary.warnings.images[i] > 0) warnings[name.c_str()] = summary.warnings.images[i];
  }
  result["warnings"] = warnings;
  nb::dict jpeg;
  constexpr auto kUses = convert::words_of(convert::JpegUse{});
  for (std::size_t i = 0; i < kUses.size(); ++i)
    if (summary.jpeg.images[i] > 0) jpeg[std::string(kUses[i]).c_str()] = summary.jpeg.images[i];
  result["jpeg"] = jpeg;
  nb::list advice;
  if (const std::string few = convert::few_bits_text(summary.warnings); !few.empty())
    advice.append(text(few));
  if (const std::string damaged = convert::damaged_text(summary.warnings); !damaged.empty())
    advice.append(text(damaged));
  result["advice"] = advice;
  result["shards"] = summary.shards;
  result["size_bytes"] = summary.size_bytes;
  result["converted"] = summary.converted;
  result["converted_shards"] = summary.converted_shards;
  result["bytes_read"] = summary.bytes_read;
  result["scan_seconds"] = summary.scan_seconds;
  result["convert_seconds"] = summary.convert_seconds;
  return result;
}

namespace {

nb::list notes_of(const convert::Listing& found) {
  nb::list notes;
  for (const std::string& note : found.warnings) notes.append(text(note));
  return notes;
}

// What was found before anything is decoded: see _notes.found(). Of what is left out, "firsts" has examples.
nb::dict found_in(const convert::Listing& found) {
  nb::dict result;
  result["notes"] = notes_of(found);
  nb::list empty;
  if (!found.classes.empty())
    for (const std::string& folder : found.empty_folders) empty.append(text(folder));
  result["empty_folders"] = empty;
  std::map<convert::SkipReason, std::uint64_t> skipped;
  for (const convert::Skip& skip : found.skipped) ++skipped[skip.reason];
  nb::dict reasons;
  for (const auto& [reason, name] :
       {std::pair{convert::SkipReason::hidden, "hidden"}, std::pair{convert::SkipReason::litter, "litter"},
        std::pair{convert::SkipReason::no_image, "no_image"},
        std::pair{convert::SkipReason::walked, "walked"}})
    if (skipped[reason] > 0) reasons[name] = skipped[reason];
  if (found.unlisted > 0) reasons["unlisted"] = found.unlisted;
  result["skipped"] = reasons;
  nb::dict counts;
  nb::dict firsts;
  const convert::AnnotationCounts& of = found.annotations;
  if (of.objects > 0) counts["objects"] = of.objects;
  using Count = convert::AnnotationCounts::Count;
  for (const auto& [name, count] :
       std::initializer_list<std::pair<const char*, const Count&>>{{"images_without", of.images_without},
                                                                   {"without_image", of.without_image},
                                                                   {"unknown_category", of.unknown_category},
                                                                   {"invalid_boxes", of.invalid_boxes},
                                                                   {"cut_away", of.cut_away},
                                                                   {"beyond_image", of.beyond_image},
                                                                   {"beside_folders", of.beside_folders}})
    if (count.number > 0) {
      counts[name] = count.number;
      firsts[name] = text(count.first);
    }
  result["annotations"] = counts;
  result["firsts"] = firsts;
  nb::list unused;
  for (const convert::FurtherCounts& field : found.further)
    if (field.unused.number > 0)
      unused.append(nb::make_tuple(text(field.name), field.unused.number, text(field.unused.first)));
  result["unused"] = unused;
  return result;
}

// `progress(done, planned, rejected)`, from the calling thread, some times a second.
nb::dict run_conversion(const nb::dict& given, const nb::object& progress) {
  convert::Summary summary;
  convert::Listing found;
  Background work([options = options_of(given), &summary, &found](const convert::Hooks& given_hooks) {
    convert::Hooks hooks = given_hooks;
    hooks.planned = [&found](const convert::Listing& listing) { found = listing; };
    summary = convert::run(options, hooks);
  });
  const convert::Counters& count = work.counters();
  work.wait([&] {
    if (!progress.is_none())
      progress(count.resumed + count.stored + count.rejected, count.planned.load(), count.rejected.load());
  });
  nb::dict result = dict_of(summary);
  result["found"] = found_in(found);
  return result;
}

// What is stored of a source while it is used.
struct CacheHandle {
  std::shared_ptr<convert::ImageCache> cache;

  nb::dict progress() const {
    convert::CacheProgress now;
    {
      WithoutGil without_gil;
      now = cache->progress();
    }
    nb::dict result;
    result["inputs"] = now.inputs;
    result["stored"] = now.stored;
    result["shards"] = now.shards;
    result["finished_shards"] = now.finished_shards;
    result["decoded"] = now.decoded;
    result["decoded_for_shards"] = now.decoded_for_shards;
    result["found"] = now.found;
    result["complete"] = now.complete;
    result["seconds_left"] = now.seconds_left;
    result["problem"] = text(now.problem);
    return result;
  }
  void stop() const {
    WithoutGil without_gil;
    cache->stop();
  }
};

// `cache`: the folder that samples are stored in, or None.
nb::tuple open_source(const nb::dict& given, const std::optional<std::filesystem::path>& cache,
                      unsigned cache_jobs) {
  std::optional<convert::CachedSource> source;
  convert::Listing found;
  const bool choose_codec = !given.contains("codec");
  Background work([options = options_of(given), &source, &found, &cache, cache_jobs,
                   choose_codec](const convert::Hooks& given_hooks) {
    convert::Hooks hooks = given_hooks;
    hooks.planned = [&found](const convert::Listing& listing) { found = listing; };
    if (cache)
      source = convert::open_source(options, {*cache, cache_jobs, choose_codec}, hooks);
    else
      source.emplace(convert::CachedSource{convert::open_source(options, hooks), nullptr});
  });
  work.wait([] {});
  nb::dict about = found_in(found);
  nb::list rejects;
  for (const convert::Reject& reject : found.rejects)
    rejects.append(nb::make_tuple(text(reject.key), text(reject.reason)));
  about["rejects"] = rejects;
  nb::object handle = nb::none();
  if (source->cache) handle = nb::cast(CacheHandle{source->cache});
  return nb::make_tuple(DatasetHandle{std::make_shared<const Dataset>(std::move(source->data))}, about,
                        handle);
}

nb::list class_names(const std::filesystem::path& from) {
  std::vector<std::string> names;
  Background work([&](const convert::Hooks&) { names = convert::read_class_names(from); });
  work.wait([] {});
  nb::list list;
  for (const std::string& name : names) list.append(nb::bytes(name.data(), name.size()));
  return list;
}

void nothing_to_report() {}

// The plan of sl.convert_shard(). Each process that converts shards has one of its own.
class Plan {
 public:
  explicit Plan(const nb::dict& given) {
    Background work([this, options = options_of(given)](const convert::Hooks&) { plan_.emplace(options); });
    work.wait(nothing_to_report);
  }
  std::uint64_t shards() const { return plan_->shards(); }
  std::uint64_t inputs() const { return plan_->inputs(); }
  std::string digest() const { return plan_->digest(); }
  nb::dict found() const {
    convert::Listing found;
    Background work([&](const convert::Hooks&) { found = plan_->listing(); });
    work.wait(nothing_to_report);
    return found_in(found);
  }
  nb::dict convert_shard(std::uint64_t shard) const {
    convert::ShardResult done;
    Background work([&](const convert::Hooks& hooks) { done = plan_->convert_shard(shard, hooks); });
    work.wait(nothing_to_report);
    nb::dict result;
    result["shard"] = done.shard;
    result["samples"] = done.samples;
    result["rejects"] = done.rejects;
    result["size_bytes"] = done.size_bytes;
    result["was_complete"] = done.was_complete;
    return result;
  }
  nb::dict finish() const {
    convert::Summary summary;
    Background work([&](const convert::Hooks&) { summary = plan_->finish(); });
    work.wait(nothing_to_report);
    return dict_of(summary);
  }

 private:
  std::optional<convert::WorkPlan> plan_;
};

}  // namespace

void bind_convert(nb::module_& module) {
  module.def("names_images", [](const std::string& path) {
    WithoutGil without_gil;
    return convert::names_images(path);
  });
  nb::class_<CacheHandle>(module, "ImageCache")
      .def("progress", &CacheHandle::progress)
      .def("stop", &CacheHandle::stop);
  module.def("open_source", &open_source, nb::arg("options"), nb::arg("cache").none(), nb::arg("cache_jobs"));
  module.def("convert", &run_conversion, nb::arg("options"), nb::arg("progress").none());
  module.def("read_class_names", &class_names, nb::arg("path"));
  nb::class_<Plan>(module, "WorkPlan")
      .def(nb::init<const nb::dict&>(), nb::arg("options"))
      .def_prop_ro("shards", &Plan::shards)
      .def_prop_ro("inputs", &Plan::inputs)
      .def_prop_ro("digest", &Plan::digest)
      .def("found", &Plan::found)
      .def("convert_shard", &Plan::convert_shard, nb::arg("shard"))
      .def("finish", &Plan::finish);
}

}  // namespace shard::python
