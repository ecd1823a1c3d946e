// Files: whole reads, and writes that either happen or leave what was there.

#include "core/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/error.hpp"

namespace lantern {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("lantern_file_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  fs::path path(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

  fs::path folder_;
};

/// Calls body and returns the Error it throws.
template <typename Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "an Error is thrown";
  return Error(ErrorCode::kInternal, "", "none");
}

/// Files of this process cannot grow beyond a size while it lives: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(FileTest, ReadsAllBytes) {
  std::string all;
  for (int i = 0; i < 300000; ++i) all.push_back(static_cast<char>(i * 7));
  write_file_atomically(path("a"), all);
  EXPECT_EQ(read_file(path("a")), all);
  EXPECT_EQ(read_file(path("a"), 300000), all);
  write_file_atomically(path("empty"), "");
  EXPECT_EQ(read_file(path("empty")), "");
}

TEST_F(FileTest, WhatCannotBeReadIsNamed) {
  const Error missing = error_of([&] { read_file(path("none")); });
  EXPECT_EQ(missing.code(), ErrorCode::kInvalidData);
  EXPECT_EQ(std::string(missing.what()),
            "Couldn't open file: " + path("none").string() + " (No such file or directory)");
  const Error folder = error_of([&] { read_file(folder_); });
  EXPECT_EQ(folder.code(), ErrorCode::kInvalidData);
  EXPECT_NE(std::string(folder.what()).find(folder_.string()), std::string::npos);
  write_file_atomically(path("big"), std::string(2000, 'x'));
  const Error large = error_of([&] { read_file(path("big"), 1999); });
  EXPECT_EQ(large.code(), ErrorCode::kInvalidData);
  EXPECT_NE(std::string(large.what()).find("larger than 2.0 KiB"), std::string::npos)
      << large.what();
}

TEST_F(FileTest, ALimitHoldsForEndlessFiles) {
  if (!fs::exists("/dev/zero")) GTEST_SKIP();
  EXPECT_EQ(error_of([] { read_file("/dev/zero", 1_MiB); }).code(), ErrorCode::kInvalidData);
}

TEST_F(FileTest, TheTargetAppearsWithTheCommit) {
  {
    AtomicFile file(path("a"));
    file.write("one ");
    file.write(std::string_view("two\0", 4));
    EXPECT_FALSE(fs::exists(path("a")));
    EXPECT_EQ(file.temporary().parent_path(), folder_) << "a rename must not cross file systems";
    file.commit();
    EXPECT_EQ(read_file(path("a")), std::string("one two\0", 8));
  }
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileTest, WithoutACommitNothingChanges) {
  write_file_atomically(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write(std::string(1000000, 'n'));
  }
  try {
    AtomicFile file(path("a"));
    file.write("half");
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileTest, AFullDiskLeavesTheOldFile) {
  write_file_atomically(path("a"), "old");
  // Less than a stream buffer shows when it is flushed, more when it is written.
  for (const std::size_t size : {std::size_t{1500}, std::size_t{1000000}}) {
    const FullDisk full(1000);
    const Error error = error_of([&] { write_file_atomically(path("a"), std::string(size, 'n')); });
    EXPECT_EQ(error.code(), ErrorCode::kResource);
    EXPECT_EQ(error.where(), path("a").string());
    EXPECT_NE(error.message().find("File too large"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("untouched"), std::string::npos) << error.message();
    EXPECT_EQ(read_file(path("a")), "old");
    EXPECT_EQ(names(), std::vector<std::string>{"a"});
  }
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(read_file(path("a")), "new");
}

TEST_F(FileTest, ReadersOfTheOldFileKeepIt) {
  write_file_atomically(path("a"), "old");
  std::ifstream reader(path("a"));
  write_file_atomically(path("a"), "new content");
  std::string text;
  std::getline(reader, text);
  EXPECT_EQ(text, "old");  // rename puts another file there, it does not overwrite this one
  EXPECT_EQ(read_file(path("a")), "new content");
}

TEST_F(FileTest, AFolderThatIsMissingOrInTheWayIsNamed) {
  const Error missing = error_of([&] { AtomicFile file(path("none/a")); });
  EXPECT_EQ(missing.code(), ErrorCode::kResource);
  EXPECT_EQ(missing.where(), path("none/a").string());
  fs::create_directories(path("folder/inside"));
  const Error in_the_way = error_of([&] { write_file_atomically(path("folder"), "x"); });
  EXPECT_EQ(in_the_way.code(), ErrorCode::kResource);
  EXPECT_EQ(in_the_way.where(), path("folder").string());
  EXPECT_EQ(names(), std::vector<std::string>{"folder"}) << "the temporary is gone";
}

TEST_F(FileTest, AFolderWithoutWritePermissionIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const Error error = error_of([&] { AtomicFile file(path("a")); });
  EXPECT_EQ(error.code(), ErrorCode::kResource);
  EXPECT_NE(error.message().find("Permission denied"), std::string::npos);
}

TEST_F(FileTest, ALinkStaysALink) {
  fs::create_directories(path("folder"));
  write_file_atomically(path("folder/real"), "old");
  fs::permissions(path("folder/real"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("folder/real", path("link"));
  write_file_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("folder/real")), "new");
  EXPECT_EQ(fs::status(path("folder/real")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write)
      << "who may read it stays";
  fs::create_symlink("nowhere", path("dangling"));
  write_file_atomically(path("dangling"), "x");
  EXPECT_EQ(read_file(path("dangling")), "x");
}

// A rename over /dev/null would end it for the whole machine.
TEST_F(FileTest, PipesAndDevicesAreWrittenInPlace) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file_atomically(path("pipe"), "through");
  { AtomicFile abandoned(path("pipe")); }
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  close(reader);
  EXPECT_EQ(names(), std::vector<std::string>{"pipe"});
  EXPECT_EQ(fs::status(path("pipe")).type(), fs::file_type::fifo);
  EXPECT_EQ(kind_unless_file(path("pipe")), "a pipe");
  EXPECT_EQ(kind_unless_file("/dev/null"), "a device");
  EXPECT_EQ(kind_unless_file(path("none")), "");
  EXPECT_EQ(error_of([&] { read_file("/dev/null"); }).message(), "is a device, a file is needed");
}

TEST_F(FileTest, TheLongestNamesCanBeWritten) {
  const std::string longest(255, 'n');
  write_file_atomically(path(longest), "x");
  EXPECT_EQ(names(), std::vector<std::string>{longest});
}

// Libraries that write by name replace the temporary behind the open stream.
TEST_F(FileTest, ATemporaryWrittenByNameIsCommitted) {
  AtomicFile file(path("a"));
  std::ofstream(file.temporary()) << "by name";
  file.commit();
  EXPECT_EQ(read_file(path("a")), "by name");
}

TEST_F(FileTest, ARelativeNameNeedsNoFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("plain", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(path("plain")), "x");
}

}  // namespace
}  // namespace lantern
