// Further images of the inputs: which file belongs to which input, and what is stored of them.
//
//   images/ant/1.jpg   masks/ant/1.png     the same path, also with another extension
//
// A folder is listed once, before anything is decoded, so the files are part of the plan as the images are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convert/sources/scan.hpp"
#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

struct FurtherField {
  FurtherImages from;
  FieldSpec spec;
  // With which the files are resized, cropped and stored.
  image::PreprocessOptions preprocess;
  // Of each input, relative to from.folder. Empty: it has none, and zeros are stored.
  std::vector<std::string> paths;
  // Of these files. kUnknownSize (plan.hpp): it cannot be looked at.
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> stamps = {};  // file_stamp(); empty: they may change
};

class FurtherFolders {
 public:
  // Lists the folders. `options` must outlive the object. Errors: those of scan();
  // invalid_argument (pages of files have no further images).
  explicit FurtherFolders(const Options& options);
  // Notes what is missing. Inputs without a further image leave the list if options.missing says so.
  // Errors: invalid_argument (no input has one, two files fit an input, what options.missing refuses),
  // naming folder and input.
  void choose(InputList& list);
  // Of the inputs that are left in the end. `preprocess` is that of the images. Errors: as above;
  // invalid_argument (no file tells dtype and channels; a codec or dtype that the field cannot have).
  std::vector<FurtherField> fields(const InputList& list, const image::PreprocessOptions& preprocess) const;
  const std::vector<FurtherCounts>& counts() const noexcept { return counts_; }

 private:
  struct Folder {
    const FurtherImages* from = nullptr;
    InputList list;
  };
  const Options& options_;
  std::vector<Folder> folders_;
  std::vector<FurtherCounts> counts_;
};

// How the fields were made, for the record of the data set: "mask nearest classes 21 ignore 255,
// depth bilinear".
std::string record_of_further(const std::vector<FurtherField>& fields);
// The fields of a data set, to make their samples again from their files. `folders`: names and folders; all
// else is as recorded. `inputs`: the paths of the samples, by their index. Errors: invalid_argument (no such
// field, no file fits), unsupported (not made by shardify), io.
std::vector<FurtherField> recorded_fields(const DatasetInfo& info, const std::vector<FurtherImages>& folders,
                                          const InputList& inputs, std::uint64_t max_pixels);

}  // namespace shard::convert
