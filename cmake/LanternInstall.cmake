# The library that programs link, shared and static, and what `cmake --install` gives: headers, libraries, a CMake
# package (lantern::lantern, lantern::static) and pkg-config files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The folders that include/lantern/ needs, each an archive of its own in this build.
set(LANTERN_LIBRARY_FOLDERS core cfg device graph ops ops_yolo_loss plan layers exec data io eval api)
set(objects "")
foreach(folder IN LISTS LANTERN_LIBRARY_FOLDERS)
  list(APPEND objects $<TARGET_OBJECTS:lantern_${folder}>)
endforeach()

# Only what the headers declare is visible outside: no program meets our own names, or those of another version.
add_library(lantern_shared SHARED $<TARGET_OBJECTS:lantern_api>)
target_link_libraries(lantern_shared PRIVATE lantern_options lantern_api)
target_link_options(lantern_shared PRIVATE
  "LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/lantern.map" "LINKER:--no-undefined")
set_property(TARGET lantern_shared APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/lantern.map)
set_target_properties(lantern_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  EXPORT_NAME lantern)
if(LANTERN_SANITIZE)  # the runtime of the sanitizers comes from the program
  target_link_options(lantern_shared PRIVATE "LINKER:-z,undefs")
endif()

# One archive; its dependencies are found by the package when its component `static` is asked for.
find_package(JPEG REQUIRED)
find_package(OneDnn REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PNG REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(Uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(WebP REQUIRED IMPORTED_TARGET libwebp)
add_library(lantern_static STATIC ${objects})
set_target_properties(lantern_static PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME static)
target_link_libraries(lantern_static PRIVATE fmt::fmt JPEG::JPEG OneDnn::OneDnn OpenMP::OpenMP_CXX PNG::PNG
  PkgConfig::Uring PkgConfig::WebP spdlog::spdlog Threads::Threads)

foreach(library lantern_shared lantern_static)
  target_include_directories(${library} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${library} PUBLIC cxx_std_20)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME lantern
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lantern)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lantern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS lantern_shared EXPORT lanternSharedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lantern_static EXPORT lanternStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT lanternSharedTargets NAMESPACE lantern:: DESTINATION ${package})
install(EXPORT lanternStaticTargets NAMESPACE lantern:: DESTINATION ${package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lanternConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/lanternConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/lanternConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindOneDnn.cmake DESTINATION ${package})
# The installed tree may be moved: paths are relative to the .pc file.
file(RELATIVE_PATH LANTERN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(kind lantern lantern-static)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${kind}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${kind}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${kind}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
