#pragma once

// The whole C++ interface of Lantern; docs/api.md has examples.
#include "lantern/error.hpp"
#include "lantern/net.hpp"
