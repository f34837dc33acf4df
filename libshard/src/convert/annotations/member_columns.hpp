// Columns of a WebDataset: what stands beside an image in its archive.
//
//   0001.jpg, 0001.caption            column caption: the text of the member
//   0001.jpg, 0001.json               column caption: member "caption" of the JSON object
#pragma once

#include <vector>

#include "convert/sources/scan.hpp"

namespace shard::convert {

// The columns, for the inputs that have all of them. The others leave the list and the table of labels: as
// rejects or, with Unlisted::skip, counted in list.unlisted. Errors: invalid_argument (a value that does not
// fit its column, naming image, column and value), io, resource.
std::vector<ColumnTable> columns_from_members(InputList& list, LabelTable& labels,
                                              const std::vector<ColumnSpec>& columns, Unlisted unlisted);

}  // namespace shard::convert
