// Report: where the time of a batch goes, as a table on standard output.
//
//   Load      the consumer waits in Loader::next()                                       host clock
//   Transfer  the stream waits in Batch::wait_on() for the batch's copy and transform    backend's marks
//   Train     the network, forward, backward and update                                  backend's marks
//   Total     from asking for a batch to being done with it                              host clock
//
// Each line has the means of the batches since the one before it, in ms. On CUDA, work is only queued while
// the loop runs: the stream is waited for once a line, and Load overlaps with Train.
#pragma once

#include <chrono>
#include <cstdint>

#include "backend.hpp"
#include "shard/loader/loader.hpp"

namespace train {

class Report {
 public:
  // `backend` is borrowed: it makes three marks a batch, around wait_on and behind the training.
  Report(Backend& backend, std::uint64_t print_every) : backend_(backend), print_every_(print_every) {}

  void begin_epoch(std::uint64_t epoch);  // prints the head
  void asked();                           // before next()
  void loaded();                          // next() has returned a batch
  void done(std::uint64_t batch_index);   // all work of the batch is queued
  void end_epoch();  // prints the means of what this run did of the epoch, loss and accuracy of the whole

  static void print_stats(const shard::LoaderStats& stats);

 private:
  struct Sums {
    double load_ms = 0;
    double transfer_ms = 0;
    double train_ms = 0;
    double total_ms = 0;
    double batches = 0;
    double samples = 0;
  };
  Totals collect();  // completes line_ and adds it to all_; what the batches of the line add to the totals
  void print(const char* batch, const Sums& sums, const Totals& totals) const;

  Backend& backend_;
  std::uint64_t print_every_;
  std::uint64_t epoch_ = 0;
  std::chrono::steady_clock::time_point asked_;
  Sums line_;
  Sums all_;
  Totals totals_;  // when line_ began
};

}  // namespace train
