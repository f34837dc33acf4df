// The files of a folder with a file of annotations for each image, by the names of the images.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace shard::convert {

// Not thread-safe, but for const members.
class LabelFolder {
 public:
  // Lists the folder and all below it, but for folders that are links. Hidden files are passed over.
  // `extension`: ".txt"; files may have it in upper case. Errors: io; invalid_argument (two files that differ
  // only in the case of their extensions), by find() too.
  LabelFolder(std::filesystem::path folder, std::string extension);

  // The path of a file, relative to the folder, by the same without its extension; null if there is none.
  // It looks into folders that are links.
  const std::string* find(const std::string& name);
  void erase(const std::string& name) { files_.erase(name); }
  // All that are known, by their paths without extension.
  const std::map<std::string, std::string>& all() const noexcept { return files_; }
  const std::string& extension() const noexcept { return extension_; }

 private:
  template <class Iterator>
  void list(const std::filesystem::path& folder);
  void add(const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::string extension_;
  std::map<std::string, std::string> files_;
  std::set<std::string> listed_;  // folders
};

}  // namespace shard::convert
