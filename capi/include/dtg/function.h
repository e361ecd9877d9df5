/* dtg/function.h: functions of a graph, and the nodes that call them: conditions and loops. A function is built with the ordinary calls
 * on a graph of its own, its body. What the body takes from the graph around it, it simply uses: such a value becomes an argument by
 * itself. A function that was ended does not change, and may be called any number of times.
 *
 *   dtg_graph *body;                                    x doubled while it is less than 100
 *   dtg_function *less, *twice;
 *   dtg_function_begin(graph, "less", DTG_STRLEN, &body);
 *   dtg_function_add_argument_like(body, x, &v);
 *   dtg_add_less(body, NULL, v, hundred, &p);           of dtg/sugar_ops.h; hundred is a value of `graph`
 *   dtg_function_end(body, &p, 1, NULL, 0, &less);
 *   dtg_graph_release(body);
 *   dtg_function_begin(graph, "twice", DTG_STRLEN, &body);
 *   dtg_function_add_argument_like(body, x, &v);
 *   dtg_add_mul(body, NULL, v, two, &y);
 *   dtg_function_end(body, &y, 1, NULL, 0, &twice);
 *   dtg_graph_release(body);
 *   dtg_graph_add_while(graph, &x, 1, less, twice, &result);
 *
 * Gradients go through all of it (dtg_graph_add_gradients), also where only the run knows how often a loop turns. Variables and queues
 * are made outside and captured by their handles; what a body does to them happens in the order of nodes, as everywhere. Errors of all
 * functions: INVALID_ARGUMENT for a closed handle or a value of a graph that is not around the body, RESOURCE_EXHAUSTED without memory;
 * others stand with the function. */
#ifndef DTG_FUNCTION_H
#define DTG_FUNCTION_H

#include <dtg/graph.h>

DTG_BEGIN_DECLS

/* Begins a function that is called from `outer`, which may itself be a body: `*body` is a graph to add its nodes to, owned by the
 * caller. Values of `outer`, and of the graphs around that, may be used in it. `name` (NULL: "function") is for errors and traces.
 * Since 0.1. */
DTG_ERR dtg_function_begin(dtg_graph *outer, const char *name, size_t name_len, dtg_graph **body) DTG_NOEXCEPT;

/* An argument that whoever calls gives, after those made before. `dims` has `rank` entries, -1 open; rank DTG_STRLEN: unknown. In a loop
 * the shape is what holds in every round: where rounds change it, declare it open. Errors: FAILED_PRECONDITION when the function was
 * ended. Since 0.1. */
DTG_ERR dtg_function_add_argument(dtg_graph *body, dtg_dtype dtype, const int64_t *dims, size_t rank, dtg_value *out) DTG_NOEXCEPT;

/* An argument of the type and shape of `value`, which is of the graph around: also of a list or the handle of a variable. Since 0.1. */
DTG_ERR dtg_function_add_argument_like(dtg_graph *body, dtg_value value, dtg_value *out) DTG_NOEXCEPT;

/* Ends the body: the function gives `results`, which may be values from around. What acts on a variable or a queue runs in each call, and
 * so do `controls`; everything else only where the results need it. No more nodes can be added. `*out` is owned by the caller. Errors:
 * FAILED_PRECONDITION (it was ended before), UNIMPLEMENTED (it makes a variable or a queue of its own), RESOURCE_EXHAUSTED (more than 64
 * levels of functions, or 2^20 nodes with all that it calls). Since 0.1. */
DTG_ERR dtg_function_end(dtg_graph *body, const dtg_value *results, size_t num_results, const dtg_value *controls, size_t num_controls,
                         dtg_function **out) DTG_NOEXCEPT;

/* Adds a reference and returns the function; NULL for NULL. Since 0.1. */
DTG_API dtg_function *dtg_function_retain(dtg_function *function) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. Nodes keep what they call themselves. Since 0.1. */
DTG_API void dtg_function_release(dtg_function *function) DTG_NOEXCEPT;

/* What the function captured from around, in the order of the arguments that stand for it, which come after those asked for: up to `cap`
 * of them to `values` (NULL with cap 0: only the number). For nodes that are added with dtg_graph_add_op and an attribute of kind
 * DTG_ATTR_FUNC, which must be given them as inputs; the calls below see to that themselves. Since 0.1. */
DTG_ERR dtg_function_captures(const dtg_function *function, dtg_value *values, size_t cap, size_t *count) DTG_NOEXCEPT;

/* Calls `then_branch` where `condition` is true (a number that is not 0, a tensor that is not empty), else `else_branch`; both take no
 * arguments and give as many results of the same types, which `outs` receives: `num_outs` of them, no more than there are. Only the branch
 * that is taken runs. Since 0.1. Semantics: tf.cond. */
DTG_ERR dtg_graph_add_if(dtg_graph *graph, dtg_value condition, const dtg_function *then_branch, const dtg_function *else_branch,
                         dtg_value *outs, size_t num_outs) DTG_NOEXCEPT;

/* As dtg_graph_add_if, with the function number `index` (an int32, counted from 0; the last one for every other number). Since 0.1.
 * Semantics: tf.switch_case. */
DTG_ERR dtg_graph_add_case(dtg_graph *graph, dtg_value index, const dtg_function *const *branches, size_t num_branches, dtg_value *outs,
                           size_t num_outs) DTG_NOEXCEPT;

/* Calls `body` on what it gave the last time, first on `start`, for as long as `condition` says so: both take `num_vars` arguments, the
 * body gives as many values of the same types, the condition one. `outs` receives num_vars values, those of the end. Errors of a run:
 * INVALID_ARGUMENT when a shape does not stay within that of the body's argument; a loop that does not end is ended by the run's deadline
 * or by cancelling it. Since 0.1. Semantics: tf.while_loop. */
DTG_ERR dtg_graph_add_while(dtg_graph *graph, const dtg_value *start, size_t num_vars, const dtg_function *condition,
                            const dtg_function *body, dtg_value *outs) DTG_NOEXCEPT;

/* Calls a function with `arguments`; `outs` receives the first `num_outs` of its results. Since 0.1. Semantics: tf.function. */
DTG_ERR dtg_graph_add_call(dtg_graph *graph, const dtg_function *function, const dtg_value *arguments, size_t num_arguments,
                           dtg_value *outs, size_t num_outs) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_FUNCTION_H */
