// KeptSizes: what the headers of images in archives say, kept from one run to the next (kept_file.hpp), so
// that the next one need not read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/archives/kept_file.hpp"
#include "convert/plan/plan.hpp"
#include "shard/jpeg_file.hpp"

namespace shard::convert {

// What the header of an image says, if samples are of any size.
struct KnownImage {
  // Of the sample. 0: not known.
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  jpeg::FrameFile file;  // no bytes: a frame does not hold it
};

class KeptSizes {
 public:
  // Below as many images, reading the headers again takes no time.
  static constexpr std::uint64_t kFewestImages = 1000;

  // `options`: all that the sizes of samples depend on, beside the images. Nothing is kept of images that are
  // not in archives on this machine.
  KeptSizes(const Plan& plan, std::string_view options);
  // By input. Empty: nothing that is believed.
  std::vector<KnownImage> read() const;
  // Before the images are looked at for write(): ArchiveState::flush().
  void flush();
  // Does nothing if an archive has changed.
  void write(const std::vector<KnownImage>& known) const;

 private:
  bool are_unchanged() const;

  const Plan& plan_;
  std::vector<std::string> states_;  // of the archives
  std::optional<KeptFile> file_;     // empty: nothing is kept
};

}  // namespace shard::convert
