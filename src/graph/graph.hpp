#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace lantern::graph {

enum class TensorId : std::uint32_t {};
constexpr std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

/// What a tensor is for; it decides how long it lives (see `is_persistent`).
enum class Role : std::uint8_t {
  kInput,      ///< fed from outside before a program runs (images, truth)
  kParameter,  ///< trained values
  kState,  ///< kept between iterations but not trained by gradients (momentum, rolling statistics)
  kParameterGradient,  ///< summed over image groups and subdivisions, read by the update
  kActivation,         ///< made by forward
  kGradient,   ///< made by backward; holds the negative gradient, as the reference's delta does
  kStatistic,  ///< per-channel values of one mini-batch
  kScratch,    ///< lives for one op
  kOutput,     ///< read by the host after a program has run
};
std::string_view to_string(Role role);

/// Persistent tensors keep their bytes from one program run to the next.
constexpr bool is_persistent(Role role) {
  return role == Role::kInput || role == Role::kParameter || role == Role::kState ||
         role == Role::kParameterGradient || role == Role::kOutput;
}

/// The programs of one network; they share parameters and one arena.
enum class ProgramKind : std::uint8_t {
  kMiniBatch,  ///< forward, loss, backward; run `subdivisions` times an iteration
  kCheck,      ///< looks for non-finite parameter gradients before anything is changed
  kUpdate,     ///< folds gradients into parameters, commits rolling statistics
  kForward,    ///< inference with rolling statistics
};
inline constexpr int kProgramKinds = 4;
std::string_view to_string(ProgramKind kind);

struct TensorType {
  Shape shape;
  DType dtype = DType::kF32;
};

struct Tensor {
  std::string name;
  TensorType type;
  Role role = Role::kActivation;
};

/// Parameters of an op instance; every op kind derives its own.
struct OpParams {
  OpParams() = default;
  OpParams(const OpParams&) = default;
  OpParams& operator=(const OpParams&) = default;
  virtual ~OpParams() = default;
  /// "groups=1 size=3x3 ...", part of the text form; must tell different parameters apart.
  virtual std::string describe() const { return {}; }
};

struct OpDef;

struct Op {
  const OpDef* def = nullptr;
  std::shared_ptr<const OpParams> params;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  /// Parallel to outputs: the op adds to what is there instead of overwriting it.
  std::vector<bool> accumulates;
  ProgramKind program = ProgramKind::kForward;
  int layer = -1;  ///< cfg layer that asked for it, -1 for none; for messages and tables
  bool differentiable = true;  ///< false: no gradient passes through, though its kind could

  template <typename P>
  const P& params_as() const {
    return static_cast<const P&>(*params);
  }
};

class Graph;
class GradientBuilder;

/// What an op kind is. Instances are constants of the ops library.
struct OpDef {
  std::string_view name;
  /// Types of the outputs; throws an internal Error on inputs that do not fit.
  std::vector<TensorType> (*infer)(const OpParams& params,
                                   std::span<const TensorType> inputs) = nullptr;
  /// Floating point operations, multiply-adds counted twice; null for data movement.
  double (*flops)(const Graph& graph, const Op& op) = nullptr;
  /// Emits the ops that turn gradients of the outputs into gradients of the inputs; null: no
  /// gradient passes.
  void (*gradient)(GradientBuilder& builder, const Op& op) = nullptr;
};

/// Ops in execution order over tensors. One graph holds all programs of a network.
class Graph {
 public:
  TensorId add_tensor(std::string name, TensorType type, Role role);

  /// Appends an op; outputs are made from the op's shape rule, named `name` (and `name.1`, ...).
  std::vector<TensorId> add_op(const OpDef& def, std::shared_ptr<const OpParams> params,
                               std::vector<TensorId> inputs, ProgramKind program, int layer,
                               const std::string& name, Role role = Role::kActivation);
  /// Appends an op that writes given tensors.
  void add_op_to(const OpDef& def, std::shared_ptr<const OpParams> params,
                 std::vector<TensorId> inputs, std::vector<TensorId> outputs,
                 std::vector<bool> accumulates, ProgramKind program, int layer);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Op>& ops() const { return ops_; }
  const Tensor& tensor(TensorId id) const { return tensors_[index(id)]; }
  const TensorType& type(TensorId id) const { return tensors_[index(id)].type; }
  void set_role(TensorId id, Role role) { tensors_[index(id)].role = role; }
  /// Ops added from now on let gradients through, or not.
  void set_differentiable(bool on) { differentiable_ = on; }
  std::optional<TensorId> find(std::string_view name) const;

  /// One line per tensor that comes from outside and per op; the text form of the `training` stage.
  std::string dump() const;
  /// Every tensor is written before it is read within its program, or persistent; types agree.
  /// Internal Error if not.
  void verify() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
  bool differentiable_ = true;
};

}  // namespace lantern::graph
