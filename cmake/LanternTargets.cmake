include(GNUInstallDirs)

# Compile options shared by every target of the project; never exported.
add_library(lantern_options INTERFACE)
target_compile_options(lantern_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-psabi -Wno-missing-field-initializers -Wno-restrict)
if(LANTERN_WERROR)
  # GCC 12 finds overflows in the standard library's strings that are none.
  target_compile_options(lantern_options INTERFACE -Werror -Wno-error=stringop-overflow
    -Wno-error=stringop-overread -Wno-error=array-bounds)
endif()
if(LANTERN_NATIVE)
  target_compile_options(lantern_options INTERFACE -march=native)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mprefer-vector-width=512 LANTERN_HAS_VECTOR_WIDTH)
  if(LANTERN_HAS_VECTOR_WIDTH)
    target_compile_options(lantern_options INTERFACE -mprefer-vector-width=512)
  endif()
endif()
if(LANTERN_SANITIZE)
  target_compile_options(lantern_options INTERFACE -fsanitize=${LANTERN_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(lantern_options INTERFACE -fsanitize=${LANTERN_SANITIZE})
endif()

# lantern_add_folder(<folder> SOURCES ... LINK ...): one folder under src/ is one static library.
function(lantern_add_folder folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(lantern_${folder} STATIC ${ARG_SOURCES})
  target_include_directories(lantern_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(lantern_${folder} PRIVATE lantern_options PUBLIC ${ARG_LINK})
  set_target_properties(lantern_${folder} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# lantern_add_test(<name> SOURCES ... LINK ... [LABELS ...]): one gtest program, one ctest entry.
function(lantern_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE lantern_options ${ARG_LINK} GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE
    LANTERN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LANTERN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_test(NAME ${name} COMMAND test_${name})
  # Idle OpenMP threads sleep: spinning ones starve the tests beside them.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()
