#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layers/network.hpp"

namespace lantern::test {

using Values = std::vector<double>;
using Arrays = std::map<std::string, Values>;  ///< by name in the weights file

/// A recurrent section in plain loops and double precision, one time step after the other
/// (reference/layers.md 4.19 to 4.23). Gradients of it are differences of its values.
class RecurrentReference {
 public:
  /// Of the layer's formula for `images` sequences. `time_steps` as in [net]: the default of
  /// state_constrain follows it.
  RecurrentReference(const layers::Layer& layer, std::int64_t images, int time_steps);

  /// Output [T][images][c][h][w] for an input alike; goes on from `states` and leaves the last
  /// ones there. With `training`, batch statistics; rolling ones are updated in `arrays`.
  Values run(const Values& input, Arrays& arrays, bool training);

  /// By name ("h", "c", "s", "frames"), [images][...]; absent: zero.
  std::map<std::string, Values> states;
  /// Values that gradients do not follow are those of the run that recorded: moves of parameters
  /// leave them, or a part of them, as they were. For history and time_normalizer.
  void start_recording() { recording_ = true, held_.clear(); }
  void hold_recorded() { recording_ = false, next_held_ = 0; }

 private:
  Values apply(const std::string& part, ops::Activation activation, const Values& x);
  Values activated(Values x, ops::Activation activation) const;
  Values plain_step(const Values& x);
  Values gru_step(const Values& x);
  Values lstm_step(const Values& x);
  Values conv_lstm_step(const Values& x);
  Values history_step(const Values& x);
  Values& state(const std::string& name, std::int64_t values_per_image);
  /// x, or part * x + (1 - part) * what x was when recorded.
  Values held(const Values& x, double part);
  Values joined_channels(const Values& a, std::int64_t ca, const Values& b, std::int64_t cb) const;

  const layers::Layer& layer_;
  std::int64_t images_, spatial_;
  int time_steps_;
  Arrays* arrays_ = nullptr;
  bool training_ = false, recording_ = false;
  std::vector<Values> held_;
  std::size_t next_held_ = 0;
};

}  // namespace lantern::test
