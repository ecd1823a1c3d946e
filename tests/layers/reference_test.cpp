// The key tables as a whole.
#include <gtest/gtest.h>

#include <set>

#include "layers/layer_def.hpp"
#include "support.hpp"

namespace lantern::layers {
namespace {

TEST(SectionReference, HasEverySectionOnceAndEveryKeyDocumented) {
  std::set<std::string_view> names;
  std::size_t keys = 0;
  for (const cfg::SectionInfo& section : section_reference()) {
    EXPECT_TRUE(names.insert(section.name).second) << section.name;
    for (const std::string_view alias : section.aliases)
      EXPECT_TRUE(names.insert(alias).second) << alias;
    std::set<std::string_view> seen;
    for (const cfg::KeyInfo& key : section.keys) {
      EXPECT_TRUE(seen.insert(key.name).second) << section.name << " " << key.name;
      EXPECT_FALSE(key.doc.empty()) << section.name << " " << key.name;
    }
    keys += section.keys.size();
  }
  EXPECT_EQ(section_reference().size(), 34U);
  EXPECT_EQ(names.size(), 43U);
  EXPECT_GE(keys, 314U);  // Darknet's own pairs; ours come on top
  EXPECT_EQ(common_reference().keys.size(), 9U);
}

TEST(SectionReference, DefinitionsStandInTheOrderOfTheVariant) {
  const auto defs = layer_defs();
  for (std::size_t i = 0; i < defs.size(); ++i) {
    Diagnostics diagnostics;
    const cfg::Section section{std::string(defs[i]->name), 1, {}};
    cfg::SectionReader reader("net.cfg", section, diagnostics);
    EXPECT_EQ(defs[i]->read(reader).index(), i) << defs[i]->name;
  }
}

TEST(SectionReference, HelpShowsKeysOfALayerByNameOrAlias) {
  const auto section = find_section("max");
  ASSERT_TRUE(section.has_value());
  const std::string help = cfg::help_text(*section);
  EXPECT_NE(help.find("[maxpool]  Largest value of each window."), std::string::npos) << help;
  EXPECT_NE(help.find("size (default = stride)"), std::string::npos) << help;
  EXPECT_NE(help.find("stopbackward"), std::string::npos) << help;
  EXPECT_FALSE(find_section("nosuch").has_value());
  EXPECT_TRUE(find_section("network").has_value());
}

}  // namespace
}  // namespace lantern::layers
