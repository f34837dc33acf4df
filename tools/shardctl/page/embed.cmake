# Writes the files of the page as string literals into a C++ source.
#
#   cmake -DFOLDER=... -DOUT=page_assets.cpp -P embed.cmake
set(text "// Made by tools/shardctl/page/embed.cmake from the files beside it.\n#include \"shardctl/page/assets.hpp\"\n\nnamespace shard::ctl {\n")
foreach(name index.html page.css page.js)
  file(READ "${FOLDER}/${name}" content)
  string(REGEX REPLACE "[^a-z]" "_" identifier "${name}")
  string(APPEND text "\nconst std::string_view k_${identifier} = R\"page(${content})page\";\n")
endforeach()
string(APPEND text "\n}  // namespace shard::ctl\n")
file(WRITE "${OUT}" "${text}")
