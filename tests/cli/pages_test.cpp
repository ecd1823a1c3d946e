// Pages of docs/ that the program writes.
#include <algorithm>

#include "cli/program.hpp"
#include "layers/compatibility.hpp"

namespace lantern::cli {
namespace {

namespace fs = std::filesystem;

fs::path source(const std::string& path) { return fs::path(LANTERN_SOURCE_DIR) / path; }

TEST(Pages, TheCfgReferenceIsUpToDate) {
  const WorkFolder folder;
  const Outcome outcome = folder.run("help cfg -markdown");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.prints("| `ignore_thresh` |"));
  EXPECT_EQ(slurp(source("docs/cfg-reference.md")), outcome.out)
      << "write it anew: lantern help cfg -markdown > docs/cfg-reference.md";
  EXPECT_TRUE(folder.run("help yolo -markdown").prints("| `ignore_thresh` |"));
  EXPECT_EQ(folder.run("help train -markdown").code, 2);
}

TEST(Pages, TheCompatibilityPageIsUpToDate) {
  const WorkFolder folder;
  const Outcome outcome = folder.run("help compatibility -markdown");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.prints("| `loss_scale` | refused |"));
  EXPECT_TRUE(outcome.prints("| `ignore_thresh` | as Darknet |"));
  EXPECT_EQ(slurp(source("docs/compatibility.md")), outcome.out)
      << "write it anew: lantern help compatibility -markdown > docs/compatibility.md";
  const Outcome brief = folder.run("help compatibility");
  EXPECT_TRUE(brief.prints("ema_alpha"));
  EXPECT_FALSE(brief.prints("ignore_thresh"));
}

// The page says what is refused: `detector train` does so, by name, before it starts.
TEST(Pages, RefusedKeysOfNetAreRefusedByName) {
  const WorkFolder folder("39-no-display");
  const std::string cfg = slurp(folder / "net.cfg");
  const std::size_t first = cfg.find("[net]\n") + 6;
  int tried = 0;
  for (const layers::KeyStatus& status : layers::key_statuses()) {
    if (status.section != "net" || status.refused.empty()) continue;
    const std::string line = std::string(status.keys) + "=" + std::string(status.refused) + "\n";
    put(folder / "refused.cfg", std::string(cfg).insert(first, line));
    const Outcome outcome = folder.run("detector train obj.data refused.cfg -dont_show");
    EXPECT_NE(outcome.code, 0) << line;
    EXPECT_NE(outcome.code, 1) << line << outcome.err;
    EXPECT_TRUE(outcome.says(std::string(status.keys))) << line << outcome.err;
    EXPECT_FALSE(folder.has("backup/refused_last.weights")) << line;
    ++tried;
  }
  EXPECT_GE(tried, 15);
}

std::vector<std::string> rows_of(const std::string& page) {
  std::vector<std::string> rows;
  std::istringstream stream(page);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("| `")) rows.push_back(line);
  }
  return rows;
}

TEST(Pages, TheTableOfNetworksIsUpToDate) {
  const WorkFolder folder;
  const std::string page = slurp(source("docs/models.md"));
  const std::string ours = "'" + source("tests/data/cfg").string() + "'";
  const Outcome outcome = folder.run("models " + ours);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> rows = rows_of(outcome.out);
  EXPECT_EQ(rows.size(), 20U);
  const std::vector<std::string> listed = rows_of(page);
  const std::string hint =
      "write it anew: lantern models tests/data/cfg ../shared/cfg > docs/models.md";
  for (const std::string& row : rows)
    EXPECT_EQ(std::ranges::count(listed, row), 1) << row << "\n" << hint;
  if (!fs::exists(source("../shared/cfg"))) GTEST_SKIP() << "the shared reference set is absent";
  const Outcome all = folder.run("models " + ours + " '" + source("../shared/cfg").string() + "'");
  EXPECT_EQ(all.out, page) << hint;
}

TEST(Pages, NetworksHaveTheirFigures) {
  const WorkFolder folder;
  put(folder / "a.cfg",
      "[net]\nwidth=12\nheight=12\nchannels=2\nloss_scale=8\nmax_batches=1\n"
      "[convolutional]\nfilters=16\nsize=1\nactivation=linear\n[cost]\n");
  put(folder / "xnor.cfg",
      "[net]\nwidth=12\nheight=12\nchannels=2\n[convolutional]\nxnor=1\nsize=1\n[cost]\n");
  put(folder / "broken.cfg", "[net]\nwidth=12\nheight=12\nchannels=2\n[maxpool]\nsize=0\n");
  const Outcome outcome = folder.run("models a.cfg xnor.cfg broken.cfg");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 16 * 2 weights and 16 biases; 2 * 16 * 2 * 144 operations.
  EXPECT_TRUE(outcome.prints("| 12x12x2 | 2 | 48 | 0.000 |")) << outcome.out;
  EXPECT_TRUE(outcome.prints("| runs; trains without `loss_scale` |")) << outcome.out;
  EXPECT_TRUE(outcome.prints("refused: [convolutional] binary and xnor")) << outcome.out;
  EXPECT_TRUE(outcome.prints("| `broken.cfg` | | | | | | | refused: [maxpool] size is 0"))
      << outcome.out;
  EXPECT_EQ(folder.run("models none.cfg").code, 3);
  fs::create_directory(folder / "empty");
  const Outcome empty = folder.run("models empty");
  EXPECT_EQ(empty.code, 3);
  EXPECT_TRUE(empty.says("has no cfg files")) << empty.err;
}

}  // namespace
}  // namespace lantern::cli
