// What messages of a conversion advise about the data set in its folder. A conversion into an object store
// can do none of it: to_store.cpp puts something else in their place. Each is a part of a sentence, as it
// stands in the message.
#pragma once

#include <filesystem>
#include <string>

namespace shard::convert {

inline constexpr const char* kAdviseForOptions =
    "use another folder, or `overwrite` to replace the data set there";
inline constexpr const char* kAdviseForInputs =
    "use `refresh` to convert only the shards whose inputs changed, `overwrite` to convert all of them, or "
    "another folder";
inline constexpr const char* kAdviseForLostShard =
    "use `refresh` to convert the shards whose inputs changed, or `overwrite` to convert everything";
inline constexpr const char* kAdviseForPlan =
    "use `overwrite` to replace this unfinished conversion by a new one";
inline constexpr const char* kAdviseForParts =
    "use `overwrite` to replace all of it by these inputs alone, or another folder";
inline constexpr const char* kAdviseToAppend = "; use `append` to add them";
inline constexpr const char* kAdviseForChange = "and with `refresh` if it reports changed inputs";
// The end of the reason of a reject with more pixels than the bound.
inline constexpr const char* kPixelBoundAdvice =
    " (--max-pixels), of a finished data set together with --refresh";

// The same message for a conversion that works in `folder`, in `work`, and writes to `address`:
// it names the address, and advises what helps there.
std::string advice_for_store(std::string message, const std::filesystem::path& folder,
                             const std::filesystem::path& work, const std::string& address);

}  // namespace shard::convert
