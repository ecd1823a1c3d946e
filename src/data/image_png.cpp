#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "data/codec.hpp"

namespace lantern::data {

namespace {

struct Context {
  codec::ByteSpan input;
  std::size_t at = 0;
  std::vector<std::byte>* output = nullptr;
  char message[160] = {};
};

void on_error(png_structp png, png_const_charp text) {
  auto* context = static_cast<Context*>(png_get_error_ptr(png));
  std::snprintf(context->message, sizeof context->message, "%s", text);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep data, png_size_t count) {
  auto* context = static_cast<Context*>(png_get_io_ptr(png));
  if (context->input.size() - context->at < count) png_error(png, "ends too early");
  std::memcpy(data, context->input.data() + context->at, count);
  context->at += count;
}

void on_write(png_structp png, png_bytep data, png_size_t count) {
  auto* context = static_cast<Context*>(png_get_io_ptr(png));
  bool stored = true;
  try {
    const auto* first = reinterpret_cast<const std::byte*>(data);
    context->output->insert(context->output->end(), first, first + count);
  } catch (...) {  // no exception may pass through the C frames of libpng
    stored = false;
  }
  if (!stored) png_error(png, "out of memory");
}
void on_flush(png_structp) {}

/// The frames that libpng leaves by longjmp hold nothing with a destructor; everything lives here.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

bool read_header(Decoder& decoder, int channels) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_info(decoder.png, decoder.info);
  const png_byte type = png_get_color_type(decoder.png, decoder.info);
  const png_byte depth = png_get_bit_depth(decoder.png, decoder.info);
  if (depth == 16) png_set_strip_16(decoder.png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(decoder.png);
  if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(decoder.png);
  const bool is_grey = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA;
  if (is_grey && channels == 3) png_set_gray_to_rgb(decoder.png);
  // Alpha is dropped without mixing colours; a palette with transparency expands to RGBA first.
  png_set_strip_alpha(decoder.png);
  png_set_interlace_handling(decoder.png);
  return true;
}

bool update_info(Decoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

bool read_rows(Decoder& decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, decoder.info);
  return true;
}

}  // namespace

int codec::decode_png(ByteSpan bytes, const std::string& name, int channels, Image& out) {
  Context context{.input = bytes};
  Decoder decoder;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &context, on_error, on_warning);
  if (decoder.png != nullptr) decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) fail(name, "PNG reader: out of memory");
  png_set_read_fn(decoder.png, &context, on_read);
  png_set_user_limits(decoder.png, 0x7fffffff, 0x7fffffff);  // the pixel count is limited below

  const auto damaged = [&] { return std::string("damaged PNG (") + context.message + ")"; };
  if (!read_header(decoder, channels)) fail(name, damaged());
  const png_byte type = png_get_color_type(decoder.png, decoder.info);
  const bool is_grey = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA;
  allocate(out, png_get_image_width(decoder.png, decoder.info),
           png_get_image_height(decoder.png, decoder.info), is_grey && channels == 1 ? 1 : 3, name);
  if (!update_info(decoder)) fail(name, damaged());
  if (png_get_rowbytes(decoder.png, decoder.info) != out.row_bytes()) {
    fail(name, "PNG of an unexpected kind");
  }
  std::vector<png_bytep> rows(static_cast<std::size_t>(out.h));
  for (int y = 0; y < out.h; ++y) rows[static_cast<std::size_t>(y)] = out.row(y);
  if (!read_rows(decoder, rows.data())) fail(name, damaged());
  if (channels == 1 && out.c == 3) grey_in_place(out);

  png_uint_32 exif_size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(decoder.png, decoder.info, &exif_size, &exif) != 0 && exif != nullptr) {
    return exif_orientation(ByteSpan(reinterpret_cast<const std::byte*>(exif), exif_size));
  }
  return 1;
}

namespace {

bool write(png_structp png, png_infop info, const Image& image, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.w), static_cast<png_uint_32>(image.h), 8,
               image.c == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_write_image(png, rows);
  png_write_end(png, info);
  return true;
}

}  // namespace

std::vector<std::byte> encode_png(const Image& image) {
  std::vector<std::byte> bytes;
  Context context{.input = {}, .output = &bytes};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &context, on_error, on_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.h));
  for (int y = 0; y < image.h; ++y) {
    rows[static_cast<std::size_t>(y)] = const_cast<png_bytep>(image.row(y));
  }
  bool done = false;
  if (info != nullptr) {
    png_set_write_fn(png, &context, on_write, on_flush);
    done = write(png, info, image, rows.data());
  }
  png_destroy_write_struct(&png, &info);
  if (!done) {
    throw Error(ErrorCode::kFailed, "", "a {}x{} picture cannot be written as PNG: {}", image.w,
                image.h, context.message);
  }
  return bytes;
}

}  // namespace lantern::data
