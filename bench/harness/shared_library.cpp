#include "harness/shared_library.hpp"

#include <dlfcn.h>

#include "shard/error.hpp"

namespace shard::bench {

SharedLibrary::SharedLibrary(const char* name, std::initializer_list<std::string> files) {
  std::string reason;
  for (const std::string& file : files)
    for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
      file_ = folder + file;
      handle_ = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) return;
      if (reason.empty()) reason = ::dlerror();
    }
  throw Error(ErrorCode::unsupported, std::string(name) + " cannot be loaded: " + reason);
}

void* SharedLibrary::find(const char* symbol) const {
  void* const found = ::dlsym(handle_, symbol);
  if (found == nullptr) throw Error(ErrorCode::unsupported, file_ + " has no " + symbol);
  return found;
}

}  // namespace shard::bench
