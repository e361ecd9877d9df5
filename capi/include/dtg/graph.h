/* dtg/graph.h: dataflow graphs. Ops, attributes and their meaning are those of TensorFlow's op registry (dtg_ops_json
 * lists what is here). A graph is append-only: nodes never change and never go, so it may be run by other threads
 * while one thread adds to it. Single while nodes are added or scopes change; shared otherwise.
 *
 *   dtg_op_spec spec = DTG_OP_SPEC_INIT;             y = a * b, with b transposed
 *   dtg_attr transpose = DTG_ATTR_INIT;
 *   const dtg_value inputs[] = {a, b};
 *   transpose.name = "transpose_b"; transpose.kind = DTG_ATTR_BOOL; transpose.i = 1;
 *   spec.type = "MatMul"; spec.inputs = inputs; spec.num_inputs = 2; spec.attrs = &transpose; spec.num_attrs = 1;
 *   dtg_graph_add_op(graph, &spec, &y, 1);           or, with dtg/sugar_ops.h, dtg_add_mat_mul
 *
 * Nothing is computed here: a graph is a description, which sessions (dtg/session.h) plan and run. Errors of all functions:
 * INVALID_ARGUMENT for a closed handle or a value of another graph, RESOURCE_EXHAUSTED without memory; others stand with the
 * function. Names are UTF-8 without NUL. */
#ifndef DTG_GRAPH_H
#define DTG_GRAPH_H

#include <dtg/base.h>
#include <dtg/cluster.h>

DTG_BEGIN_DECLS

/* What an attribute holds, and which fields of dtg_attr say it. The kind must be the one that the op declares ("list(int)" is
 * DTG_ATTR_LIST_INT); a list may be empty. Attributes that only repeat what the inputs tell, such as the T of MatMul or the N of
 * AddN, need not be given. */
typedef int32_t dtg_attr_kind;
enum {
  DTG_ATTR_INT = 0,          /* i */
  DTG_ATTR_FLOAT = 1,        /* f */
  DTG_ATTR_BOOL = 2,         /* i: 0 or 1 */
  DTG_ATTR_TYPE = 3,         /* i: a dtg_dtype */
  DTG_ATTR_SHAPE = 4,        /* ints[count] = dimensions, -1 open; count = DTG_STRLEN: unknown rank */
  DTG_ATTR_STRING = 5,       /* s, s_len */
  DTG_ATTR_TENSOR = 6,       /* tensor: shared, not copied */
  DTG_ATTR_LIST_INT = 7,     /* ints[count] */
  DTG_ATTR_LIST_FLOAT = 8,   /* floats[count] */
  DTG_ATTR_LIST_BOOL = 9,    /* ints[count], each 0 or 1 */
  DTG_ATTR_LIST_TYPE = 10,   /* ints[count], each a dtg_dtype */
  DTG_ATTR_LIST_SHAPE = 11,  /* count shapes: lens[k] dimensions each (DTG_STRLEN: unknown rank), in a row in ints */
  DTG_ATTR_LIST_STRING = 12, /* strings[count], lens[count] (NULL: all end with NUL) */
  DTG_ATTR_FUNC = 13,        /* functions[0] (dtg/function.h): shared */
  DTG_ATTR_LIST_FUNC = 14    /* functions[count] */
};

/* An attribute of a node. Fields that its kind does not name are ignored. Everything is copied by the call that takes it, but for
 * `tensor`, which is shared: do not write to it afterwards. */
typedef struct dtg_attr {
  size_t struct_size;
  const char *name;
  size_t name_len;
  dtg_attr_kind kind;
  int32_t reserved0;
  int64_t i;
  double f;
  const char *s;
  size_t s_len;
  const int64_t *ints;
  const double *floats;
  const char *const *strings;
  const size_t *lens;
  size_t count;
  const dtg_tensor *tensor;
  const dtg_function *const *functions;
} dtg_attr;
#define DTG_ATTR_INIT \
  { sizeof(dtg_attr), NULL, DTG_STRLEN, 0, 0, 0, 0.0, NULL, DTG_STRLEN, NULL, NULL, NULL, NULL, 0, NULL, NULL }

/* A node to add. Read during the call only. `controls` order without passing a value; together with those of open control scopes. */
/* clang-format off */
typedef struct dtg_op_spec {
  size_t struct_size;
  const char *type;          /* "MatMul" */
  size_t type_len;
  const char *name;          /* NULL: made from the type; otherwise it must be free in the current name scope */
  size_t name_len;
  const dtg_value *inputs;   /* list arguments in a row */
  size_t num_inputs;
  const dtg_value *controls; /* nodes that must run before this one */
  size_t num_controls;
  const dtg_attr *attrs;     /* those that neither the inputs nor a default decide */
  size_t num_attrs;
  size_t attr_stride;        /* bytes from one dtg_attr to the next; 0: sizeof(dtg_attr) of this library */
  const char *device;        /* NULL: from the device scope; merged over it field by field */
  size_t device_len;
  const dtg_value *colocate; /* nodes whose device this one must share */
  size_t num_colocate;
  const char *location;      /* "file:line" for errors of this node, may be NULL */
  size_t location_len;
} dtg_op_spec;
#define DTG_OP_SPEC_INIT                                                                                      \
  {sizeof(dtg_op_spec), NULL, DTG_STRLEN, NULL, DTG_STRLEN, NULL, 0, NULL, 0, NULL, 0, sizeof(dtg_attr), NULL, \
   DTG_STRLEN, NULL, 0, NULL, DTG_STRLEN}
/* clang-format on */

/* An empty graph over the ops of `runtime` (NULL: the default one), which it keeps alive. `*out` is owned by the caller. Errors:
 * RESOURCE_EXHAUSTED after 2^20 graphs in one process. Since 0.1. */
DTG_ERR dtg_graph_create(dtg_runtime *runtime, dtg_graph **out) DTG_NOEXCEPT;

/* Adds a reference and returns the graph; NULL for NULL. Since 0.1. */
DTG_API dtg_graph *dtg_graph_retain(dtg_graph *graph) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. Sessions keep their graph alive themselves. Since 0.1. */
DTG_API void dtg_graph_release(dtg_graph *graph) DTG_NOEXCEPT;

/* Adds a node. `outs` receives its first `num_outs` outputs; a node without outputs gives one value that names the
 * node. num_outs may be smaller than the number of outputs, not larger (a node without outputs counts as one). All
 * checks that can be made now are made now: arity, types, attributes, ranks, shapes.
 * Errors: UNIMPLEMENTED (TensorFlow has that op and this library has not; the message says what it belongs to), NOT_FOUND (nobody has it;
 * the message suggests the closest name), INVALID_ARGUMENT (everything else that is wrong, with what was expected), RESOURCE_EXHAUSTED.
 * Each says the node (dtg_error_node: its full name, or the one it would have had), the phase "build", and, in the message, `location`. A
 * device that can be no device's ("/job:", "CPU:-1") is refused here; one that the session does not have is an error of the run. The graph
 * is unchanged on failure, but where num_outs is too large: then the node was added, as the message says, and dtg_graph_find finds it.
 * Since 0.1. Semantics: TensorFlow's op registry. */
DTG_ERR dtg_graph_add_op(dtg_graph *graph, const dtg_op_spec *spec, dtg_value *outs, size_t num_outs) DTG_NOEXCEPT;

/* Number of nodes so far; never falls. 0 for a bad handle. With dtg_graph_node_at it walks the graph in the order in which nodes
 * were added, in which each comes after its inputs. Since 0.1. */
DTG_API size_t dtg_graph_node_count(const dtg_graph *graph) DTG_NOEXCEPT;

/* The value that names the node added as number `index`, counted from 0: its first output, or the node itself. Errors:
 * OUT_OF_RANGE. Since 0.1. */
DTG_ERR dtg_graph_node_at(const dtg_graph *graph, size_t index, dtg_value *out) DTG_NOEXCEPT;

/* The value of that name: "node" (its first output, or the node itself) or "node:1". Names are full ones, "outer/inner/node",
 * whatever scope is open. Errors: NOT_FOUND, INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_graph_find(const dtg_graph *graph, const char *name, size_t name_len, dtg_value *out) DTG_NOEXCEPT;

/* Full name of a value's node, scopes included: UTF-8, ends with NUL, borrowed from the graph and valid as long as it. `length` (may
 * be NULL) receives its bytes. The body of a function answers this, and what follows, for values of the graphs around it too. Errors:
 * INVALID_ARGUMENT for a value of another graph. Since 0.1. */
DTG_ERR dtg_value_name(const dtg_graph *graph, dtg_value value, const char **out, size_t *length) DTG_NOEXCEPT;
/* As dtg_value_name, for the op's type. Since 0.1. */
DTG_ERR dtg_value_op(const dtg_graph *graph, dtg_value value, const char **out, size_t *length) DTG_NOEXCEPT;
/* As dtg_value_name, for the device that was asked for; "" when none was. Since 0.1. */
DTG_ERR dtg_value_device(const dtg_graph *graph, dtg_value value, const char **out, size_t *length) DTG_NOEXCEPT;

/* Number of outputs of a value's node; 0 for one that only runs, such as an update. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_value_num_outputs(const dtg_graph *graph, dtg_value value, size_t *out) DTG_NOEXCEPT;

/* Output `i` of the node that `value` belongs to, whichever of its outputs that is: how one gets at the second output of a node that
 * was found by name. Errors: OUT_OF_RANGE, INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_value_output(const dtg_graph *graph, dtg_value value, size_t i, dtg_value *out) DTG_NOEXCEPT;

/* Element type of a value, known for every value when its node is added. Errors: INVALID_ARGUMENT, also for a node without
 * outputs. Since 0.1. */
DTG_ERR dtg_value_dtype(const dtg_graph *graph, dtg_value value, dtg_dtype *out) DTG_NOEXCEPT;

/* What is known of a value's shape before a run: `rank` receives the number of dimensions or -1 when unknown; up to `cap` of them
 * are written to `dims` (-1 = open; NULL with cap 0: only the rank). A run knows more: it infers all shapes again from what is fed.
 * Errors: INVALID_ARGUMENT. Since 0.1. Semantics: the shape functions of TensorFlow's op registry. */
DTG_ERR dtg_value_shape(const dtg_graph *graph, dtg_value value, int64_t *dims, size_t cap, int32_t *rank) DTG_NOEXCEPT;

/* Scopes: everything added until the matching pop gets them. Innermost last. Popping what was not pushed is
 * FAILED_PRECONDITION. Single. Since 0.1.
 *   name:       prefixes names, "outer/inner/"; a name used before gets a number, so that building a model twice
 *               gives two sets of names. NULL or "" goes back to the root until the pop. INVALID_ARGUMENT for what cannot
 *               stand in a node's name.
 *   device:     merged over the outer ones field by field ("/job:ps" then "/device:CPU:1"). "" changes nothing; NULL leaves
 *               all outer ones, device setters included, until the pop.
 *   controls:   the nodes of `values` run before everything added inside.
 *   colocation: the device of the node of `value`. */
DTG_ERR dtg_graph_push_name_scope(dtg_graph *graph, const char *name, size_t name_len) DTG_NOEXCEPT;
/* Leaves the innermost name scope. See dtg_graph_push_name_scope. Since 0.1. */
DTG_ERR dtg_graph_pop_name_scope(dtg_graph *graph) DTG_NOEXCEPT;
/* See dtg_graph_push_name_scope. Errors: INVALID_ARGUMENT for a name that cannot be read. "/job:" and "CPU:-1" can be, as in TensorFlow; a
 * node that is left with one is an error of the run. Since 0.1. */
DTG_ERR dtg_graph_push_device(dtg_graph *graph, const char *device, size_t device_len) DTG_NOEXCEPT;
/* Leaves the innermost device scope or device setter, whichever was opened last. Errors: FAILED_PRECONDITION when none is open.
 * Since 0.1. */
DTG_ERR dtg_graph_pop_device(dtg_graph *graph) DTG_NOEXCEPT;

/* How a device setter chooses the task for a variable. */
typedef int32_t dtg_setter_strategy;
#define DTG_SETTER_ROUND_ROBIN 0  /* task after task, in the order in which variables are made */
#define DTG_SETTER_GREEDY_BYTES 1 /* the task with the fewest bytes so far, the first of equals; needs known shapes */

/* Who goes where in between-graph replication: each worker builds the same graph under such a setter, so that variables meet on the
 * ps tasks and computation stays at home. Zero is the default of every field. Read during the call only. */
typedef struct dtg_device_setter {
  size_t struct_size;
  const dtg_cluster *cluster; /* takes the ps tasks from the cluster's job of that name, or */
  int32_t ps_tasks;           /* without a cluster: how many there are */
  dtg_setter_strategy strategy;
  const char *ps_device;     /* ends with NUL; NULL: "/job:ps" */
  const char *worker_device; /* ends with NUL; NULL: "/job:worker", which leaves the task open */
  const char *const *ps_ops; /* ops that go to the ps, NULL: TensorFlow's list of ops that hold variables and tables */
  size_t num_ps_ops;
  int32_t keep_explicit; /* 1: a node that asks for any device keeps just that (merge_devices=False) */
  int32_t reserved;      /* 0 */
} dtg_device_setter;
#define DTG_DEVICE_SETTER_INIT \
  { sizeof(dtg_device_setter), NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0 }

/* Opens a device scope, left with dtg_graph_pop_device, that places nodes as TensorFlow's replica_device_setter: variables
 * on the ps tasks by turns (or by bytes), all else on the worker. What a node and the device scopes inside ask for
 * goes before what the setter says, and that before the device scopes around it; the turn moves only when the setter
 * was asked for a task, not for a variable that asks for another job. Slots follow their variable and gradients
 * their op. Workers that build the same nodes in the same order agree. Without ps tasks, or without that job in the
 * cluster, it changes nothing; the log tells where the cluster has several workers. Each push starts anew with the first task. Errors:
 * INVALID_ARGUMENT. Single. Since 0.1. */
DTG_ERR dtg_graph_push_device_setter(dtg_graph *graph, const dtg_device_setter *setter) DTG_NOEXCEPT;
/* Opens a control scope; `values` may be outputs or nodes, and none at all. See dtg_graph_push_name_scope. Since 0.1.
 * Semantics: tf.control_dependencies; an empty list adds nothing and lifts nothing. */
DTG_ERR dtg_graph_push_controls(dtg_graph *graph, const dtg_value *values, size_t num_values) DTG_NOEXCEPT;
/* Leaves the innermost control scope. See dtg_graph_push_name_scope. Since 0.1. */
DTG_ERR dtg_graph_pop_controls(dtg_graph *graph) DTG_NOEXCEPT;
/* Opens a colocation scope: what is added goes where the node of `value` goes, whatever device scopes say. See
 * dtg_graph_push_name_scope. Since 0.1. Semantics: tf.compat.v1.colocate_with. */
DTG_ERR dtg_graph_push_colocation(dtg_graph *graph, dtg_value value) DTG_NOEXCEPT;
/* Leaves the innermost colocation scope. See dtg_graph_push_name_scope. Since 0.1. */
DTG_ERR dtg_graph_pop_colocation(dtg_graph *graph) DTG_NOEXCEPT;

/* Opens a recompute scope, for models whose activations do not fit into memory: gradients that are made later compute what was added inside
 * once more, when they get there, instead of keeping it until then; the run pays with about the forward pass of the scope. A good scope is
 * a block of layers with a small input, such as one of a transformer. The values, and the first gradients, are the same to the bit.
 * What is not repeated but kept: ops with effects (a random op with a state, reads of variables), calls of functions (If, While) and
 * whatever deals with resources. dtg_nn_dropout is repeated with the same mask. Scopes follow each other but do not nest, and are
 * written and read with the graph, but for one that is open. Errors: FAILED_PRECONDITION (one is open), UNIMPLEMENTED (the graph is the
 * body of a function). Single. Since 0.1. Semantics: tf.recompute_grad. */
DTG_ERR dtg_graph_push_recompute(dtg_graph *graph) DTG_NOEXCEPT;
/* Leaves the recompute scope. See dtg_graph_push_recompute. Errors: FAILED_PRECONDITION when none is open. Since 0.1. */
DTG_ERR dtg_graph_pop_recompute(dtg_graph *graph) DTG_NOEXCEPT;

/* The gradient with respect to one x. Exactly one form is valid (non-zero): `dense`, of the type and shape of x; or rows, where x was
 * looked up by number (GatherV2, ResourceGather): values[i] is the gradient of row indices[i], rows that are not listed have none,
 * equal indices add up, and `dense_shape` is an int vector with the shape of x. All zero: no path leads from x to any y. Written by
 * the library; does not grow. Semantics: a tensor or tf.IndexedSlices. */
typedef struct dtg_gradient {
  dtg_value dense;
  dtg_value values;
  dtg_value indices;
  dtg_value dense_shape;
} dtg_gradient;

/* Adds the nodes that compute d(sum of the ys)/d(x) for each x, in reverse mode. An x may be any value of the graph, also the handle
 * of a variable, whose reads then count together. `grad_ys` weights the ys: NULL for ones, otherwise one
 * value per y of its type and shape (an invalid value = ones). `out` receives num_xs entries, with rows kept as rows. May be called
 * on its own results: gradients of gradients.
 * Errors: INVALID_ARGUMENT (a y that is not floating-point, foreign values), UNIMPLEMENTED (an op on the path has no
 * gradient; the message names it), FAILED_PRECONDITION (a PreventGradient is in the way). Since 0.1.
 * Semantics: tf.gradients. */
DTG_ERR dtg_graph_add_gradients(dtg_graph *graph, const dtg_value *ys, size_t num_ys, const dtg_value *xs, size_t num_xs,
                                const dtg_value *grad_ys, dtg_gradient *out) DTG_NOEXCEPT;

/* The dense form of a gradient that came as rows, of the shape `dense_shape`, equal indices added up; `*out` is `dense` itself when it
 * is dense already. Errors: INVALID_ARGUMENT when it is neither. Since 0.1. Semantics: tf.convert_to_tensor of IndexedSlices. */
DTG_ERR dtg_graph_densify(dtg_graph *graph, const dtg_gradient *gradient, dtg_value *out) DTG_NOEXCEPT;

/* The whole graph as FlatBuffers bytes (dtg_string_data), readable by dtg_graph_import of this and later versions, on any machine;
 * `dtg graph FILE` shows them. Constants are inside. Open scopes are not part of it. `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_graph_serialize(const dtg_graph *graph, dtg_string **out) DTG_NOEXCEPT;

/* Adds the nodes of a serialised graph to an empty graph, under their names. The bytes are verified before anything is
 * read, and every node passes the same checks as in dtg_graph_add_op. Errors: DATA_LOSS (not a graph, cut, or damaged),
 * INVALID_ARGUMENT (a node that does not hold), FAILED_PRECONDITION (the graph has nodes), RESOURCE_EXHAUSTED. On
 * failure the graph may hold the nodes before the bad one. Since 0.1. */
DTG_ERR dtg_graph_import(dtg_graph *graph, const void *bytes, size_t nbytes) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_GRAPH_H */
