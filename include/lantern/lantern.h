#ifndef LANTERN_LANTERN_H
#define LANTERN_LANTERN_H

/* The C interface: the functions of Darknet's library that programs call, under our prefix, with
 * its structs (same fields, same order) and its behaviour. From C++ use <lantern/lantern.hpp>.
 *
 * A function that fails returns NULL (or -1) and leaves its reason in lantern_last_error(). Nothing
 * aborts or prints.
 *
 * Threads: handles share nothing. lantern_network_predict*() keep their result in the handle, where
 * the next call and lantern_get_network_boxes() find it, so one handle belongs to one thread at a
 * time; lantern_network_predict_batch() keeps nothing and may be called by several threads on one
 * handle. */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lantern_network lantern_network;

/* Centre and size. */
typedef struct lantern_box {
  float x, y, w, h;
} lantern_box;

/* Planes [c][h][w] of values 0..1, RGB. */
typedef struct lantern_image {
  int w, h, c;
  float* data;
} lantern_image;

typedef struct lantern_detection {
  lantern_box bbox;
  int classes;
  int best_class_idx; /* always filled; -1 when every class is 0 */
  float* prob;        /* [classes], 0 at or below the threshold */
  float* mask;        /* NULL: kept for the layout */
  float objectness;
  int sort_class;
  float* uc; /* NULL */
  int points;
  float* embeddings; /* NULL */
  int embedding_size;
  float sim;
  int track_id;
} lantern_detection;

typedef struct lantern_det_num_pair {
  int num;
  lantern_detection* dets;
} lantern_det_num_pair;

typedef struct lantern_metadata {
  int classes;
  char** names;
} lantern_metadata;

typedef enum lantern_nms_kind {
  LANTERN_DEFAULT_NMS,
  LANTERN_GREEDY_NMS,
  LANTERN_DIOU_NMS,
  LANTERN_CORNERS_NMS
} lantern_nms_kind;

typedef enum lantern_error_code {
  LANTERN_OK,
  LANTERN_USAGE,
  LANTERN_INVALID_CONFIG,
  LANTERN_INVALID_DATA,
  LANTERN_RESOURCE,
  LANTERN_DEVICE,
  LANTERN_FAILED,
  LANTERN_INTERNAL,
  LANTERN_INTERRUPTED
} lantern_error_code;

const char* lantern_version(void);

/* Of the calling thread's last failure; "" and LANTERN_OK before the first. A call that succeeds
 * leaves it. */
const char* lantern_last_error(void);
lantern_error_code lantern_last_error_code(void);

/* --- network --- */

/* Batch 1. `clear` has no meaning outside of training and is accepted as Darknet's callers pass it.
 */
lantern_network* lantern_load_network(const char* cfg, const char* weights, int clear);
lantern_network* lantern_load_network_custom(const char* cfg, const char* weights, int clear,
                                             int batch);
void lantern_free_network(lantern_network* net);
int lantern_network_width(const lantern_network* net);
int lantern_network_height(const lantern_network* net);
int lantern_network_channels(const lantern_network* net);
int lantern_network_classes(const lantern_network* net);
int lantern_network_batch(const lantern_network* net);
/* Floats of one picture's output of the last layer. */
int lantern_network_outputs(const lantern_network* net);

/* Recurrent layers start again from zero. `batch` sequences run side by side: picture i of a call is
 * the next one of sequence i % batch. */
void lantern_reset_rnn(lantern_network* net);

/* --- running: the array returned is the last layer's output of the whole batch and belongs to the
 * network --- */

/* input: [batch][channels][height][width] */
float* lantern_network_predict(lantern_network* net, const float* input);
/* A picture of any size, stretched to the network's, or on grey with its shape kept. Batch 1. */
float* lantern_network_predict_image(lantern_network* net, lantern_image image);
float* lantern_network_predict_image_letterbox(lantern_network* net, lantern_image image);

/* Boxes of the last predict: relative != 0: 0..1, else pixels of a w x h picture; `letter` as the
 * picture was fed. `hier` and `map` are Darknet's and unused: pass anything. Not suppressed yet.
 * *num is their number. Free with lantern_free_detections. */
lantern_detection* lantern_get_network_boxes(lantern_network* net, int w, int h, float thresh,
                                             float hier, const int* map, int relative, int* num,
                                             int letter);
/* `image` holds `batch` pictures of the network's size, one behind the other, c planes each; boxes
 * before suppression, one pair a picture. Free with lantern_free_batch_detections(pairs, batch). */
lantern_det_num_pair* lantern_network_predict_batch(lantern_network* net, lantern_image image,
                                                    int batch, int w, int h, float thresh,
                                                    float hier, const int* map, int relative,
                                                    int letter);
void lantern_free_detections(lantern_detection* dets, int num);
void lantern_free_batch_detections(lantern_det_num_pair* pairs, int num);

/* Class by class: the less probable of two boxes that overlap by more than thresh loses the class;
 * most probable detection first afterwards. */
void lantern_do_nms_sort(lantern_detection* dets, int total, int classes, float thresh);
/* By objectness, classes ignored. */
void lantern_do_nms_obj(lantern_detection* dets, int total, int classes, float thresh);
void lantern_diounms_sort(lantern_detection* dets, int total, int classes, float thresh,
                          lantern_nms_kind kind, float beta);

/* The object of Darknet's -out file for one picture; filename may be NULL. Boxes must be relative.
 * Free with lantern_free_string. */
char* lantern_detection_to_json(const lantern_detection* dets, int num, int classes, char** names,
                                long long frame_id, const char* filename);
void lantern_free_string(char* text);

/* Indices of the k largest values, largest first. */
int lantern_top_k(const float* values, int n, int k, int* index);

/* --- pictures: data is NULL after a failure; free with lantern_free_image --- */

lantern_image lantern_make_image(int w, int h, int c);
/* Three channels; scaled when w and h are given (not 0). */
lantern_image lantern_load_image_color(const char* filename, int w, int h);
void lantern_free_image(lantern_image image);
/* Interleaved bytes [h][w][c] into the picture's planes, divided by 255. */
void lantern_copy_image_from_bytes(lantern_image image, const char* bytes);
lantern_image lantern_resize_image(lantern_image image, int w, int h);
lantern_image lantern_letterbox_image(lantern_image image, int w, int h);
lantern_image lantern_crop_image(lantern_image image, int dx, int dy, int w, int h);
/* The shorter side becomes `min`. */
lantern_image lantern_resize_min(lantern_image image, int min);
/* Swaps red and blue in place. */
void lantern_rgbgr_image(lantern_image image);

/* --- names --- */

/* Classes and names of a .data file; classes is -1 after a failure. Free with
 * lantern_free_metadata. */
lantern_metadata lantern_get_metadata(const char* datacfg);
void lantern_free_metadata(lantern_metadata metadata);

#ifdef __cplusplus
}
#endif

#endif
