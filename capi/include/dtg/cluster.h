/* dtg/cluster.h: clusters. A cluster says which jobs there are and where their tasks listen; what a launcher wrote into
 * TF_CONFIG says which of the tasks this process is. There is no master and no parameter server as such: a parameter
 * server is a task that holds variables. Tasks are started with dtg/server.h.
 *
 *   dtg_cluster *cluster = NULL;
 *   dtg_task self = DTG_TASK_INIT;
 *   dtg_cluster_from_tf_config(NULL, 0, &cluster, &self);         who am I, and who else is there
 */
#ifndef DTG_CLUSTER_H
#define DTG_CLUSTER_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* An immutable value; shared. */
typedef struct dtg_cluster dtg_cluster;

/* Reads a cluster, in either of two forms:
 *   JSON   {"ps": ["unix:/run/j/ps0"], "worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, sparse {"worker": {"3": "10.0.0.4:2222"}}
 *   short  "ps=unix:/run/j/ps0;worker=10.0.0.1:2222,10.0.0.2:2222", sparse "worker=3@10.0.0.4:2222"
 * An address is unix:PATH, HOST:PORT or [IPV6]:PORT. A job whose tasks are 0 to n-1 is dense, any other is sparse; "" is
 * a cluster without jobs. Errors: INVALID_ARGUMENT (which says where), RESOURCE_EXHAUSTED (over 4,096 tasks). Since 0.1. */
DTG_ERR dtg_cluster_parse(const char *text, size_t text_len, dtg_cluster **out) DTG_NOEXCEPT;

/* The place of a process in its cluster, as a launcher told it. Written by the library. */
typedef struct dtg_task {
  size_t struct_size;
  char type[64];       /* "chief", "worker", "ps", "evaluator", ...; "" when not said */
  int32_t index;       /* -1 when not said */
  int32_t is_chief;    /* 1 for the chief, the master, worker 0 where there is neither, and a process without a cluster */
  int32_t id;          /* chief 0, worker i: i + number of chiefs; others: their index; 0 when not said */
  int32_t num_workers; /* chief and workers; at least 1 */
  int32_t num_ps;
  int32_t reserved;   /* 0 */
  char rpc_layer[32]; /* "" when not said */
} dtg_task;
#define DTG_TASK_INIT \
  { sizeof(dtg_task), "", 0, 0, 0, 0, 0, 0, "" }

/* Reads TF_CONFIG: `json`, or the environment variable TF_CONFIG where `json` is NULL. `*out` becomes NULL when no cluster
 * is said (the variable is not set; "{}", "[]", a task alone): the program trains alone. The task is told as it was
 * said, also where the cluster has no such job (an evaluator often is in none): dtg_cluster_target and
 * dtg_server_start refuse that. Read like TensorFlow's TFConfigClusterResolver; Kubeflow's "sparseCluster" counts where
 * there is no "cluster"; "session_master" and "environment" are not read. Errors: INVALID_ARGUMENT (no JSON, which ""
 * is not; a wrong type; two chiefs; an index that the job has no task of), RESOURCE_EXHAUSTED (over 4,096 tasks). Since 0.1. */
DTG_ERR dtg_cluster_from_tf_config(const char *json, size_t json_len, dtg_cluster **out, dtg_task *self) DTG_NOEXCEPT;

/* What TensorFlow's resolver calls the master of a task: its address, after "LAYER://" where the task has an rpc_layer; ""
 * where the cluster has at most one task, or is NULL. `*out` is owned by the caller. Errors: INVALID_ARGUMENT (the
 * cluster has no such task). Since 0.1. */
DTG_ERR dtg_cluster_target(const dtg_cluster *cluster, const dtg_task *task, dtg_string **out) DTG_NOEXCEPT;

/* The cluster as JSON that dtg_cluster_parse reads: dense jobs as lists, others as objects. `*out` is owned by the caller.
 * Since 0.1. */
DTG_ERR dtg_cluster_json(const dtg_cluster *cluster, dtg_string **out) DTG_NOEXCEPT;

/* Number of jobs; 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_cluster_job_count(const dtg_cluster *cluster) DTG_NOEXCEPT;
/* Name of job `i`, in the order in which they were given, valid as long as the cluster; NULL when out of range. Since 0.1. */
DTG_API const char *dtg_cluster_job(const dtg_cluster *cluster, size_t i) DTG_NOEXCEPT;
/* Number of tasks of a job; 0 when there is no such job. Since 0.1. */
DTG_API size_t dtg_cluster_task_count(const dtg_cluster *cluster, const char *job) DTG_NOEXCEPT;
/* Index of the `i`-th task of a job by number (i itself in a dense job); -1 when out of range. Since 0.1. */
DTG_API int32_t dtg_cluster_task_index(const dtg_cluster *cluster, const char *job, size_t i) DTG_NOEXCEPT;
/* Address of the task with that index, valid as long as the cluster; NULL when there is none. Since 0.1. */
DTG_API const char *dtg_cluster_address(const dtg_cluster *cluster, const char *job, int32_t index) DTG_NOEXCEPT;

/* Adds a reference and returns the cluster; NULL for NULL or a bad handle. Since 0.1. */
DTG_API dtg_cluster *dtg_cluster_retain(dtg_cluster *cluster) DTG_NOEXCEPT;
/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_cluster_release(dtg_cluster *cluster) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_CLUSTER_H */
