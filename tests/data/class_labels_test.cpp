#include "data/class_labels.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "test_files.hpp"

namespace lantern::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ClassMatcher matcher(const std::vector<std::string>& labels) { return {labels, "labels.list"}; }

struct Path {
  std::vector<std::string> labels;
  std::string path;
  std::vector<int> classes;
};

TEST(ClassMatcher, FolderOrPartOfTheNameThenTheLongestSubstring) {
  const std::vector<Path> paths{
      {{"cat", "dog"}, "classification/train/1_dog.png", {1}},
      {{"cat", "dog"}, "classification/train/2_cat.png", {0}},
      {{"person", "noperson"}, "p/2_noperson.png", {1}},
      {{"person", "noperson"}, "p/1_person.png", {0}},
      {{"person", "noperson"}, "p/xnopersony.png", {1}},  // substring: the longest
      {{"dog", "hot_dog"}, "a/3_hot_dog.jpg", {1}},       // not the part inside it
      {{"dog", "hot_dog"}, "hot_dog/17.jpg", {1}},
      {{"car", "bus"}, "cart/bus-12.final.jpg", {1}},
      {{"rain", "sun"}, "train\\sun\\1.jpg", {1}},
      {{"jpg", "sun"}, "x/sun_1.jpg", {1}},  // the ending is no part of the name
      {{"n01440764", "n01443537"}, "val/n01443537/n01443537_2.JPEG", {1}},
      {{"a", "b"}, "x/12.png", {}},
      {{"ab", "ba"}, "x/abba.png", {0, 1}},  // both fit alike
      {{"cat", "dog"}, "dog/cat_3.png", {0, 1}},
      {{"été", "hiver"}, "x/1_été.png", {0}},
  };
  for (const Path& path : paths) {
    EXPECT_EQ(matcher(path.labels).match(path.path).classes, path.classes) << path.path;
  }
}

TEST(ClassMatcher, FoldersAboveTheDataCountOnlyWhenNothingElseDoes) {
  const ClassMatcher cars = matcher({"car", "bus"});
  const std::string shared = "/home/car/set/";
  EXPECT_THAT(cars.match(shared + "bus/1.png", shared.size()).classes, ElementsAre(1));
  EXPECT_THAT(cars.match(shared + "img/xbus1.png", shared.size()).classes, ElementsAre(0));
  EXPECT_THAT(cars.match(shared + "img/1.png", shared.size()).classes, ElementsAre(0));
  EXPECT_THAT(cars.match("/home/cart/" + std::string("xbus.png"), 11).classes, ElementsAre(1));
}

TEST(ClassMatcher, LongNamesTakeNoLongerThanTheirLabels) {
  const std::vector<std::string> labels{"hot_dog", "dog"};
  const ClassMatcher matcher(labels, "labels");
  std::string name;
  for (int i = 0; i < 100000; ++i) name += "a_";
  EXPECT_TRUE(matcher.match(name + "b.png").classes.empty());
  EXPECT_EQ(matcher.match(name + "hot_dog.png").classes, std::vector<int>{0});
}

TEST(ClassMatcher, LabelsThatCannotWorkAreRefused) {
  try {
    matcher({"a", "", "b"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("labels.list:2"));
  }
  EXPECT_THROW(matcher({"a", "b", "a"}), Error);
}

class ClassList : public ::testing::Test {
 protected:
  WorkFolder folder_;
  ClassMatcher matcher_ = matcher({"cat", "dog", "owl"});
};

TEST_F(ClassList, ResolvesEveryImageOnceAndNamesTheOthers) {
  folder_.write("list.txt",
                "x/cat/1.png\nx/dog/2.png\nx/3.png\nx/cat/dog_4.png\nx/5.png\tdog\n"
                "x/6.png\t0\nx/7.png\tcow\nx/8.png\t3\nx/cat/1.png\n");
  const ClassSet set = read_class_list("list.txt", matcher_);
  EXPECT_THAT(set.images, ElementsAre("x/cat/1.png", "x/dog/2.png", "x/cat/dog_4.png", "x/5.png",
                                      "x/6.png", "x/cat/1.png"));
  EXPECT_THAT(set.classes, ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(set.counts, ElementsAre(4, 3, 0));
  ASSERT_EQ(set.further.size(), 1U);
  EXPECT_THAT(set.further.at(2), ElementsAre(1));
  EXPECT_EQ(set.listed, 9);
  ASSERT_EQ(set.issues.size(), 3U);
  const std::string text = set.summary(matcher_.labels());
  EXPECT_THAT(text, HasSubstr("6 images of 3 classes, 1 of them listed again"));
  EXPECT_THAT(text, HasSubstr("1 classes without an image: owl"));
  EXPECT_THAT(text, HasSubstr("3 images with no class are left out"));
  EXPECT_THAT(text, HasSubstr("x/3.png: no label is part of its path"));
  EXPECT_THAT(text, HasSubstr("x/7.png: 'cow' is no label and no class number"));
  EXPECT_THAT(text, HasSubstr("x/8.png: '3' is no label and no class number"));
  EXPECT_THAT(text, HasSubstr("1 images are of several classes"));
  EXPECT_THAT(text, HasSubstr("x/cat/dog_4.png: 'cat' and 'dog'"));
}

TEST_F(ClassList, TooManyWithoutAClassAreOneError) {
  folder_.write("list.txt", "x/cat/1.png\nx/dog/2.png\nx/3.png\n");
  const ClassSet set = read_class_list("list.txt", matcher_);
  check_class_limit(set, 0.5, false);
  for (const auto& [limit, strict] : {std::pair{0.3, false}, {0.5, true}}) {
    try {
      check_class_limit(set, limit, strict);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
      EXPECT_THAT(error.what(), HasSubstr("list.txt:3"));
      EXPECT_THAT(error.what(), HasSubstr("1 of 3 images"));
    }
  }
  folder_.write("several.txt", "x/owl/1.png\nx/cat/dog_2.png\n");
  const ClassSet several = read_class_list("several.txt", matcher_);
  check_class_limit(several, 0, false);
  try {
    check_class_limit(several, 1, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("several.txt:2"));
    EXPECT_THAT(error.what(), HasSubstr("'cat' and 'dog'"));
  }
  folder_.write("none.txt", "x/1.png\n");
  EXPECT_THROW(read_class_list("none.txt", matcher_), Error);
}

}  // namespace
}  // namespace lantern::data
