# The libraries of others that shard's archives link, in archives beside them (SHARD_FOREIGN_ARCHIVE):
# shard::foreign, and shard::cudart, the CUDA runtime.
foreach(shard_part foreign cudart)
  get_filename_component(shard_archive "${CMAKE_CURRENT_LIST_DIR}/../../libshard_${shard_part}.a" ABSOLUTE)
  if(EXISTS "${shard_archive}" AND NOT TARGET shard::${shard_part})
    add_library(shard::${shard_part} STATIC IMPORTED)
    set_target_properties(shard::${shard_part} PROPERTIES IMPORTED_LOCATION "${shard_archive}"
                          INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};rt;m")
  endif()
endforeach()
