// ForwardingStream: a stream that hands every call on to another one; what a test changes it overrides.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "shard/loader/device.hpp"

namespace shard::testing {

class ForwardingStream : public Stream {
 public:
  explicit ForwardingStream(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}
  void copy(std::span<const CopyItem> items) override { inner_->copy(items); }
  void upload(const CopyItem& item) override { inner_->upload(item); }
  void gather(std::span<const CopyItem> items) override { inner_->gather(items); }
  void transform(const TransformWork& work) override { inner_->transform(work); }
  void follow(const TargetWork& work) override { inner_->follow(work); }
  void index_jpeg(const JpegIndexWork& work) override { inner_->index_jpeg(work); }
  void copy_to_host(std::span<const CopyItem> items) override { inner_->copy_to_host(items); }
  Event record() override { return inner_->record(); }
  void wait(const Event& event) override { inner_->wait(event); }
  void synchronize() override { inner_->synchronize(); }
  void* native() noexcept override { return inner_->native(); }

 private:
  std::unique_ptr<Stream> inner_;
};

}  // namespace shard::testing
