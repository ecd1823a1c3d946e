#pragma once

#include <string>

namespace lantern::cli {

/// docs/cfg-reference.md: every section and key, made from the key tables.
std::string cfg_reference();

/// docs/compatibility.md: what this engine does with every section and key, made from the key
/// tables and the table of their statuses.
std::string compatibility_page();
/// For a terminal: what is not as in Darknet.
std::string compatibility_text();

}  // namespace lantern::cli
