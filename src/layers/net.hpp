#pragma once

#include <span>

#include "cfg/key.hpp"
#include "layers/network.hpp"

namespace lantern::layers {

extern const std::span<const cfg::Key<NetSpec>> kNetKeys;

/// Names of Policy; the first of two for one value is the one to write.
std::span<const cfg::Word> policy_words();

/// Reads [net], applies the overrides and checks what [net] alone can tell.
NetSpec read_net(cfg::SectionReader& reader, const Overrides& overrides);

}  // namespace lantern::layers
