/* place.c: where this process stands: alone, or a task of the cluster that a launcher wrote into TF_CONFIG. */
#define _POSIX_C_SOURCE 200809L
#include "fashion_mnist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Several processes on one machine share its processors: the launcher says how many are ours. */
static dtg_error *create_runtime(dtg_runtime **out) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  const char *threads = getenv("DTG_THREADS");
  options.compute_threads = threads ? atoi(threads) : 0;
  return dtg_runtime_create(&options, out);
}

static dtg_security wanted_security(void) { return getenv("DTG_CLEAR_FRAMES") ? DTG_SECURITY_CLEAR_FRAMES : DTG_SECURITY_TLS; }

/* A launcher that starts parameter servers again says where they keep what they hold. Workers keep nothing: what they must not
 * lose lies on the parameter servers (ledger.c). */
static void keep_state(dtg_server_options *options) {
  const char *durability = getenv("DTG_DURABILITY");
  options->state_dir = getenv("DTG_STATE_DIR");
  if (durability && strcmp(durability, "memory") == 0) options->durability = DTG_DURABILITY_MEMORY;
  if (durability && strcmp(durability, "wal") == 0) options->durability = DTG_DURABILITY_WAL;
  if (durability && strcmp(durability, "wal-async") == 0) options->durability = DTG_DURABILITY_WAL_ASYNC;
}

/* Each trains variables of its own, and in every step they meet. One that was started again waits here until the others have noticed. */
static dtg_error *meet_workers(struct place *place) {
  dtg_group_options group = DTG_GROUP_OPTIONS_INIT;
  group.join_timeout_ns = INT64_C(120) * 1000000000;
  return dtg_group_join(place->server, &group, &place->group);
}

/* Who gives out the work must be a task beside the workers. */
static dtg_error *check_chief(const struct place *place) {
  static const char why[] =
      "--strategy coordinator needs a cluster with a chief, workers and parameter servers: dtg run --local --chief --ps 1 --workers 2";
  const int all =
      place->cluster && dtg_cluster_task_count(place->cluster, "chief") == 1 && place->task.num_ps > 0 && count_workers(place) > 0;
  return all ? NULL : dtg_error_create(DTG_INVALID_ARGUMENT, why, DTG_STRLEN);
}

dtg_error *find_place(const struct options *options, struct place *place) {
  dtg_server_options which = DTG_SERVER_OPTIONS_INIT;
  const int equals = options->strategy && strcmp(options->strategy, "multi-worker") == 0;
  /* Workers talk to parameter servers only: that another worker has gone is none of their business. Without these a session has its own
   * task, and the group has the others. */
  const char *const filters[] = {"/job:ps"};
  const char *restarts = getenv("DTG_RESTARTS");
  const char *least = getenv("DTG_MIN_WORKERS");
  place->restarts = restarts ? atoi(restarts) : 0;
  place->min_workers = least ? atoi(least) : 0;
  place->task = (dtg_task)DTG_TASK_INIT;
  TRY(create_runtime(&place->runtime));
  TRY(dtg_cluster_from_tf_config(NULL, 0, &place->cluster, &place->task));
  snprintf(place->name, sizeof place->name, "%s-%d", place->cluster ? place->task.type : "worker", place->cluster ? place->task.index : 0);
  place->coordinates = options->strategy && strcmp(options->strategy, "coordinator") == 0;
  if (place->coordinates) TRY(check_chief(place));
  if (!place->cluster) return NULL;
  which.job = place->task.type;
  which.task = place->task.index;
  which.security = wanted_security();
  which.key_file = getenv("DTG_KEY_FILE");
  if (is_worker(place) && !place->coordinates) which.device_filters = filters, which.num_device_filters = 1;
  if (strcmp(place->task.type, "ps") == 0) keep_state(&which);
  TRY(dtg_server_start(place->runtime, place->cluster, &which, &place->server));
  return equals && is_worker(place) ? meet_workers(place) : NULL;
}

int has_ps(const struct place *place) { return place->cluster && !place->group; }

int is_worker(const struct place *place) { return place->coordinates ? place->task.is_chief : strcmp(place->task.type, "ps") != 0; }

int count_workers(const struct place *place) {
  if (!place->cluster) return 1;
  return place->coordinates ? (int)dtg_cluster_task_count(place->cluster, "worker") : place->task.num_workers;
}

int job_has_ended(const struct place *place) {
  dtg_error *error = place->server ? dtg_server_join(place->server, 0) : NULL;
  const int ended = place->server && error == NULL;
  dtg_error_release(error);
  return ended;
}

dtg_error *serve(const struct place *place, const struct options *options) {
  printf("serving at %s\n", dtg_server_target(place->server));
  fflush(stdout);
  TRY(dtg_server_join(place->server, DTG_INFINITE));
  return write_server_status(options, place);
}

dtg_error *connect_session(const struct place *place, const struct network *network, dtg_session **out) {
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.security = wanted_security();
  options.emu_devices = network->strategy && !place->cluster ? network->num_towers : 0;
  const char *target = place->server ? dtg_server_target(place->server) : "local";
  return dtg_session_connect(place->runtime, target, DTG_STRLEN, network->graph, &options, out);
}

void leave_place(struct place *place) {
  dtg_group_release(place->group);
  dtg_server_release(place->server);
  dtg_cluster_release(place->cluster);
  dtg_runtime_release(place->runtime);
}
