#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "device/tier.hpp"

namespace lantern::device {

/// Faults of single pieces of a file tier's writes, for tests; pieces are counted from 1, 0: never.
struct FileFaults {
  std::int64_t short_piece = 0;  ///< its first half only is written at first
  std::int64_t error_piece = 0;
  int error = 0;  ///< errno of that piece
};

struct FileTierOptions {
  std::filesystem::path folder;
  Bytes bytes = 0;
  LinkSpec link;         ///< copies are not faster than this; one that does not exist: no limit
  bool io_uring = true;  ///< where the system allows it
  FileFaults faults;
};

/// One file without a name, its room taken at start and given back at the end, whatever happens in
/// between. Direct I/O where the file system has it, so that copies do not push the network out of
/// memory through the page cache. Offsets, sizes and addresses are multiples of kBlock.
class FileTier final : public Tier {
 public:
  static constexpr Bytes kBlock = 4_KiB;
  static constexpr Bytes kPiece = 4_MiB;
  static constexpr unsigned kDepth = 8;  ///< pieces under way at once

  /// Error of kResource with folder, asked and free bytes when there is no room.
  explicit FileTier(const FileTierOptions& options);
  ~FileTier() override;

  Bytes bytes() const override { return bytes_; }
  std::string name() const override;
  using Tier::read;
  using Tier::write;
  void write(Bytes offset, std::span<const std::byte> from, CopyControl& control) override;
  void read(Bytes offset, std::span<std::byte> to, CopyControl& control) override;

  bool is_direct() const { return direct_; }
  bool uses_io_uring() const;
  /// Waits until what was written is on the disk, and forgets cached pages.
  void sync();

 private:
  struct Lane;  // one direction
  void transfer(Lane& lane, Bytes offset, std::byte* data, Bytes bytes, CopyControl& control);

  std::filesystem::path folder_;
  Bytes bytes_;
  int file_ = -1;
  bool direct_ = false;
  std::unique_ptr<Lane> out_, in_;
};

/// The refusal of a file tier: folder, what was asked and what is free.
[[noreturn]] void refuse_file(const std::filesystem::path& folder, Bytes asked, Bytes free,
                              int error);

}  // namespace lantern::device
