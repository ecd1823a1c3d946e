#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// jpeglib.h needs FILE and size_t before it.
#include <jerror.h>
#include <jpeglib.h>

#include "core/error.hpp"
#include "data/codec.hpp"

namespace lantern::data::codec {

namespace {

/// libjpeg reports by callbacks and must leave by longjmp: no object with a destructor lives in the
/// frames between.
struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
  bool damaged;
};

void on_error(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  info->err->format_message(info, manager->message);
  std::longjmp(manager->leave, 1);
}

/// Warnings that mean lost picture data are errors; harmless ones (bytes between markers, odd
/// versions) pass.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC: {
      auto* manager = reinterpret_cast<ErrorManager*>(info->err);
      info->err->format_message(info, manager->message);
      manager->damaged = true;
      std::longjmp(manager->leave, 1);
    }
    default:
      break;
  }
}

/// A small file may hold thousands of progressive scans over a large picture.
void on_progress(j_common_ptr info) {
  constexpr int kMaxScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans) {
    auto* manager = reinterpret_cast<ErrorManager*>(info->err);
    std::snprintf(manager->message, sizeof manager->message, "more than %d scans", kMaxScans);
    std::longjmp(manager->leave, 1);
  }
}

struct Decoder {
  jpeg_decompress_struct info;
  ErrorManager errors;
  jpeg_progress_mgr progress;
  bool created;
};

bool start(Decoder& decoder, ByteSpan bytes) {
  if (setjmp(decoder.errors.leave) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.created = true;
  decoder.progress.progress_monitor = on_progress;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&decoder.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}

bool read_rows(Decoder& decoder, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(decoder.errors.leave) != 0) return false;
  jpeg_start_decompress(&decoder.info);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    JSAMPROW rows[4];
    const JDIMENSION first = decoder.info.output_scanline;
    JDIMENSION count = 0;
    for (; count < 4 && first + count < decoder.info.output_height; ++count) {
      rows[count] = pixels + row_bytes * (first + count);
    }
    jpeg_read_scanlines(&decoder.info, rows, count);
  }
  jpeg_finish_decompress(&decoder.info);
  return true;
}

int orientation_of(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr;
       marker = marker->next) {
    if (marker->marker != JPEG_APP0 + 1 || marker->data_length < 6) continue;
    if (std::memcmp(marker->data, "Exif\0\0", 6) != 0) continue;
    return exif_orientation(
        ByteSpan(reinterpret_cast<const std::byte*>(marker->data), marker->data_length).subspan(6));
  }
  return 1;
}

/// Ink to light. With an Adobe marker the samples are stored inverted, as every program that writes
/// one does.
void cmyk_to_rgb(const std::uint8_t* cmyk, bool inverted, Image& out) {
  const std::size_t pixels = static_cast<std::size_t>(out.w) * static_cast<std::size_t>(out.h);
  std::uint8_t* rgb = out.pixels.data();
  for (std::size_t i = 0; i < pixels; ++i) {
    const unsigned k = inverted ? cmyk[4 * i + 3] : 255U - cmyk[4 * i + 3];
    for (std::size_t ch = 0; ch < 3; ++ch) {
      const unsigned light = inverted ? cmyk[4 * i + ch] : 255U - cmyk[4 * i + ch];
      rgb[3 * i + ch] = static_cast<std::uint8_t>((light * k + 127) / 255);
    }
  }
}

}  // namespace

int decode_jpeg(ByteSpan bytes, const std::string& name, int channels, Image& out) {
  Decoder decoder{};
  decoder.info.err = jpeg_std_error(&decoder.errors.base);
  decoder.errors.base.error_exit = on_error;
  decoder.errors.base.emit_message = on_message;
  struct Destroy {
    Decoder& decoder;
    ~Destroy() {
      if (decoder.created) jpeg_destroy_decompress(&decoder.info);
    }
  } destroy{decoder};

  const auto damaged = [&]() -> std::string {
    return std::string("damaged JPEG (") + decoder.errors.message + ")";
  };
  if (!start(decoder, bytes)) fail(name, damaged());
  const int orientation = orientation_of(decoder.info);  // libjpeg drops the markers at the end
  const bool is_cmyk =
      decoder.info.jpeg_color_space == JCS_CMYK || decoder.info.jpeg_color_space == JCS_YCCK;
  if (is_cmyk) {
    decoder.info.out_color_space = JCS_CMYK;
    // The size is checked before the buffer for the four inks is taken.
    allocate(out, decoder.info.image_width, decoder.info.image_height, 3, name);
    std::vector<std::uint8_t> cmyk(out.pixels.size() / 3 * 4);
    if (!read_rows(decoder, cmyk.data(), static_cast<std::size_t>(out.w) * 4))
      fail(name, damaged());
    cmyk_to_rgb(cmyk.data(), decoder.info.saw_Adobe_marker != 0, out);
    if (channels == 1) grey_in_place(out);
  } else {
    // The luminance plane of the file is the grey of the formula up to its own rounding.
    const bool has_luminance = decoder.info.jpeg_color_space == JCS_GRAYSCALE ||
                               decoder.info.jpeg_color_space == JCS_YCbCr;
    const bool grey = channels == 1 && has_luminance;
    decoder.info.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    allocate(out, decoder.info.image_width, decoder.info.image_height, grey ? 1 : 3, name);
    if (!read_rows(decoder, out.pixels.data(), out.row_bytes())) fail(name, damaged());
    if (channels == 1 && !grey) grey_in_place(out);
  }
  return orientation;
}

}  // namespace lantern::data::codec

namespace lantern::data {

namespace {

struct Encoder {
  jpeg_compress_struct info;
  codec::ErrorManager errors;
  unsigned char* bytes;
  unsigned long size;
};

bool run(Encoder& encoder, const Image& image, int quality) {
  if (setjmp(encoder.errors.leave) != 0) return false;
  jpeg_create_compress(&encoder.info);
  jpeg_mem_dest(&encoder.info, &encoder.bytes, &encoder.size);
  encoder.info.image_width = static_cast<JDIMENSION>(image.w);
  encoder.info.image_height = static_cast<JDIMENSION>(image.h);
  encoder.info.input_components = image.c;
  encoder.info.in_color_space = image.c == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&encoder.info);
  jpeg_set_quality(&encoder.info, quality, TRUE);
  if (image.c == 3 && quality >= 90) {  // full chroma: thin coloured lines stay readable
    encoder.info.comp_info[0].h_samp_factor = 1;
    encoder.info.comp_info[0].v_samp_factor = 1;
  }
  jpeg_start_compress(&encoder.info, TRUE);
  while (encoder.info.next_scanline < encoder.info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image.row(static_cast<int>(encoder.info.next_scanline)));
    jpeg_write_scanlines(&encoder.info, &row, 1);
  }
  jpeg_finish_compress(&encoder.info);
  return true;
}

}  // namespace

std::vector<std::byte> encode_jpeg(const Image& image, int quality) {
  Encoder encoder{};
  encoder.info.err = jpeg_std_error(&encoder.errors.base);
  encoder.errors.base.error_exit = codec::on_error;
  encoder.errors.base.emit_message = codec::on_message;
  const bool done = run(encoder, image, quality);
  std::vector<std::byte> bytes;
  if (done) {
    const auto* first = reinterpret_cast<const std::byte*>(encoder.bytes);
    bytes.assign(first, first + encoder.size);
  }
  jpeg_destroy_compress(&encoder.info);
  std::free(encoder.bytes);
  if (!done) {
    throw Error(ErrorCode::kFailed, "", "a {}x{} picture cannot be written as JPEG: {}", image.w,
                image.h, encoder.errors.message);
  }
  return bytes;
}

}  // namespace lantern::data
