#include "api/guard.hpp"

#include <omp.h>

#include <exception>
#include <new>
#include <system_error>

namespace lantern::api {

void rethrow_as_exception() {
  try {
    throw;
  } catch (const Exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Exception(ErrorCode::kResource, "", "out of memory; a smaller batch or size needs less");
  } catch (const std::system_error& error) {  // the system refuses threads, files or memory
    throw Exception(ErrorCode::kResource, "", error.what());
  } catch (const std::exception& error) {
    throw Exception(ErrorCode::kInternal, "", std::string("internal error: ") + error.what());
  }
}

TeamSize::TeamSize() : before_(omp_get_max_threads()) {}
TeamSize::~TeamSize() { omp_set_num_threads(before_); }

}  // namespace lantern::api
