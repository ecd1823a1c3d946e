/* to_ppm IN OUT: any picture as PPM. */
#include <lantern/lantern.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  lantern_image image = lantern_load_image_color(argv[1], 0, 0);
  FILE *file = fopen(argv[2], "wb");
  if (image.data == NULL || file == NULL) return 1;
  const int plane = image.w * image.h;
  fprintf(file, "P6\n%d %d\n255\n", image.w, image.h);
  for (int i = 0; i < plane; ++i) {
    for (int c = 0; c < 3; ++c) fputc((int)(image.data[c * plane + i] * 255 + 0.5f), file);
  }
  fclose(file);
  lantern_free_image(image);
  return 0;
}
