// Texts of elements in the XML of a server. Pure functions of hostile text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shard {

// The texts between <NAME> (or <NAME attributes>) and the next </NAME>, as they are.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);
// The text of the first such element, with its entities (&amp; &#39; ...) replaced. Empty: there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace shard
