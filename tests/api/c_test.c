/* The C interface from a C99 program: argv[1] is the folder of weights. */
#include <lantern/lantern.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char *what, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: %s (last error: %s)\n", line, what, lantern_last_error());
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static char path[4096];
static const char *in(const char *folder, const char *name) {
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

static lantern_network *load(const char *folder, int batch) {
  char cfg[4096];
  snprintf(cfg, sizeof(cfg), "%s", in(folder, "yoloface-50k/yoloface-50k.cfg"));
  return lantern_load_network_custom(cfg, in(folder, "yoloface-50k/yoloface-50k.weights"), 0, batch);
}

static void errors(const char *folder) {
  int number = 7;
  EXPECT(lantern_last_error_code() == LANTERN_OK);
  EXPECT(strcmp(lantern_last_error(), "") == 0);
  EXPECT(lantern_load_network("/nowhere.cfg", "/nowhere.weights", 0) == NULL);
  EXPECT(lantern_last_error_code() == LANTERN_INVALID_DATA);
  EXPECT(strstr(lantern_last_error(), "/nowhere.cfg") != NULL);
  EXPECT(lantern_load_network(NULL, NULL, 0) == NULL);
  EXPECT(lantern_last_error_code() == LANTERN_USAGE);
  EXPECT(lantern_network_width(NULL) == -1);
  EXPECT(lantern_load_image_color("/nowhere.jpg", 0, 0).data == NULL);
  EXPECT(lantern_make_image(0, 4, 3).data == NULL);
  float four[4] = {0, 0, 0, 0};
  const lantern_image flat = {0, 4, 1, four}, thin = {4, 1, 1, four}, none = {4, 1, 1, NULL};
  EXPECT(lantern_resize_min(flat, 2).data == NULL && lantern_last_error_code() == LANTERN_USAGE);
  EXPECT(lantern_resize_min(none, 2).data == NULL);
  EXPECT(lantern_resize_min(thin, 16000).data == NULL); /* 64000 x 16000 */
  EXPECT(lantern_last_error_code() == LANTERN_USAGE);
  lantern_image far = lantern_crop_image(thin, 2147483647, -2147483647, 3, 2);
  EXPECT(far.w == 3 && far.data[5] == 0);
  lantern_free_image(far);
  lantern_network *net = load(folder, 1);
  EXPECT(net != NULL);
  EXPECT(lantern_get_network_boxes(net, 56, 56, 0.5F, 0.5F, NULL, 1, &number, 0) == NULL); /* has not run */
  EXPECT(number == 0 && lantern_last_error_code() == LANTERN_USAGE);
  lantern_free_network(net);
  lantern_free_network(NULL);
}

static void pictures(const char *folder) {
  lantern_image image = lantern_load_image_color(in(folder, "expected/inputs/dog_56x56.png"), 0, 0);
  EXPECT(image.w == 56 && image.h == 56 && image.c == 3);
  lantern_image scaled = lantern_load_image_color(path, 28, 14);
  EXPECT(scaled.w == 28 && scaled.h == 14);
  lantern_image again = lantern_resize_image(image, 28, 14);
  EXPECT(memcmp(again.data, scaled.data, sizeof(float) * 28 * 14 * 3) == 0);
  lantern_image boxed = lantern_letterbox_image(scaled, 40, 40);
  EXPECT(boxed.w == 40 && boxed.data[0] == 0.5F); /* grey above the picture */
  lantern_image cut = lantern_crop_image(image, 3, 2, 5, 4);
  EXPECT(cut.w == 5 && cut.h == 4 && cut.data[0] == image.data[2 * 56 + 3]);
  lantern_image small = lantern_resize_min(scaled, 7);
  EXPECT(small.w == 14 && small.h == 7);
  const float red = image.data[10], blue = image.data[2 * 56 * 56 + 10];
  lantern_rgbgr_image(image);
  EXPECT(image.data[10] == blue && image.data[2 * 56 * 56 + 10] == red);

  lantern_image made = lantern_make_image(2, 1, 3);
  EXPECT(made.data[5] == 0);
  const char bytes[6] = {0, (char)255, 51, 1, 2, 3};
  lantern_copy_image_from_bytes(made, bytes);
  EXPECT(made.data[0] == 0 && made.data[2] == 1 && fabs(made.data[4] - 0.2) < 1e-6);
  EXPECT(made.data[1] == 1.0F / 255);
  lantern_free_image(made);
  lantern_free_image(small);
  lantern_free_image(cut);
  lantern_free_image(boxed);
  lantern_free_image(again);
  lantern_free_image(scaled);
  lantern_free_image(image);
}

static int alive(const lantern_detection *dets, int num) {
  int count = 0;
  for (int i = 0; i < num; ++i) count += dets[i].best_class_idx >= 0;
  return count;
}

static void detection(const char *folder) {
  lantern_network *net = load(folder, 1);
  EXPECT(lantern_network_width(net) == 56 && lantern_network_height(net) == 56);
  EXPECT(lantern_network_channels(net) == 3 && lantern_network_classes(net) == 1);
  EXPECT(lantern_network_batch(net) == 1 && lantern_network_outputs(net) > 0);
  lantern_image image = lantern_load_image_color(in(folder, "expected/inputs/dog_56x56.png"), 0, 0);
  const float *by_image = lantern_network_predict_image(net, image);
  EXPECT(by_image != NULL);
  const float first = by_image[4];
  const float *by_input = lantern_network_predict(net, image.data);
  EXPECT(by_input != NULL && by_input[4] == first); /* the picture has the network's size */

  int num = 0, num_pixels = 0;
  lantern_detection *dets = lantern_get_network_boxes(net, 768, 576, 0.25F, 0.5F, NULL, 1, &num, 0);
  lantern_detection *pixels = lantern_get_network_boxes(net, 768, 576, 0.25F, 0.5F, NULL, 0, &num_pixels, 0);
  EXPECT(num > 2 && num == num_pixels);
  for (int i = 0; i < num; ++i) {
    EXPECT(fabs(dets[i].bbox.x * 768 - pixels[i].bbox.x) < 1e-2);
    EXPECT(fabs(dets[i].bbox.h * 576 - pixels[i].bbox.h) < 1e-2);
    EXPECT(dets[i].classes == 1);
  }
  const int before = alive(dets, num);
  lantern_do_nms_sort(dets, num, 1, 0.45F);
  EXPECT(alive(dets, num) < before && alive(dets, num) > 0);
  EXPECT(fabs(dets[0].prob[0] - 0.5766) < 2e-3); /* expected/yoloface-50k.json, dog.jpg */
  for (int i = 1; i < num; ++i) EXPECT(dets[i - 1].prob[0] >= dets[i].prob[0]);
  lantern_do_nms_obj(pixels, num, 1, 0.45F);
  EXPECT(alive(pixels, num) < before);
  lantern_diounms_sort(dets, num, 1, 0.0F, LANTERN_GREEDY_NMS, 0.6F);
  EXPECT(alive(dets, num) < before);
  lantern_do_nms_sort(dets, num, 2, 0.45F); /* wrong number of classes */
  EXPECT(lantern_last_error_code() == LANTERN_USAGE);

  char name[] = "fa\"ce";
  char *names[] = {name};
  char *json = lantern_detection_to_json(dets, num, 1, names, 3, "dog.jpg");
  EXPECT(json != NULL && strstr(json, "\"frame_id\":3") != NULL);
  EXPECT(json != NULL && strstr(json, "fa\\\"ce") != NULL && strstr(json, "\"filename\":\"dog.jpg\"") != NULL);
  lantern_free_string(json);
  names[0] = NULL;
  EXPECT(lantern_detection_to_json(dets, num, 1, names, 3, NULL) == NULL);
  EXPECT(lantern_last_error_code() == LANTERN_USAGE);
  lantern_free_detections(pixels, num);
  lantern_free_detections(dets, num);

  EXPECT(lantern_network_predict_image_letterbox(net, image) != NULL);
  lantern_free_image(image);
  lantern_free_network(net);
}

static void batches(const char *folder) {
  lantern_network *net = load(folder, 2);
  lantern_network *one = load(folder, 1);
  const char *names[] = {"dog", "eagle", "person"};
  const size_t floats = 56 * 56 * 3;
  lantern_image all = {56, 56, 3, malloc(3 * floats * sizeof(float))};
  for (int i = 0; i < 3; ++i) {
    char name[64];
    snprintf(name, sizeof(name), "expected/inputs/%s_56x56.png", names[i]);
    lantern_image image = lantern_load_image_color(in(folder, name), 0, 0);
    memcpy(all.data + (size_t)i * floats, image.data, floats * sizeof(float));
    lantern_free_image(image);
  }
  lantern_det_num_pair *pairs = lantern_network_predict_batch(net, all, 3, 56, 56, 0.1F, 0.5F, NULL, 1, 0);
  EXPECT(pairs != NULL);
  int total = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT(lantern_network_predict(one, all.data + (size_t)i * floats) != NULL);
    int num = 0;
    lantern_detection *dets = lantern_get_network_boxes(one, 56, 56, 0.1F, 0.5F, NULL, 1, &num, 0);
    EXPECT(pairs[i].num == num);
    for (int k = 0; k < num && k < pairs[i].num; ++k) {
      EXPECT(fabs(dets[k].prob[0] - pairs[i].dets[k].prob[0]) < 1e-5);
    }
    total += num;
    lantern_free_detections(dets, num);
  }
  EXPECT(total > 5);
  lantern_free_batch_detections(pairs, 3);
  all.w = 57;
  EXPECT(lantern_network_predict_batch(net, all, 3, 56, 56, 0.1F, 0.5F, NULL, 1, 0) == NULL);
  free(all.data);
  lantern_free_network(one);
  lantern_free_network(net);
}

static void names_and_order(void) {
  const float values[] = {1, 5, 3, 5, 2};
  int index[3];
  EXPECT(lantern_top_k(values, 5, 3, index) == 3);
  EXPECT(index[0] == 1 && index[1] == 3 && index[2] == 2);
  EXPECT(lantern_top_k(values, 5, 6, index) == -1);
  const float odd[] = {NAN, 2, NAN, 3};
  EXPECT(lantern_top_k(odd, 4, 3, index) == 3 && index[0] == 3 && index[1] == 1);

  const char *names_file = "c_test.names", *data_file = "c_test.data";
  FILE *file = fopen(names_file, "w");
  fputs("cat\ndog\n", file);
  fclose(file);
  file = fopen(data_file, "w");
  fputs("classes=2\nnames=c_test.names\n", file);
  fclose(file);
  lantern_metadata metadata = lantern_get_metadata(data_file);
  EXPECT(metadata.classes == 2 && strcmp(metadata.names[1], "dog") == 0);
  lantern_free_metadata(metadata);
  EXPECT(lantern_get_metadata("/nowhere.data").classes == -1);
  remove(names_file);
  remove(data_file);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  errors(argv[1]);
  pictures(argv[1]);
  detection(argv[1]);
  batches(argv[1]);
  names_and_order();
  if (failures == 0) printf("all of the C interface holds\n");
  return failures != 0;
}
