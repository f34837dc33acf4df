// A library that is looked for when the program runs: shardbench starts without it.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>

namespace shard::bench {

class SharedLibrary {  // stays loaded
 public:
  // The first of `files` that can be loaded, here or in the folder of the CUDA toolkit. Errors: unsupported,
  // with `name` and the reason.
  SharedLibrary(const char* name, std::initializer_list<std::string> files);
  // Errors: unsupported.
  template <class Function>
  void get(Function*& function, const char* symbol) const {
    void* const found = find(symbol);
    std::memcpy(&function, &found, sizeof found);
  }

 private:
  void* find(const char* symbol) const;
  void* handle_ = nullptr;
  std::string file_;
};

}  // namespace shard::bench
