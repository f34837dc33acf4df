// The folder of `shardbench synth`: the path of a picture, its signature, and whether a folder may be written
// to.
#pragma once

#include <filesystem>
#include <string>

#include "data/photo.hpp"
#include "data/synth.hpp"

namespace shard::bench {

inline constexpr const char* kTemporarySuffix = ".tmp";

std::filesystem::path photo_path(const PhotoPlan& plan);  // "class_03/img_000123.jpg"

// The COM segment of each picture: "shardbench synth 1 seed 0 classes 10 index 123". The command recognises
// its pictures by it.
std::string photo_comment(const PhotoPlan& plan);

// Makes the folder and those of its classes. Refuses a folder with files that the same command would not
// make. Removes temporary files that a killed run left. Errors: invalid_argument (what was found, what to
// do), io.
void prepare_folder(const SynthOptions& options);

}  // namespace shard::bench
