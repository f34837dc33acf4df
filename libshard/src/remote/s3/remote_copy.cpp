#include "shard/remote_copy.hpp"

#include "remote/s3/remote_folder.hpp"

namespace shard {

struct RemoteCopy::Impl {
  std::shared_ptr<const RemoteFolder> folder;
  HttpClient client{};  // not that of the folder, which loaders share
};

RemoteCopy::RemoteCopy(const std::string& folder) : impl_(new Impl{RemoteFolder::open(folder)}) {}
RemoteCopy::~RemoteCopy() = default;

void RemoteCopy::copy_to(int fd, const std::string& name, std::uint64_t file_bytes, std::uint64_t begin,
                         std::uint64_t size_bytes) {
  impl_->client.copy_to(*impl_->folder->object(name, file_bytes), begin, size_bytes, fd, 0);
}

}  // namespace shard
