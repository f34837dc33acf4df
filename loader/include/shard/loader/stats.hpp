// LoaderStats: what a loader delivered, and who waited for whom.
//
// Each statistic is a member with a row in members(). Sums over the parts of a loader, Python's Stats with
// its stub, and what a loader keeps of threads that ended are made from the rows: a new one is such a
// member and the line that counts it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shard/loader/loader_options.hpp"

namespace shard {

struct Statistic {
  std::string_view name;
  std::string_view sentence;
  bool now = false;  // an amount that is there now, not one that has been counted
};

struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t decoded_by_device = 0;
  std::uint64_t decoded_by_host = 0;
  double storage_seconds = 0;
  double link_seconds = 0;
  double consumer_seconds = 0;
  double starved_seconds = 0;
  TransportKind transport = TransportKind::automatic;
  std::string reason{};
  std::uint64_t registered_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t device_bytes = 0;
  // Of a data set on servers. 0 where all shards are in the cache.
  std::uint64_t fetched_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
  double fetch_seconds = 0;
  std::uint64_t arrived_shards = 0;
  std::uint64_t arrived_bytes = 0;
  std::uint64_t passed_bytes = 0;
  std::uint64_t transit_bytes = 0;
  std::string storage_problem{};
  // Of images that are not converted.
  std::uint64_t decoded_images = 0;
  std::uint64_t cached_images = 0;
  double images_seconds = 0;
  std::uint64_t replaced_images = 0;
  std::string unusable_images{};
  std::uint64_t few_bits_images = 0;

  // visit(Statistic, pointer to the member) for each, in this order.
  template <class Visit>
  static constexpr void members(Visit& visit) {
    visit(Statistic{"batches", "delivered"}, &LoaderStats::batches);
    visit(Statistic{"samples", "delivered"}, &LoaderStats::samples);
    visit(Statistic{"bytes", "stored bytes moved to the device, or served from its memory (resident)"},
          &LoaderStats::bytes);
    visit(Statistic{"decoded_by_device",
                    "images and fields of codecs packed and jpeg, whose frames go to the device"},
          &LoaderStats::decoded_by_device);
    visit(Statistic{"decoded_by_host",
                    "images and fields of codec zstd, or of data sets whose codecs differ, on the way to the "
                    "device"},
          &LoaderStats::decoded_by_host);
    visit(Statistic{"storage_seconds", "the loader waiting for pages, reads, decompression"},
          &LoaderStats::storage_seconds);
    visit(Statistic{"link_seconds", "the loader waiting for copies and transforms of earlier batches"},
          &LoaderStats::link_seconds);
    visit(Statistic{"consumer_seconds", "the loader waiting for a batch to be given back"},
          &LoaderStats::consumer_seconds);
    visit(Statistic{"starved_seconds", "the training loop waiting for a batch"},
          &LoaderStats::starved_seconds);
    visit(Statistic{"transport", "that is used"}, &LoaderStats::transport);
    visit(
        Statistic{
            "reason",
            "why this transport is used, which ones were ruled out and by what; for mapped also how many "
            "shards could not be registered and why"},
        &LoaderStats::reason);
    visit(Statistic{"registered_bytes", "of shards that the device reads where they are", true},
          &LoaderStats::registered_bytes);
    visit(Statistic{"pinned_bytes", "of pinned memory", true}, &LoaderStats::pinned_bytes);
    visit(Statistic{"device_bytes", "of device memory", true}, &LoaderStats::device_bytes);
    visit(Statistic{"fetched_bytes",
                    "received from servers since their data sets were opened (docs/remote.md)"},
          &LoaderStats::fetched_bytes);
    visit(Statistic{"requests", "sent to servers"}, &LoaderStats::requests);
    visit(Statistic{"retries", "of them, after a failure"}, &LoaderStats::retries);
    visit(Statistic{"fetch_seconds", "batches waiting for their shards"}, &LoaderStats::fetch_seconds);
    visit(
        Statistic{
            "arrived_shards",
            "whole shards that came here, fetched or found in the cache; in transit, those of every epoch"},
        &LoaderStats::arrived_shards);
    visit(Statistic{"arrived_bytes", "of them"}, &LoaderStats::arrived_bytes);
    visit(Statistic{"passed_bytes", "of shards that went through the transit area"},
          &LoaderStats::passed_bytes);
    visit(Statistic{"transit_bytes", "of shards that are in it now, on the disk", true},
          &LoaderStats::transit_bytes);
    visit(
        Statistic{
            "storage_problem",
            "what kept a shard out of the cache or the transit area, beside a lack of room, and what to do; "
            "empty: nothing. The batches are right all the same: such shards are read by range"},
        &LoaderStats::storage_problem);
    visit(Statistic{"decoded_images", "files that were read and decoded, of images that are not converted"},
          &LoaderStats::decoded_images);
    visit(Statistic{"cached_images", "of these images, taken from their cache or from memory, and not read"},
          &LoaderStats::cached_images);
    visit(Statistic{"images_seconds", "batches waiting for these"}, &LoaderStats::images_seconds);
    visit(Statistic{"replaced_images",
                    "of them, unusable ones in whose place another sample was delivered (on_error skip)"},
          &LoaderStats::replaced_images);
    visit(Statistic{"unusable_images", "the first 100 of these, a line each, with the reason"},
          &LoaderStats::unusable_images);
    visit(Statistic{"few_bits_images",
                    "of images that are not converted: files of 16 bits whose values are below 16384, of "
                    "which samples of 8 bits keep 64 levels at most"},
          &LoaderStats::few_bits_images);
  }

  // Numbers add up; of words, the later ones count where there are any.
  LoaderStats& operator+=(const LoaderStats& later);
  // What stays counted when the threads and the memory are gone.
  LoaderStats counted() const;
};

}  // namespace shard
