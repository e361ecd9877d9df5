// The C ABI of libdtg as Rust declarations. Written by bindings/generate from capi/include/dtg; do not edit.
// The headers are the documentation: what each function does, who owns what, which threads may call it.

use core::ffi::{c_char, c_void};
use core::mem::size_of;
use core::ptr::{null, null_mut};

/// What only libdtg looks into: of no size that Rust may rely on, and neither Send, Sync nor Unpin.
#[repr(C)]
struct Opaque([u8; 0], core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>);

#[repr(C)]
pub struct ArrowArrayStream(Opaque);
#[repr(C)]
pub struct dtg_error(Opaque);
#[repr(C)]
pub struct dtg_string(Opaque);
#[repr(C)]
pub struct dtg_runtime(Opaque);
#[repr(C)]
pub struct dtg_tensor(Opaque);
#[repr(C)]
pub struct dtg_function(Opaque);
#[repr(C)]
pub struct dtg_graph(Opaque);
#[repr(C)]
pub struct dtg_session(Opaque);
#[repr(C)]
pub struct dtg_callable(Opaque);
#[repr(C)]
pub struct dtg_cancellation(Opaque);
#[repr(C)]
pub struct dtg_run(Opaque);
#[repr(C)]
pub struct dtg_cq(Opaque);
#[repr(C)]
pub struct dtg_checkpoint(Opaque);
#[repr(C)]
pub struct dtg_cluster(Opaque);
#[repr(C)]
pub struct dtg_coordinator(Opaque);
#[repr(C)]
pub struct dtg_closure(Opaque);
#[repr(C)]
pub struct dtg_remote_value(Opaque);
#[repr(C)]
pub struct dtg_dataset(Opaque);
#[repr(C)]
pub struct DLManagedTensor(Opaque);
#[repr(C)]
pub struct DLManagedTensorVersioned(Opaque);
#[repr(C)]
pub struct dtg_group(Opaque);
#[repr(C)]
pub struct dtg_collective(Opaque);
#[repr(C)]
pub struct dtg_weights(Opaque);
#[repr(C)]
pub struct dtg_event_writer(Opaque);
#[repr(C)]
pub struct dtg_mesh(Opaque);
#[repr(C)]
pub struct dtg_model(Opaque);
#[repr(C)]
pub struct dtg_server(Opaque);
#[repr(C)]
pub struct dtg_strategy(Opaque);
#[repr(C)]
pub struct dtg_trainer(Opaque);

pub type dtg_code = i32;
pub type dtg_dtype = i32;
pub type dtg_partitioner_kind = i32;
pub type dtg_attr_kind = i32;
pub type dtg_setter_strategy = i32;
pub type dtg_reduction = i32;
pub type dtg_reduce_algorithm = i32;
pub type dtg_collective_kind = i32;
pub type dtg_recurrent_kind = i32;
pub type dtg_direction = i32;
pub type dtg_position_kind = i32;
pub type dtg_combiner = i32;
pub type dtg_output_mode = i32;
pub type dtg_noise_kind = i32;
pub type dtg_loss_kind = i32;
pub type dtg_loss_reduction = i32;
pub type dtg_sampled_kind = i32;
pub type dtg_candidates = i32;
pub type dtg_mesh_zero = i32;
pub type dtg_table_cut = i32;
pub type dtg_metric_kind = i32;
pub type dtg_metric_curve = i32;
pub type dtg_metric_summation = i32;
pub type dtg_metric_average = i32;
pub type dtg_initializer_kind = i32;
pub type dtg_variable_sync = i32;
pub type dtg_variable_aggregation = i32;
pub type dtg_activation = i32;
pub type dtg_padding = i32;
pub type dtg_optimizer_kind = i32;
pub type dtg_schedule_kind = i32;
pub type dtg_sync_mode = i32;
pub type dtg_log_level = i32;
pub type dtg_durability = i32;
pub type dtg_outcome = i32;
pub type dtg_security = i32;
pub type dtg_strategy_kind = i32;
pub type dtg_cross_device = i32;
pub type dtg_assign_op = i32;
pub type dtg_better = i32;
pub type dtg_progress = i32;
pub type dtg_fit_event_kind = i32;

pub type dtg_element_fn = unsafe extern "C" fn(user: *mut c_void, arguments: *const *mut dtg_tensor, num_arguments: usize, results: *mut *mut dtg_tensor, num_results: usize) -> *mut dtg_error;
pub type dtg_predicate_fn = unsafe extern "C" fn(user: *mut c_void, arguments: *const *mut dtg_tensor, num_arguments: usize, keep: *mut i32) -> *mut dtg_error;
pub type dtg_source_next_fn = unsafe extern "C" fn(user: *mut c_void, tensors: *mut *mut dtg_tensor, num_tensors: usize, more: *mut i32) -> *mut dtg_error;
pub type dtg_source_restart_fn = unsafe extern "C" fn(user: *mut c_void, epoch: i64) -> *mut dtg_error;
pub type dtg_source_skip_fn = unsafe extern "C" fn(user: *mut c_void, count: i64, passed: *mut i64) -> *mut dtg_error;
pub type dtg_log_fn = unsafe extern "C" fn(user: *mut c_void, level: dtg_log_level, component: *const c_char, message: *const c_char);
pub type dtg_user_free_fn = unsafe extern "C" fn(user: *mut c_void);
pub type dtg_replica_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, replica: i32, inputs: *const dtg_value, num_inputs: usize, results: *mut dtg_value, num_results: usize) -> *mut dtg_error;
pub type dtg_merge_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, values: *const dtg_per_replica, num_values: usize, results: *mut dtg_per_replica, num_results: usize) -> *mut dtg_error;
pub type dtg_update_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, copy: i32, variable: *const dtg_variable, values: *const dtg_value, num_values: usize, out: *mut dtg_value) -> *mut dtg_error;
pub type dtg_create_variable_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, place: *mut dtg_variable_place) -> *mut dtg_error;
pub type dtg_around_replica_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, replica: i32) -> *mut dtg_error;
pub type dtg_reduce_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, op: dtg_reduction, parts: *const dtg_value, num_parts: usize, out: *mut dtg_value) -> *mut dtg_error;
pub type dtg_batch_reduce_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, op: dtg_reduction, parts: *const dtg_value, num_variables: usize, num_parts: usize, outs: *mut dtg_value) -> *mut dtg_error;
pub type dtg_spread_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, value: dtg_value, outs: *mut dtg_value, num_outs: usize) -> *mut dtg_error;
pub type dtg_read_variable_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, name: *const c_char, reads: *const dtg_value, num_reads: usize, out: *mut dtg_value) -> *mut dtg_error;
pub type dtg_around_update_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, name: *const c_char, copy: i32) -> *mut dtg_error;
pub type dtg_gather_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, parts: *const dtg_value, num_parts: usize, axis: i32, out: *mut dtg_value) -> *mut dtg_error;
pub type dtg_local_results_fn = unsafe extern "C" fn(user: *mut c_void, strategy: *mut dtg_strategy, values: *const dtg_value, num_values: usize, outs: *mut dtg_value, num_outs: *mut usize) -> *mut dtg_error;
pub type dtg_free_fn = unsafe extern "C" fn(data: *mut c_void, nbytes: usize, user: *mut c_void);
pub type dtg_fit_fn = unsafe extern "C" fn(user: *mut c_void, trainer: *mut dtg_trainer, event: *const dtg_fit_event) -> *mut dtg_error;

pub const DTG_STRLEN: usize = usize::MAX;
pub const DTG_INFINITE: i64 = -1;
pub const DTG_VERSION_MAJOR: u32 = 0;
pub const DTG_VERSION_MINOR: u32 = 1;
pub const DTG_VERSION_PATCH: u32 = 0;
pub const DTG_OK: dtg_code = 0;
pub const DTG_CANCELLED: dtg_code = 1;
pub const DTG_UNKNOWN: dtg_code = 2;
pub const DTG_INVALID_ARGUMENT: dtg_code = 3;
pub const DTG_DEADLINE_EXCEEDED: dtg_code = 4;
pub const DTG_NOT_FOUND: dtg_code = 5;
pub const DTG_ALREADY_EXISTS: dtg_code = 6;
pub const DTG_PERMISSION_DENIED: dtg_code = 7;
pub const DTG_RESOURCE_EXHAUSTED: dtg_code = 8;
pub const DTG_FAILED_PRECONDITION: dtg_code = 9;
pub const DTG_ABORTED: dtg_code = 10;
pub const DTG_OUT_OF_RANGE: dtg_code = 11;
pub const DTG_UNIMPLEMENTED: dtg_code = 12;
pub const DTG_INTERNAL: dtg_code = 13;
pub const DTG_UNAVAILABLE: dtg_code = 14;
pub const DTG_DATA_LOSS: dtg_code = 15;
pub const DTG_UNAUTHENTICATED: dtg_code = 16;
pub const DTG_F32: dtg_dtype = 1;
pub const DTG_F64: dtg_dtype = 2;
pub const DTG_I32: dtg_dtype = 3;
pub const DTG_U8: dtg_dtype = 4;
pub const DTG_I16: dtg_dtype = 5;
pub const DTG_I8: dtg_dtype = 6;
pub const DTG_STRING: dtg_dtype = 7;
pub const DTG_C64: dtg_dtype = 8;
pub const DTG_I64: dtg_dtype = 9;
pub const DTG_BOOL: dtg_dtype = 10;
pub const DTG_QI8: dtg_dtype = 11;
pub const DTG_QU8: dtg_dtype = 12;
pub const DTG_QI32: dtg_dtype = 13;
pub const DTG_BF16: dtg_dtype = 14;
pub const DTG_QI16: dtg_dtype = 15;
pub const DTG_QU16: dtg_dtype = 16;
pub const DTG_U16: dtg_dtype = 17;
pub const DTG_C128: dtg_dtype = 18;
pub const DTG_F16: dtg_dtype = 19;
pub const DTG_RESOURCE: dtg_dtype = 20;
pub const DTG_VARIANT: dtg_dtype = 21;
pub const DTG_U32: dtg_dtype = 22;
pub const DTG_U64: dtg_dtype = 23;
pub const DTG_F8_E5M2: dtg_dtype = 24;
pub const DTG_F8_E4M3FN: dtg_dtype = 25;
pub const DTG_I4: dtg_dtype = 29;
pub const DTG_U4: dtg_dtype = 30;
pub const DTG_PARTITIONER_FIXED_SHARDS: dtg_partitioner_kind = 0;
pub const DTG_PARTITIONER_MIN_SIZE: dtg_partitioner_kind = 1;
pub const DTG_PARTITIONER_MAX_SIZE: dtg_partitioner_kind = 2;
pub const DTG_MISSING_DEFAULT: i32 = 0;
pub const DTG_MISSING_DROP: i32 = 1;
pub const DTG_MISSING_REFUSE: i32 = 2;
pub const DTG_MISSING_KEEP: i32 = 3;
pub const DTG_MISSING_MEAN: i32 = 4;
pub const DTG_NORMALIZE_STANDARD: i32 = 0;
pub const DTG_NORMALIZE_RANGE: i32 = 1;
pub const DTG_SETTER_ROUND_ROBIN: i32 = 0;
pub const DTG_SETTER_GREEDY_BYTES: i32 = 1;
pub const DTG_ATTR_INT: dtg_attr_kind = 0;
pub const DTG_ATTR_FLOAT: dtg_attr_kind = 1;
pub const DTG_ATTR_BOOL: dtg_attr_kind = 2;
pub const DTG_ATTR_TYPE: dtg_attr_kind = 3;
pub const DTG_ATTR_SHAPE: dtg_attr_kind = 4;
pub const DTG_ATTR_STRING: dtg_attr_kind = 5;
pub const DTG_ATTR_TENSOR: dtg_attr_kind = 6;
pub const DTG_ATTR_LIST_INT: dtg_attr_kind = 7;
pub const DTG_ATTR_LIST_FLOAT: dtg_attr_kind = 8;
pub const DTG_ATTR_LIST_BOOL: dtg_attr_kind = 9;
pub const DTG_ATTR_LIST_TYPE: dtg_attr_kind = 10;
pub const DTG_ATTR_LIST_SHAPE: dtg_attr_kind = 11;
pub const DTG_ATTR_LIST_STRING: dtg_attr_kind = 12;
pub const DTG_ATTR_FUNC: dtg_attr_kind = 13;
pub const DTG_ATTR_LIST_FUNC: dtg_attr_kind = 14;
pub const DTG_REDUCE_SUM: dtg_reduction = 0;
pub const DTG_REDUCE_MEAN: dtg_reduction = 1;
pub const DTG_REDUCE_MIN: dtg_reduction = 2;
pub const DTG_REDUCE_MAX: dtg_reduction = 3;
pub const DTG_REDUCE_PRODUCT: dtg_reduction = 4;
pub const DTG_ALGORITHM_AUTO: dtg_reduce_algorithm = 0;
pub const DTG_ALGORITHM_DIRECT: dtg_reduce_algorithm = 1;
pub const DTG_ALGORITHM_SHARED: dtg_reduce_algorithm = 2;
pub const DTG_ALGORITHM_RING: dtg_reduce_algorithm = 3;
pub const DTG_ALGORITHM_ANY: dtg_reduce_algorithm = 4;
pub const DTG_ALGORITHM_HALVING: dtg_reduce_algorithm = 5;
pub const DTG_ALGORITHM_DOUBLING: dtg_reduce_algorithm = 6;
pub const DTG_ALGORITHM_TREE: dtg_reduce_algorithm = 7;
pub const DTG_ALGORITHM_HIERARCHY: dtg_reduce_algorithm = 8;
pub const DTG_ALL_REDUCE: dtg_collective_kind = 0;
pub const DTG_ALL_GATHER: dtg_collective_kind = 1;
pub const DTG_REDUCE_SCATTER: dtg_collective_kind = 2;
pub const DTG_BROADCAST: dtg_collective_kind = 3;
pub const DTG_ALL_TO_ALL: dtg_collective_kind = 4;
pub const DTG_BARRIER: dtg_collective_kind = 5;
pub const DTG_LSTM: dtg_recurrent_kind = 0;
pub const DTG_GRU: dtg_recurrent_kind = 1;
pub const DTG_SIMPLE_RNN: dtg_recurrent_kind = 2;
pub const DTG_FORWARD: dtg_direction = 0;
pub const DTG_BACKWARD: dtg_direction = 1;
pub const DTG_BOTH: dtg_direction = 2;
pub const DTG_POSITION_SINE: dtg_position_kind = 0;
pub const DTG_POSITION_LEARNED: dtg_position_kind = 1;
pub const DTG_COMBINE_MEAN: dtg_combiner = 0;
pub const DTG_COMBINE_SUM: dtg_combiner = 1;
pub const DTG_COMBINE_SQRTN: dtg_combiner = 2;
pub const DTG_OUTPUT_INT: dtg_output_mode = 0;
pub const DTG_OUTPUT_ONE_HOT: dtg_output_mode = 1;
pub const DTG_OUTPUT_MULTI_HOT: dtg_output_mode = 2;
pub const DTG_OUTPUT_COUNT: dtg_output_mode = 3;
pub const DTG_SPATIAL_DROPOUT: dtg_noise_kind = 0;
pub const DTG_GAUSSIAN_NOISE: dtg_noise_kind = 1;
pub const DTG_GAUSSIAN_DROPOUT: dtg_noise_kind = 2;
pub const DTG_ALPHA_DROPOUT: dtg_noise_kind = 3;
pub const DTG_LOSS_MEAN_SQUARED_ERROR: dtg_loss_kind = 0;
pub const DTG_LOSS_MEAN_ABSOLUTE_ERROR: dtg_loss_kind = 1;
pub const DTG_LOSS_MEAN_ABSOLUTE_PERCENTAGE_ERROR: dtg_loss_kind = 2;
pub const DTG_LOSS_MEAN_SQUARED_LOGARITHMIC_ERROR: dtg_loss_kind = 3;
pub const DTG_LOSS_HUBER: dtg_loss_kind = 4;
pub const DTG_LOSS_LOG_COSH: dtg_loss_kind = 5;
pub const DTG_LOSS_COSINE_SIMILARITY: dtg_loss_kind = 6;
pub const DTG_LOSS_KL_DIVERGENCE: dtg_loss_kind = 7;
pub const DTG_LOSS_POISSON: dtg_loss_kind = 8;
pub const DTG_LOSS_HINGE: dtg_loss_kind = 9;
pub const DTG_LOSS_SQUARED_HINGE: dtg_loss_kind = 10;
pub const DTG_LOSS_CATEGORICAL_HINGE: dtg_loss_kind = 11;
pub const DTG_LOSS_BINARY_CROSSENTROPY: dtg_loss_kind = 12;
pub const DTG_LOSS_BINARY_FOCAL_CROSSENTROPY: dtg_loss_kind = 13;
pub const DTG_LOSS_CATEGORICAL_CROSSENTROPY: dtg_loss_kind = 14;
pub const DTG_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY: dtg_loss_kind = 15;
pub const DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY: dtg_loss_kind = 16;
pub const DTG_LOSS_CTC: dtg_loss_kind = 17;
pub const DTG_LOSS_DICE: dtg_loss_kind = 18;
pub const DTG_LOSS_TVERSKY: dtg_loss_kind = 19;
pub const DTG_LOSS_CONTRASTIVE: dtg_loss_kind = 20;
pub const DTG_LOSS_MEAN: dtg_loss_reduction = 0;
pub const DTG_LOSS_SUM: dtg_loss_reduction = 1;
pub const DTG_LOSS_EACH: dtg_loss_reduction = 2;
pub const DTG_LOSS_MEAN_BY_WEIGHTS: dtg_loss_reduction = 3;
pub const DTG_NCE: dtg_sampled_kind = 0;
pub const DTG_SAMPLED_SOFTMAX: dtg_sampled_kind = 1;
pub const DTG_LOG_UNIFORM: dtg_candidates = 0;
pub const DTG_UNIFORM: dtg_candidates = 1;
pub const DTG_ZERO_NONE: dtg_mesh_zero = 0;
pub const DTG_ZERO_STATES: dtg_mesh_zero = 1;
pub const DTG_ZERO_GRADIENTS: dtg_mesh_zero = 2;
pub const DTG_CUT_ROWS: dtg_table_cut = 0;
pub const DTG_CUT_COLUMNS: dtg_table_cut = 1;
pub const DTG_METRIC_MEAN: dtg_metric_kind = 0;
pub const DTG_METRIC_SUM: dtg_metric_kind = 1;
pub const DTG_METRIC_LOSS: dtg_metric_kind = 2;
pub const DTG_METRIC_MEAN_SQUARED_ERROR: dtg_metric_kind = 3;
pub const DTG_METRIC_MEAN_ABSOLUTE_ERROR: dtg_metric_kind = 4;
pub const DTG_METRIC_ROOT_MEAN_SQUARED_ERROR: dtg_metric_kind = 5;
pub const DTG_METRIC_R2_SCORE: dtg_metric_kind = 6;
pub const DTG_METRIC_LOG_LOSS: dtg_metric_kind = 7;
pub const DTG_METRIC_ACCURACY: dtg_metric_kind = 8;
pub const DTG_METRIC_BINARY_ACCURACY: dtg_metric_kind = 9;
pub const DTG_METRIC_CATEGORICAL_ACCURACY: dtg_metric_kind = 10;
pub const DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY: dtg_metric_kind = 11;
pub const DTG_METRIC_TOP_K_CATEGORICAL_ACCURACY: dtg_metric_kind = 12;
pub const DTG_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY: dtg_metric_kind = 13;
pub const DTG_METRIC_AUC: dtg_metric_kind = 14;
pub const DTG_METRIC_PRECISION: dtg_metric_kind = 15;
pub const DTG_METRIC_RECALL: dtg_metric_kind = 16;
pub const DTG_METRIC_TRUE_POSITIVES: dtg_metric_kind = 17;
pub const DTG_METRIC_FALSE_POSITIVES: dtg_metric_kind = 18;
pub const DTG_METRIC_TRUE_NEGATIVES: dtg_metric_kind = 19;
pub const DTG_METRIC_FALSE_NEGATIVES: dtg_metric_kind = 20;
pub const DTG_METRIC_F1_SCORE: dtg_metric_kind = 21;
pub const DTG_METRIC_MEAN_IOU: dtg_metric_kind = 22;
pub const DTG_METRIC_CONFUSION_MATRIX: dtg_metric_kind = 23;
pub const DTG_CURVE_ROC: dtg_metric_curve = 0;
pub const DTG_CURVE_PR: dtg_metric_curve = 1;
pub const DTG_SUMMATION_INTERPOLATION: dtg_metric_summation = 0;
pub const DTG_SUMMATION_MINORING: dtg_metric_summation = 1;
pub const DTG_SUMMATION_MAJORING: dtg_metric_summation = 2;
pub const DTG_AVERAGE_DEFAULT: dtg_metric_average = 0;
pub const DTG_AVERAGE_NONE: dtg_metric_average = 1;
pub const DTG_AVERAGE_UNIFORM: dtg_metric_average = 2;
pub const DTG_AVERAGE_WEIGHTED: dtg_metric_average = 3;
pub const DTG_AVERAGE_MICRO: dtg_metric_average = 4;
pub const DTG_INIT_DEFAULT: dtg_initializer_kind = 0;
pub const DTG_INIT_ZEROS: dtg_initializer_kind = 1;
pub const DTG_INIT_ONES: dtg_initializer_kind = 2;
pub const DTG_INIT_CONSTANT: dtg_initializer_kind = 3;
pub const DTG_INIT_UNIFORM: dtg_initializer_kind = 4;
pub const DTG_INIT_NORMAL: dtg_initializer_kind = 5;
pub const DTG_INIT_TRUNCATED_NORMAL: dtg_initializer_kind = 6;
pub const DTG_INIT_GLOROT_UNIFORM: dtg_initializer_kind = 7;
pub const DTG_INIT_GLOROT_NORMAL: dtg_initializer_kind = 8;
pub const DTG_INIT_HE_UNIFORM: dtg_initializer_kind = 9;
pub const DTG_INIT_HE_NORMAL: dtg_initializer_kind = 10;
pub const DTG_INIT_ORTHOGONAL: dtg_initializer_kind = 11;
pub const DTG_VARIABLE_ON_WRITE: dtg_variable_sync = 0;
pub const DTG_VARIABLE_ON_READ: dtg_variable_sync = 1;
pub const DTG_AGGREGATION_NONE: dtg_variable_aggregation = 0;
pub const DTG_AGGREGATION_SUM: dtg_variable_aggregation = 1;
pub const DTG_AGGREGATION_MEAN: dtg_variable_aggregation = 2;
pub const DTG_AGGREGATION_ONLY_FIRST_REPLICA: dtg_variable_aggregation = 3;
pub const DTG_ACT_NONE: dtg_activation = 0;
pub const DTG_ACT_RELU: dtg_activation = 1;
pub const DTG_ACT_RELU6: dtg_activation = 2;
pub const DTG_ACT_ELU: dtg_activation = 3;
pub const DTG_ACT_SELU: dtg_activation = 4;
pub const DTG_ACT_SOFTPLUS: dtg_activation = 5;
pub const DTG_ACT_SIGMOID: dtg_activation = 6;
pub const DTG_ACT_TANH: dtg_activation = 7;
pub const DTG_ACT_SOFTMAX: dtg_activation = 8;
pub const DTG_ACT_GELU: dtg_activation = 9;
pub const DTG_PADDING_VALID: dtg_padding = 0;
pub const DTG_PADDING_SAME: dtg_padding = 1;
pub const DTG_OPT_SGD: dtg_optimizer_kind = 0;
pub const DTG_OPT_MOMENTUM: dtg_optimizer_kind = 1;
pub const DTG_OPT_ADAM: dtg_optimizer_kind = 2;
pub const DTG_OPT_ADAGRAD: dtg_optimizer_kind = 3;
pub const DTG_OPT_RMSPROP: dtg_optimizer_kind = 4;
pub const DTG_OPT_ADAMW: dtg_optimizer_kind = 5;
pub const DTG_OPT_ADADELTA: dtg_optimizer_kind = 6;
pub const DTG_OPT_ADAMAX: dtg_optimizer_kind = 7;
pub const DTG_OPT_NADAM: dtg_optimizer_kind = 8;
pub const DTG_OPT_FTRL: dtg_optimizer_kind = 9;
pub const DTG_OPT_LION: dtg_optimizer_kind = 10;
pub const DTG_OPT_LAMB: dtg_optimizer_kind = 11;
pub const DTG_OPT_LARS: dtg_optimizer_kind = 12;
pub const DTG_OPT_ADAFACTOR: dtg_optimizer_kind = 13;
pub const DTG_SCHEDULE_EXPONENTIAL_DECAY: dtg_schedule_kind = 0;
pub const DTG_SCHEDULE_INVERSE_TIME_DECAY: dtg_schedule_kind = 1;
pub const DTG_SCHEDULE_POLYNOMIAL_DECAY: dtg_schedule_kind = 2;
pub const DTG_SCHEDULE_PIECEWISE_CONSTANT: dtg_schedule_kind = 3;
pub const DTG_SCHEDULE_COSINE_DECAY: dtg_schedule_kind = 4;
pub const DTG_SCHEDULE_COSINE_DECAY_RESTARTS: dtg_schedule_kind = 5;
pub const DTG_SYNC_ASYNC: dtg_sync_mode = 0;
pub const DTG_SYNC_STRICT: dtg_sync_mode = 1;
pub const DTG_SYNC_REPLICAS: dtg_sync_mode = 2;
pub const DTG_SYNC_SSP: dtg_sync_mode = 3;
pub const DTG_SYNC_ELASTIC: dtg_sync_mode = 4;
pub const DTG_LOG_DEBUG: dtg_log_level = 0;
pub const DTG_LOG_INFO: dtg_log_level = 1;
pub const DTG_LOG_WARN: dtg_log_level = 2;
pub const DTG_LOG_ERROR: dtg_log_level = 3;
pub const DTG_LOG_OFF: dtg_log_level = 4;
pub const DTG_DURABILITY_DEFAULT: dtg_durability = 0;
pub const DTG_DURABILITY_MEMORY: dtg_durability = 1;
pub const DTG_DURABILITY_REPLAY: dtg_durability = 2;
pub const DTG_DURABILITY_WAL: dtg_durability = 3;
pub const DTG_DURABILITY_WAL_ASYNC: dtg_durability = 4;
pub const DTG_OUTCOME_NOTHING: dtg_outcome = 0;
pub const DTG_OUTCOME_UPDATED: dtg_outcome = 1;
pub const DTG_OUTCOME_FORGOTTEN: dtg_outcome = 2;
pub const DTG_SECURITY_TLS: dtg_security = 0;
pub const DTG_SECURITY_CLEAR_FRAMES: dtg_security = 1;
pub const DTG_NO_AXIS: i32 = i32::MIN;
pub const DTG_STRATEGY_ONE_DEVICE: dtg_strategy_kind = 0;
pub const DTG_STRATEGY_MIRRORED: dtg_strategy_kind = 1;
pub const DTG_STRATEGY_CENTRAL_STORAGE: dtg_strategy_kind = 2;
pub const DTG_STRATEGY_PARAMETER_SERVER: dtg_strategy_kind = 3;
pub const DTG_STRATEGY_CUSTOM: dtg_strategy_kind = 4;
pub const DTG_STRATEGY_MULTI_WORKER_MIRRORED: dtg_strategy_kind = 5;
pub const DTG_REDUCE_TO_ONE_DEVICE: dtg_cross_device = 0;
pub const DTG_REDUCE_HIERARCHICAL: dtg_cross_device = 1;
pub const DTG_ASSIGN_SET: dtg_assign_op = 0;
pub const DTG_ASSIGN_ADD: dtg_assign_op = 1;
pub const DTG_ASSIGN_SUB: dtg_assign_op = 2;
pub const DTG_BETTER_BY_NAME: dtg_better = 0;
pub const DTG_BETTER_LESS: dtg_better = 1;
pub const DTG_BETTER_GREATER: dtg_better = 2;
pub const DTG_PROGRESS_BEST: dtg_progress = 0;
pub const DTG_PROGRESS_LINES: dtg_progress = 1;
pub const DTG_PROGRESS_OFF: dtg_progress = 2;
pub const DTG_FIT_BEGIN: dtg_fit_event_kind = 0;
pub const DTG_FIT_EPOCH_BEGIN: dtg_fit_event_kind = 1;
pub const DTG_FIT_STEP: dtg_fit_event_kind = 2;
pub const DTG_FIT_VALIDATION: dtg_fit_event_kind = 3;
pub const DTG_FIT_RATE: dtg_fit_event_kind = 4;
pub const DTG_FIT_EPOCH_END: dtg_fit_event_kind = 5;
pub const DTG_FIT_CHECKPOINT: dtg_fit_event_kind = 6;
pub const DTG_FIT_STOPPED: dtg_fit_event_kind = 7;
pub const DTG_FIT_DONE: dtg_fit_event_kind = 8;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_arrow_options {
    pub struct_size: usize,
    pub label: *const c_char,
    pub label_len: usize,
    pub columns: *const *const c_char,
    pub num_columns: usize,
    pub missing: i32,
    pub reserved0: i32,
    pub schema: *const c_char,
    pub schema_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct dtg_value {
    pub id: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_checkpoint_options {
    pub struct_size: usize,
    pub directory: *const c_char,
    pub directory_len: usize,
    pub keep: i32,
    pub shards: i32,
    pub every_steps: i64,
    pub every_ns: i64,
    pub partial: i32,
    pub reserved0: i32,
    pub names: *const c_char,
    pub names_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_task {
    pub struct_size: usize,
    pub r#type: [c_char; 64],
    pub index: i32,
    pub is_chief: i32,
    pub id: i32,
    pub num_workers: i32,
    pub num_ps: i32,
    pub reserved: i32,
    pub rpc_layer: [c_char; 32],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_coordinator_options {
    pub struct_size: usize,
    pub job: *const c_char,
    pub job_len: usize,
    pub queue_capacity: i64,
    pub closure_timeout_ns: i64,
    pub worker_timeout_ns: i64,
    pub server_timeout_ns: i64,
    pub closure_losses: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_schedule_options {
    pub struct_size: usize,
    pub timeout_ns: i64,
    pub cancellation: *mut dtg_cancellation,
    pub cq: *mut dtg_cq,
    pub tag: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_partitioner {
    pub struct_size: usize,
    pub kind: dtg_partitioner_kind,
    pub axis: i32,
    pub num_shards: i64,
    pub shard_bytes: i64,
    pub max_shards: i64,
    pub bytes_per_string: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_csv_options {
    pub struct_size: usize,
    pub label: *const c_char,
    pub label_len: usize,
    pub columns: *const *const c_char,
    pub num_columns: usize,
    pub header: i32,
    pub missing: i32,
    pub delimiter: i32,
    pub reserved0: i32,
    pub schema: *const c_char,
    pub schema_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_json_lines_options {
    pub struct_size: usize,
    pub label: *const c_char,
    pub label_len: usize,
    pub columns: *const *const c_char,
    pub num_columns: usize,
    pub missing: i32,
    pub skip_bad_rows: i32,
    pub schema: *const c_char,
    pub schema_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_split {
    pub struct_size: usize,
    pub fraction: f64,
    pub seed: u64,
    pub folds: i32,
    pub fold: i32,
    pub stratify: i32,
    pub reserved0: i32,
    pub classes: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_attr {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: dtg_attr_kind,
    pub reserved0: i32,
    pub i: i64,
    pub f: f64,
    pub s: *const c_char,
    pub s_len: usize,
    pub ints: *const i64,
    pub floats: *const f64,
    pub strings: *const *const c_char,
    pub lens: *const usize,
    pub count: usize,
    pub tensor: *const dtg_tensor,
    pub functions: *const *const dtg_function,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_op_spec {
    pub struct_size: usize,
    pub r#type: *const c_char,
    pub type_len: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub inputs: *const dtg_value,
    pub num_inputs: usize,
    pub controls: *const dtg_value,
    pub num_controls: usize,
    pub attrs: *const dtg_attr,
    pub num_attrs: usize,
    pub attr_stride: usize,
    pub device: *const c_char,
    pub device_len: usize,
    pub colocate: *const dtg_value,
    pub num_colocate: usize,
    pub location: *const c_char,
    pub location_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_device_setter {
    pub struct_size: usize,
    pub cluster: *const dtg_cluster,
    pub ps_tasks: i32,
    pub strategy: dtg_setter_strategy,
    pub ps_device: *const c_char,
    pub worker_device: *const c_char,
    pub ps_ops: *const *const c_char,
    pub num_ps_ops: usize,
    pub keep_explicit: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_gradient {
    pub dense: dtg_value,
    pub values: dtg_value,
    pub indices: dtg_value,
    pub dense_shape: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_group_options {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub members: *const *const c_char,
    pub num_members: usize,
    pub join_timeout_ns: i64,
    pub default_timeout_ns: i64,
    pub key: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_collective_args {
    pub struct_size: usize,
    pub reduction: dtg_reduction,
    pub root: i32,
    pub bucket: u32,
    pub algorithm: dtg_reduce_algorithm,
    pub timeout_ns: i64,
    pub splits: *const i64,
    pub num_splits: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_event_writer_options {
    pub struct_size: usize,
    pub flush_every_ns: i64,
    pub resumed_at_step: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_batch_norm {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub momentum: f64,
    pub epsilon: f64,
    pub no_center: i32,
    pub no_scale: i32,
    pub training: dtg_value,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_norm {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub epsilon: f64,
    pub groups: i64,
    pub no_center: i32,
    pub no_scale: i32,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_recurrent {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: dtg_recurrent_kind,
    pub direction: dtg_direction,
    pub units: i64,
    pub no_bias: i32,
    pub no_forget_bias: i32,
    pub kernel: dtg_initializer,
    pub recurrent: dtg_initializer,
    pub bias: dtg_initializer,
    pub lengths: dtg_value,
    pub hidden: dtg_value,
    pub cell: dtg_value,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_recurrent_result {
    pub struct_size: usize,
    pub outputs: dtg_value,
    pub hidden: dtg_value,
    pub cell: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_attention {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub heads: i64,
    pub key_width: i64,
    pub value_width: i64,
    pub output_width: i64,
    pub no_bias: i32,
    pub causal: i32,
    pub key: dtg_value,
    pub mask: dtg_value,
    pub lengths: dtg_value,
    pub kernel: dtg_initializer,
    pub bias: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_attention_cache {
    pub struct_size: usize,
    pub keys: dtg_value,
    pub values: dtg_value,
    pub position: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_position {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: dtg_position_kind,
    pub reserved: i32,
    pub wavelength: f64,
    pub longest: i64,
    pub start: dtg_value,
    pub table: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_embedding_bag {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub rows: i64,
    pub width: i64,
    pub combiner: dtg_combiner,
    pub reserved: i32,
    pub lengths: dtg_value,
    pub weights: dtg_value,
    pub table: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_hashing {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub num_bins: i64,
    pub mask_value: *const dtg_tensor,
    pub salted: i32,
    pub output_mode: dtg_output_mode,
    pub salt: [u64; 2],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_lookup {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub vocabulary: *const dtg_tensor,
    pub mask_token: *const dtg_tensor,
    pub oov_token: *const dtg_tensor,
    pub num_oov_indices: i64,
    pub no_oov: i32,
    pub invert: i32,
    pub output_mode: dtg_output_mode,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_conv {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub filters: i64,
    pub multiplier: i64,
    pub kernel: [i64; 3],
    pub stride: [i64; 3],
    pub dilation: [i64; 3],
    pub padding: dtg_padding,
    pub causal: i32,
    pub activation: dtg_activation,
    pub no_bias: i32,
    pub kernel_init: dtg_initializer,
    pub bias_init: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_loss {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: dtg_loss_kind,
    pub reduction: dtg_loss_reduction,
    pub from_logits: i32,
    pub class_balancing: i32,
    pub per_example: i32,
    pub ignores_class: i32,
    pub ignore_class: i64,
    pub axis: i64,
    pub label_smoothing: f64,
    pub delta: f64,
    pub alpha: f64,
    pub beta: f64,
    pub gamma: f64,
    pub margin: f64,
    pub class_weights: dtg_value,
    pub lengths: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_sampled_loss {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: dtg_sampled_kind,
    pub reduction: dtg_loss_reduction,
    pub classes: i64,
    pub samples: i64,
    pub candidates: dtg_candidates,
    pub keep_hits: i32,
    pub weights: dtg_initializer,
    pub biases: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
    pub sampled: dtg_value,
    pub true_expected: dtg_value,
    pub sampled_expected: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_map_options {
    pub struct_size: usize,
    pub parallel: i32,
    pub reserved0: i32,
    pub session: *mut dtg_session,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_component {
    pub dtype: dtg_dtype,
    pub rank: i32,
    pub dims: *const i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_host_source {
    pub struct_size: usize,
    pub user: *mut c_void,
    pub user_free: Option<dtg_user_free_fn>,
    pub components: *const dtg_component,
    pub num_components: usize,
    pub next: Option<dtg_source_next_fn>,
    pub restart: Option<dtg_source_restart_fn>,
    pub skip: Option<dtg_source_skip_fn>,
    pub cardinality: i64,
    pub name: *const c_char,
    pub name_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_mesh_options {
    pub struct_size: usize,
    pub data: i64,
    pub model: i64,
    pub pipe: i64,
    pub devices: *const *const c_char,
    pub num_devices: usize,
    pub zero: dtg_mesh_zero,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_mesh_step {
    pub struct_size: usize,
    pub stage: i64,
    pub data: i64,
    pub micro: i64,
    pub batch: *const dtg_value,
    pub num_batch: usize,
    pub inputs: *const dtg_value,
    pub num_inputs: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_metric {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: dtg_metric_kind,
    pub from_logits: i32,
    pub threshold: f64,
    pub k: i64,
    pub classes: i64,
    pub thresholds: i64,
    pub curve: dtg_metric_curve,
    pub summation: dtg_metric_summation,
    pub average: dtg_metric_average,
    pub ignores_class: i32,
    pub ignore_class: i64,
    pub loss: *const dtg_loss,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_metric_values {
    pub struct_size: usize,
    pub update: dtg_value,
    pub reset: dtg_value,
    pub result: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_initializer {
    pub kind: dtg_initializer_kind,
    pub reserved0: i32,
    pub a: f64,
    pub b: f64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_variable_spec {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub dtype: dtg_dtype,
    pub not_trainable: i32,
    pub dims: *const i64,
    pub rank: usize,
    pub initializer: dtg_initializer,
    pub synchronization: dtg_variable_sync,
    pub aggregation: dtg_variable_aggregation,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_variable {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub dtype: dtg_dtype,
    pub trainable: i32,
    pub handle: dtg_value,
    pub read: dtg_value,
    pub assign: dtg_value,
    pub rank: usize,
    pub dims: [i64; 8],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_restore {
    pub struct_size: usize,
    pub names: *const c_char,
    pub names_len: usize,
    pub partial: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_export {
    pub struct_size: usize,
    pub input_names: *const *const c_char,
    pub inputs: *const dtg_value,
    pub num_inputs: usize,
    pub output_names: *const *const c_char,
    pub outputs: *const dtg_value,
    pub num_outputs: usize,
    pub freeze: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_dense {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub units: i64,
    pub activation: dtg_activation,
    pub no_bias: i32,
    pub kernel: dtg_initializer,
    pub bias: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_conv2d {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub filters: i64,
    pub kernel_height: i64,
    pub kernel_width: i64,
    pub stride_height: i64,
    pub stride_width: i64,
    pub dilation_height: i64,
    pub dilation_width: i64,
    pub padding: dtg_padding,
    pub activation: dtg_activation,
    pub no_bias: i32,
    pub reserved0: i32,
    pub kernel: dtg_initializer,
    pub bias: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_pool2d {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub window_height: i64,
    pub window_width: i64,
    pub stride_height: i64,
    pub stride_width: i64,
    pub padding: dtg_padding,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_embedding {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub rows: i64,
    pub width: i64,
    pub table: dtg_initializer,
    pub weights_of: *const c_char,
    pub weights_of_len: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_optimizer {
    pub struct_size: usize,
    pub kind: dtg_optimizer_kind,
    pub nesterov: i32,
    pub learning_rate: dtg_value,
    pub rate: f64,
    pub momentum: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub decay: f64,
    pub initial_accumulator: f64,
    pub clip_norm: f64,
    pub unchecked_loss: i32,
    pub lazy: i32,
    pub weight_decay: f64,
    pub amsgrad: i32,
    pub centered: i32,
    pub l1: f64,
    pub l2: f64,
    pub l2_shrinkage: f64,
    pub ftrl_beta: f64,
    pub rate_power: f64,
    pub trust: f64,
    pub epsilon2: f64,
    pub clip_threshold: f64,
    pub clip_value: f64,
    pub clip_each_norm: f64,
    pub undecayed_names: *const c_char,
    pub undecayed_names_len: usize,
    pub undecayed: *const dtg_value,
    pub num_undecayed: usize,
    pub variables: *const dtg_value,
    pub num_variables: usize,
    pub use_ema: i32,
    pub reserved1: i32,
    pub ema_momentum: f64,
    pub ema_overwrite_every: i64,
    pub accumulation_steps: i64,
    pub lookahead_steps: i64,
    pub lookahead_share: f64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_training {
    pub struct_size: usize,
    pub train: dtg_value,
    pub global_step: dtg_value,
    pub learning_rate: dtg_value,
    pub gradient_norm: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_schedule {
    pub struct_size: usize,
    pub kind: dtg_schedule_kind,
    pub staircase: i32,
    pub cycle: i32,
    pub warms_up: i32,
    pub rate: f64,
    pub steps: f64,
    pub decay_rate: f64,
    pub end_rate: f64,
    pub power: f64,
    pub alpha: f64,
    pub warmup_target: f64,
    pub warmup_steps: f64,
    pub t_mul: f64,
    pub m_mul: f64,
    pub boundaries: *const i64,
    pub values: *const f64,
    pub num_boundaries: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_replication {
    pub struct_size: usize,
    pub mode: dtg_sync_mode,
    pub worker: i32,
    pub total: i32,
    pub to_aggregate: i32,
    pub staleness: i32,
    pub min_workers: i32,
    pub elements: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_replicated {
    pub struct_size: usize,
    pub train: dtg_value,
    pub local_init: dtg_value,
    pub chief_init: dtg_value,
    pub resume: dtg_value,
    pub update: dtg_value,
    pub global_step: dtg_value,
    pub local_step: dtg_value,
    pub next_step: dtg_value,
    pub learning_rate: dtg_value,
    pub gradient_norm: dtg_value,
    pub leave: dtg_value,
    pub clock: dtg_value,
    pub members: dtg_value,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_all_reduce {
    pub struct_size: usize,
    pub group_key: i32,
    pub group_size: i32,
    pub first_instance: i32,
    pub reserved: i32,
    pub pack_bytes: i64,
    pub timeout_ns: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_runtime_options {
    pub struct_size: usize,
    pub compute_threads: i32,
    pub pin_threads: i32,
    pub spin_ns: i64,
    pub memory_limit_bytes: i64,
    pub log: Option<dtg_log_fn>,
    pub log_user: *mut c_void,
    pub log_user_free: Option<dtg_user_free_fn>,
    pub log_level: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_server_options {
    pub struct_size: usize,
    pub job: *const c_char,
    pub job_len: usize,
    pub task: i32,
    pub cpu_devices: i32,
    pub key_file: *const c_char,
    pub key_file_len: usize,
    pub security: dtg_security,
    pub no_shared_memory: i32,
    pub device_filters: *const *const c_char,
    pub num_device_filters: usize,
    pub heartbeat_ns: i64,
    pub dead_ns: i64,
    pub state_dir: *const c_char,
    pub state_dir_len: usize,
    pub durability: dtg_durability,
    pub emu_devices: i32,
    pub emu_memory_bytes: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_session_options {
    pub struct_size: usize,
    pub cpu_devices: i32,
    pub soft_placement: i32,
    pub disable_fusion: i32,
    pub reserved0: i32,
    pub default_timeout_ns: i64,
    pub connect_timeout_ns: i64,
    pub key_file: *const c_char,
    pub key_file_len: usize,
    pub security: dtg_security,
    pub emu_devices: i32,
    pub emu_memory_bytes: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_run_args {
    pub struct_size: usize,
    pub feeds: *const dtg_value,
    pub feed_tensors: *const *const dtg_tensor,
    pub num_feeds: usize,
    pub fetches: *const dtg_value,
    pub fetched: *mut *mut dtg_tensor,
    pub num_fetches: usize,
    pub targets: *const dtg_value,
    pub num_targets: usize,
    pub timeout_ns: i64,
    pub cancellation: *mut dtg_cancellation,
    pub write: *mut u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_plan_args {
    pub struct_size: usize,
    pub feeds: *const dtg_value,
    pub feed_dtypes: *const dtg_dtype,
    pub feed_dims: *const *const i64,
    pub feed_ranks: *const usize,
    pub num_feeds: usize,
    pub fetches: *const dtg_value,
    pub num_fetches: usize,
    pub targets: *const dtg_value,
    pub num_targets: usize,
    pub pass: *const c_char,
    pub pass_len: usize,
    pub timeout_ns: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_completion {
    pub tag: u64,
    pub error: *mut dtg_error,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_sharded {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub dtype: dtg_dtype,
    pub axis: i32,
    pub shards: i64,
    pub rank: usize,
    pub dims: [i64; 8],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_per_replica {
    pub id: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_variable_place {
    pub struct_size: usize,
    pub name: *const c_char,
    pub dtype: dtg_dtype,
    pub trainable: i32,
    pub dims: *const i64,
    pub rank: usize,
    pub synchronization: dtg_variable_sync,
    pub aggregation: dtg_variable_aggregation,
    pub devices: *const *const c_char,
    pub num_devices: usize,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_strategy_hooks {
    pub struct_size: usize,
    pub create_variable: Option<dtg_create_variable_fn>,
    pub begin_replica: Option<dtg_around_replica_fn>,
    pub end_replica: Option<dtg_around_replica_fn>,
    pub reduce_to: Option<dtg_reduce_fn>,
    pub batch_reduce_to: Option<dtg_batch_reduce_fn>,
    pub broadcast_to: Option<dtg_spread_fn>,
    pub read_variable: Option<dtg_read_variable_fn>,
    pub begin_update: Option<dtg_around_update_fn>,
    pub end_update: Option<dtg_around_update_fn>,
    pub gather: Option<dtg_gather_fn>,
    pub split: Option<dtg_spread_fn>,
    pub local_results: Option<dtg_local_results_fn>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_strategy_options {
    pub struct_size: usize,
    pub kind: dtg_strategy_kind,
    pub cross_device: dtg_cross_device,
    pub devices: *const *const c_char,
    pub num_devices: usize,
    pub variable_device: *const c_char,
    pub replication: *const dtg_replication,
    pub hooks: *const dtg_strategy_hooks,
    pub user: *mut c_void,
    pub replicas_in_sync: i32,
    pub between_graph: i32,
    pub not_init: i32,
    pub not_checkpoint: i32,
    pub not_summary: i32,
    pub algorithm: dtg_reduce_algorithm,
    pub group: *mut dtg_group,
    pub pack_bytes: i64,
    pub timeout_ns: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_strategy_info {
    pub struct_size: usize,
    pub num_replicas: i32,
    pub num_replicas_in_sync: i32,
    pub context: i32,
    pub replica: i32,
    pub between_graph: i32,
    pub should_init: i32,
    pub should_checkpoint: i32,
    pub should_save_summary: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_trainer_options {
    pub struct_size: usize,
    pub session: *mut dtg_session,
    pub feeds: *const dtg_value,
    pub num_feeds: usize,
    pub num_inputs: usize,
    pub outputs: *const dtg_value,
    pub num_outputs: usize,
    pub loss: dtg_value,
    pub optimizer: *const dtg_optimizer,
    pub train: dtg_value,
    pub training: dtg_value,
    pub input_names: *const *const c_char,
    pub output_names: *const *const c_char,
    pub strategy: *mut dtg_strategy,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_early_stopping {
    pub struct_size: usize,
    pub monitor: *const c_char,
    pub monitor_len: usize,
    pub better: dtg_better,
    pub has_baseline: i32,
    pub baseline: f64,
    pub min_delta: f64,
    pub patience: i64,
    pub start_from_epoch: i64,
    pub restore_best: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_plateau {
    pub struct_size: usize,
    pub monitor: *const c_char,
    pub monitor_len: usize,
    pub better: dtg_better,
    pub reserved0: i32,
    pub factor: f64,
    pub min_delta: f64,
    pub min_rate: f64,
    pub patience: i64,
    pub cooldown: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_fit {
    pub struct_size: usize,
    pub epochs: i64,
    pub steps_per_epoch: i64,
    pub validation_every: i64,
    pub validation_steps: i64,
    pub time_limit_ns: i64,
    pub directory: *const c_char,
    pub directory_len: usize,
    pub checkpoint_steps: i64,
    pub checkpoint_ns: i64,
    pub checkpoint_epochs: i64,
    pub keep: i32,
    pub fresh: i32,
    pub best: *const c_char,
    pub best_len: usize,
    pub best_better: dtg_better,
    pub reserved0: i32,
    pub early_stopping: *const dtg_early_stopping,
    pub plateau: *const dtg_plateau,
    pub cancellation: *mut dtg_cancellation,
    pub no_tensorboard: i32,
    pub progress: dtg_progress,
    pub tensorboard_steps: i64,
    pub histogram_epochs: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_fit_event {
    pub struct_size: usize,
    pub kind: dtg_fit_event_kind,
    pub reserved0: i32,
    pub epoch: i64,
    pub batch: i64,
    pub batches: i64,
    pub step: i64,
    pub examples: i64,
    pub loss: f64,
    pub learning_rate: f64,
    pub examples_per_s: f64,
    pub seconds: f64,
    pub names: *const *const c_char,
    pub values: *const f64,
    pub num_values: usize,
    pub text: *const c_char,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct dtg_fit_callbacks {
    pub struct_size: usize,
    pub user: *mut c_void,
    pub begin: Option<dtg_fit_fn>,
    pub epoch_begin: Option<dtg_fit_fn>,
    pub step: Option<dtg_fit_fn>,
    pub validation: Option<dtg_fit_fn>,
    pub rate: Option<dtg_fit_fn>,
    pub epoch_end: Option<dtg_fit_fn>,
    pub checkpoint: Option<dtg_fit_fn>,
    pub stopped: Option<dtg_fit_fn>,
    pub done: Option<dtg_fit_fn>,
}

impl dtg_arrow_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_arrow_options>(),
        label: null(),
        label_len: DTG_STRLEN,
        columns: null(),
        num_columns: 0,
        missing: 0,
        reserved0: 0,
        schema: null(),
        schema_len: DTG_STRLEN,
    };
}

impl dtg_checkpoint_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_checkpoint_options>(),
        directory: null(),
        directory_len: DTG_STRLEN,
        keep: 0,
        shards: 0,
        every_steps: 0,
        every_ns: 0,
        partial: 0,
        reserved0: 0,
        names: null(),
        names_len: DTG_STRLEN,
    };
}

impl dtg_task {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_task>(),
        r#type: [0; 64],
        index: 0,
        is_chief: 0,
        id: 0,
        num_workers: 0,
        num_ps: 0,
        reserved: 0,
        rpc_layer: [0; 32],
    };
}

impl dtg_coordinator_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_coordinator_options>(),
        job: null(),
        job_len: DTG_STRLEN,
        queue_capacity: 0,
        closure_timeout_ns: 0,
        worker_timeout_ns: 0,
        server_timeout_ns: 0,
        closure_losses: 0,
    };
}

impl dtg_schedule_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_schedule_options>(),
        timeout_ns: 0,
        cancellation: null_mut(),
        cq: null_mut(),
        tag: 0,
    };
}

impl dtg_partitioner {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_partitioner>(),
        kind: DTG_PARTITIONER_FIXED_SHARDS,
        axis: 0,
        num_shards: 0,
        shard_bytes: 0,
        max_shards: 0,
        bytes_per_string: 0,
    };
}

impl dtg_csv_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_csv_options>(),
        label: null(),
        label_len: DTG_STRLEN,
        columns: null(),
        num_columns: 0,
        header: 0,
        missing: 0,
        delimiter: 0,
        reserved0: 0,
        schema: null(),
        schema_len: DTG_STRLEN,
    };
}

impl dtg_json_lines_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_json_lines_options>(),
        label: null(),
        label_len: DTG_STRLEN,
        columns: null(),
        num_columns: 0,
        missing: 0,
        skip_bad_rows: 0,
        schema: null(),
        schema_len: DTG_STRLEN,
    };
}

impl dtg_split {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_split>(),
        fraction: 0.0,
        seed: 0,
        folds: 0,
        fold: 0,
        stratify: 0,
        reserved0: 0,
        classes: 0,
    };
}

impl dtg_attr {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_attr>(),
        name: null(),
        name_len: DTG_STRLEN,
        kind: 0,
        reserved0: 0,
        i: 0,
        f: 0.0,
        s: null(),
        s_len: DTG_STRLEN,
        ints: null(),
        floats: null(),
        strings: null(),
        lens: null(),
        count: 0,
        tensor: null(),
        functions: null(),
    };
}

impl dtg_op_spec {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_op_spec>(),
        r#type: null(),
        type_len: DTG_STRLEN,
        name: null(),
        name_len: DTG_STRLEN,
        inputs: null(),
        num_inputs: 0,
        controls: null(),
        num_controls: 0,
        attrs: null(),
        num_attrs: 0,
        attr_stride: size_of::<dtg_attr>(),
        device: null(),
        device_len: DTG_STRLEN,
        colocate: null(),
        num_colocate: 0,
        location: null(),
        location_len: DTG_STRLEN,
    };
}

impl dtg_device_setter {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_device_setter>(),
        cluster: null(),
        ps_tasks: 0,
        strategy: 0,
        ps_device: null(),
        worker_device: null(),
        ps_ops: null(),
        num_ps_ops: 0,
        keep_explicit: 0,
        reserved: 0,
    };
}

impl dtg_group_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_group_options>(),
        name: null(),
        name_len: DTG_STRLEN,
        members: null(),
        num_members: 0,
        join_timeout_ns: 0,
        default_timeout_ns: 0,
        key: 0,
        reserved: 0,
    };
}

impl dtg_collective_args {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_collective_args>(),
        reduction: 0,
        root: 0,
        bucket: 0,
        algorithm: 0,
        timeout_ns: 0,
        splits: null(),
        num_splits: 0,
    };
}

impl dtg_event_writer_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_event_writer_options>(),
        flush_every_ns: 0,
        resumed_at_step: 0,
    };
}

impl dtg_batch_norm {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_batch_norm>(),
        name: null(),
        name_len: DTG_STRLEN,
        momentum: 0.0,
        epsilon: 0.0,
        no_center: 0,
        no_scale: 0,
        training: dtg_value { id: 0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_norm {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_norm>(),
        name: null(),
        name_len: DTG_STRLEN,
        epsilon: 0.0,
        groups: 0,
        no_center: 0,
        no_scale: 0,
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_recurrent {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_recurrent>(),
        name: null(),
        name_len: DTG_STRLEN,
        kind: DTG_LSTM,
        direction: DTG_FORWARD,
        units: 0,
        no_bias: 0,
        no_forget_bias: 0,
        kernel: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        recurrent: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        bias: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        lengths: dtg_value { id: 0 },
        hidden: dtg_value { id: 0 },
        cell: dtg_value { id: 0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_recurrent_result {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_recurrent_result>(),
        outputs: dtg_value { id: 0 },
        hidden: dtg_value { id: 0 },
        cell: dtg_value { id: 0 },
    };
}

impl dtg_attention {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_attention>(),
        name: null(),
        name_len: DTG_STRLEN,
        heads: 0,
        key_width: 0,
        value_width: 0,
        output_width: 0,
        no_bias: 0,
        causal: 0,
        key: dtg_value { id: 0 },
        mask: dtg_value { id: 0 },
        lengths: dtg_value { id: 0 },
        kernel: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        bias: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_attention_cache {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_attention_cache>(),
        keys: dtg_value { id: 0 },
        values: dtg_value { id: 0 },
        position: dtg_value { id: 0 },
    };
}

impl dtg_position {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_position>(),
        name: null(),
        name_len: DTG_STRLEN,
        kind: DTG_POSITION_SINE,
        reserved: 0,
        wavelength: 0.0,
        longest: 0,
        start: dtg_value { id: 0 },
        table: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_embedding_bag {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_embedding_bag>(),
        name: null(),
        name_len: DTG_STRLEN,
        rows: 0,
        width: 0,
        combiner: DTG_COMBINE_MEAN,
        reserved: 0,
        lengths: dtg_value { id: 0 },
        weights: dtg_value { id: 0 },
        table: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_hashing {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_hashing>(),
        name: null(),
        name_len: DTG_STRLEN,
        num_bins: 0,
        mask_value: null(),
        salted: 0,
        output_mode: DTG_OUTPUT_INT,
        salt: [0; 2],
    };
}

impl dtg_lookup {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_lookup>(),
        name: null(),
        name_len: DTG_STRLEN,
        vocabulary: null(),
        mask_token: null(),
        oov_token: null(),
        num_oov_indices: 0,
        no_oov: 0,
        invert: 0,
        output_mode: DTG_OUTPUT_INT,
        reserved: 0,
    };
}

impl dtg_conv {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_conv>(),
        name: null(),
        name_len: DTG_STRLEN,
        filters: 0,
        multiplier: 0,
        kernel: [0; 3],
        stride: [0; 3],
        dilation: [0; 3],
        padding: DTG_PADDING_VALID,
        causal: 0,
        activation: DTG_ACT_NONE,
        no_bias: 0,
        kernel_init: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        bias_init: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_loss {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_loss>(),
        name: null(),
        name_len: DTG_STRLEN,
        kind: DTG_LOSS_MEAN_SQUARED_ERROR,
        reduction: DTG_LOSS_MEAN,
        from_logits: 0,
        class_balancing: 0,
        per_example: 0,
        ignores_class: 0,
        ignore_class: 0,
        axis: 0,
        label_smoothing: 0.0,
        delta: 0.0,
        alpha: 0.0,
        beta: 0.0,
        gamma: 0.0,
        margin: 0.0,
        class_weights: dtg_value { id: 0 },
        lengths: dtg_value { id: 0 },
    };
}

impl dtg_sampled_loss {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_sampled_loss>(),
        name: null(),
        name_len: DTG_STRLEN,
        kind: DTG_NCE,
        reduction: DTG_LOSS_MEAN,
        classes: 0,
        samples: 0,
        candidates: DTG_LOG_UNIFORM,
        keep_hits: 0,
        weights: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        biases: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
        sampled: dtg_value { id: 0 },
        true_expected: dtg_value { id: 0 },
        sampled_expected: dtg_value { id: 0 },
    };
}

impl dtg_map_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_map_options>(),
        parallel: 1,
        reserved0: 0,
        session: null_mut(),
    };
}

impl dtg_host_source {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_host_source>(),
        user: null_mut(),
        user_free: None,
        components: null(),
        num_components: 0,
        next: None,
        restart: None,
        skip: None,
        cardinality: -2,
        name: null(),
        name_len: DTG_STRLEN,
    };
}

impl dtg_mesh_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_mesh_options>(),
        data: 0,
        model: 0,
        pipe: 0,
        devices: null(),
        num_devices: 0,
        zero: DTG_ZERO_NONE,
        reserved0: 0,
    };
}

impl dtg_mesh_step {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_mesh_step>(),
        stage: 0,
        data: 0,
        micro: 0,
        batch: null(),
        num_batch: 0,
        inputs: null(),
        num_inputs: 0,
    };
}

impl dtg_metric {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_metric>(),
        name: null(),
        name_len: DTG_STRLEN,
        kind: DTG_METRIC_MEAN,
        from_logits: 0,
        threshold: 0.0,
        k: 0,
        classes: 0,
        thresholds: 0,
        curve: DTG_CURVE_ROC,
        summation: DTG_SUMMATION_INTERPOLATION,
        average: DTG_AVERAGE_DEFAULT,
        ignores_class: 0,
        ignore_class: 0,
        loss: null(),
    };
}

impl dtg_metric_values {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_metric_values>(),
        update: dtg_value { id: 0 },
        reset: dtg_value { id: 0 },
        result: dtg_value { id: 0 },
    };
}

impl dtg_initializer {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        kind: DTG_INIT_DEFAULT,
        reserved0: 0,
        a: 0.0,
        b: 0.0,
    };
}

impl dtg_variable_spec {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_variable_spec>(),
        name: null(),
        name_len: DTG_STRLEN,
        dtype: 0,
        not_trainable: 0,
        dims: null(),
        rank: 0,
        initializer: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        synchronization: DTG_VARIABLE_ON_WRITE,
        aggregation: DTG_AGGREGATION_NONE,
    };
}

impl dtg_variable {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_variable>(),
        name: null(),
        name_len: 0,
        dtype: 0,
        trainable: 0,
        handle: dtg_value { id: 0 },
        read: dtg_value { id: 0 },
        assign: dtg_value { id: 0 },
        rank: 0,
        dims: [0; 8],
    };
}

impl dtg_restore {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_restore>(),
        names: null(),
        names_len: DTG_STRLEN,
        partial: 0,
        reserved0: 0,
    };
}

impl dtg_export {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_export>(),
        input_names: null(),
        inputs: null(),
        num_inputs: 0,
        output_names: null(),
        outputs: null(),
        num_outputs: 0,
        freeze: 0,
        reserved0: 0,
    };
}

impl dtg_dense {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_dense>(),
        name: null(),
        name_len: DTG_STRLEN,
        units: 0,
        activation: DTG_ACT_NONE,
        no_bias: 0,
        kernel: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        bias: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_conv2d {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_conv2d>(),
        name: null(),
        name_len: DTG_STRLEN,
        filters: 0,
        kernel_height: 0,
        kernel_width: 0,
        stride_height: 0,
        stride_width: 0,
        dilation_height: 0,
        dilation_width: 0,
        padding: DTG_PADDING_VALID,
        activation: DTG_ACT_NONE,
        no_bias: 0,
        reserved0: 0,
        kernel: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        bias: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_pool2d {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_pool2d>(),
        name: null(),
        name_len: DTG_STRLEN,
        window_height: 0,
        window_width: 0,
        stride_height: 0,
        stride_width: 0,
        padding: DTG_PADDING_VALID,
        reserved0: 0,
    };
}

impl dtg_embedding {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_embedding>(),
        name: null(),
        name_len: DTG_STRLEN,
        rows: 0,
        width: 0,
        table: dtg_initializer { kind: DTG_INIT_DEFAULT, reserved0: 0, a: 0.0, b: 0.0 },
        weights_of: null(),
        weights_of_len: DTG_STRLEN,
    };
}

impl dtg_optimizer {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_optimizer>(),
        kind: DTG_OPT_SGD,
        nesterov: 0,
        learning_rate: dtg_value { id: 0 },
        rate: 0.0,
        momentum: 0.0,
        beta1: 0.0,
        beta2: 0.0,
        epsilon: 0.0,
        decay: 0.0,
        initial_accumulator: 0.0,
        clip_norm: 0.0,
        unchecked_loss: 0,
        lazy: 0,
        weight_decay: 0.0,
        amsgrad: 0,
        centered: 0,
        l1: 0.0,
        l2: 0.0,
        l2_shrinkage: 0.0,
        ftrl_beta: 0.0,
        rate_power: 0.0,
        trust: 0.0,
        epsilon2: 0.0,
        clip_threshold: 0.0,
        clip_value: 0.0,
        clip_each_norm: 0.0,
        undecayed_names: null(),
        undecayed_names_len: DTG_STRLEN,
        undecayed: null(),
        num_undecayed: 0,
        variables: null(),
        num_variables: 0,
        use_ema: 0,
        reserved1: 0,
        ema_momentum: 0.0,
        ema_overwrite_every: 0,
        accumulation_steps: 0,
        lookahead_steps: 0,
        lookahead_share: 0.0,
    };
}

impl dtg_training {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_training>(),
        train: dtg_value { id: 0 },
        global_step: dtg_value { id: 0 },
        learning_rate: dtg_value { id: 0 },
        gradient_norm: dtg_value { id: 0 },
    };
}

impl dtg_schedule {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_schedule>(),
        kind: 0,
        staircase: 0,
        cycle: 0,
        warms_up: 0,
        rate: 0.0,
        steps: 0.0,
        decay_rate: 0.0,
        end_rate: 0.0,
        power: 0.0,
        alpha: 0.0,
        warmup_target: 0.0,
        warmup_steps: 0.0,
        t_mul: 0.0,
        m_mul: 0.0,
        boundaries: null(),
        values: null(),
        num_boundaries: 0,
    };
}

impl dtg_replication {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_replication>(),
        mode: DTG_SYNC_ASYNC,
        worker: 0,
        total: 0,
        to_aggregate: 0,
        staleness: 0,
        min_workers: 0,
        elements: 0,
    };
}

impl dtg_replicated {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_replicated>(),
        train: dtg_value { id: 0 },
        local_init: dtg_value { id: 0 },
        chief_init: dtg_value { id: 0 },
        resume: dtg_value { id: 0 },
        update: dtg_value { id: 0 },
        global_step: dtg_value { id: 0 },
        local_step: dtg_value { id: 0 },
        next_step: dtg_value { id: 0 },
        learning_rate: dtg_value { id: 0 },
        gradient_norm: dtg_value { id: 0 },
        leave: dtg_value { id: 0 },
        clock: dtg_value { id: 0 },
        members: dtg_value { id: 0 },
    };
}

impl dtg_all_reduce {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_all_reduce>(),
        group_key: 0,
        group_size: 0,
        first_instance: 0,
        reserved: 0,
        pack_bytes: 0,
        timeout_ns: 0,
    };
}

impl dtg_runtime_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_runtime_options>(),
        compute_threads: 0,
        pin_threads: 0,
        spin_ns: 0,
        memory_limit_bytes: 0,
        log: None,
        log_user: null_mut(),
        log_user_free: None,
        log_level: DTG_LOG_WARN,
        reserved0: 0,
    };
}

impl dtg_server_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_server_options>(),
        job: null(),
        job_len: DTG_STRLEN,
        task: 0,
        cpu_devices: 0,
        key_file: null(),
        key_file_len: DTG_STRLEN,
        security: 0,
        no_shared_memory: 0,
        device_filters: null(),
        num_device_filters: 0,
        heartbeat_ns: 0,
        dead_ns: 0,
        state_dir: null(),
        state_dir_len: DTG_STRLEN,
        durability: 0,
        emu_devices: 0,
        emu_memory_bytes: 0,
    };
}

impl dtg_session_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_session_options>(),
        cpu_devices: 0,
        soft_placement: 0,
        disable_fusion: 0,
        reserved0: 0,
        default_timeout_ns: 0,
        connect_timeout_ns: 0,
        key_file: null(),
        key_file_len: DTG_STRLEN,
        security: DTG_SECURITY_TLS,
        emu_devices: 0,
        emu_memory_bytes: 0,
    };
}

impl dtg_run_args {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_run_args>(),
        feeds: null(),
        feed_tensors: null(),
        num_feeds: 0,
        fetches: null(),
        fetched: null_mut(),
        num_fetches: 0,
        targets: null(),
        num_targets: 0,
        timeout_ns: 0,
        cancellation: null_mut(),
        write: null_mut(),
    };
}

impl dtg_plan_args {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_plan_args>(),
        feeds: null(),
        feed_dtypes: null(),
        feed_dims: null(),
        feed_ranks: null(),
        num_feeds: 0,
        fetches: null(),
        num_fetches: 0,
        targets: null(),
        num_targets: 0,
        pass: null(),
        pass_len: DTG_STRLEN,
        timeout_ns: 0,
    };
}

impl dtg_sharded {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_sharded>(),
        name: null(),
        name_len: 0,
        dtype: 0,
        axis: 0,
        shards: 0,
        rank: 0,
        dims: [0; 8],
    };
}

impl dtg_strategy_hooks {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_strategy_hooks>(),
        create_variable: None,
        begin_replica: None,
        end_replica: None,
        reduce_to: None,
        batch_reduce_to: None,
        broadcast_to: None,
        read_variable: None,
        begin_update: None,
        end_update: None,
        gather: None,
        split: None,
        local_results: None,
    };
}

impl dtg_strategy_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_strategy_options>(),
        kind: 0,
        cross_device: 0,
        devices: null(),
        num_devices: 0,
        variable_device: null(),
        replication: null(),
        hooks: null(),
        user: null_mut(),
        replicas_in_sync: 0,
        between_graph: 0,
        not_init: 0,
        not_checkpoint: 0,
        not_summary: 0,
        algorithm: 0,
        group: null_mut(),
        pack_bytes: 0,
        timeout_ns: 0,
    };
}

impl dtg_strategy_info {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_strategy_info>(),
        num_replicas: 0,
        num_replicas_in_sync: 0,
        context: 0,
        replica: 0,
        between_graph: 0,
        should_init: 0,
        should_checkpoint: 0,
        should_save_summary: 0,
    };
}

impl dtg_trainer_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_trainer_options>(),
        session: null_mut(),
        feeds: null(),
        num_feeds: 0,
        num_inputs: 0,
        outputs: null(),
        num_outputs: 0,
        loss: dtg_value { id: 0 },
        optimizer: null(),
        train: dtg_value { id: 0 },
        training: dtg_value { id: 0 },
        input_names: null(),
        output_names: null(),
        strategy: null_mut(),
    };
}

impl dtg_early_stopping {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_early_stopping>(),
        monitor: null(),
        monitor_len: DTG_STRLEN,
        better: DTG_BETTER_BY_NAME,
        has_baseline: 0,
        baseline: 0.0,
        min_delta: 0.0,
        patience: 0,
        start_from_epoch: 0,
        restore_best: 0,
        reserved0: 0,
    };
}

impl dtg_plateau {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_plateau>(),
        monitor: null(),
        monitor_len: DTG_STRLEN,
        better: DTG_BETTER_BY_NAME,
        reserved0: 0,
        factor: 0.0,
        min_delta: 0.0,
        min_rate: 0.0,
        patience: 0,
        cooldown: 0,
    };
}

impl dtg_fit {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_fit>(),
        epochs: 0,
        steps_per_epoch: 0,
        validation_every: 0,
        validation_steps: 0,
        time_limit_ns: 0,
        directory: null(),
        directory_len: DTG_STRLEN,
        checkpoint_steps: 0,
        checkpoint_ns: 0,
        checkpoint_epochs: 0,
        keep: 0,
        fresh: 0,
        best: null(),
        best_len: DTG_STRLEN,
        best_better: DTG_BETTER_BY_NAME,
        reserved0: 0,
        early_stopping: null(),
        plateau: null(),
        cancellation: null_mut(),
        no_tensorboard: 0,
        progress: 0,
        tensorboard_steps: 0,
        histogram_epochs: 0,
    };
}

impl dtg_fit_event {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_fit_event>(),
        kind: 0,
        reserved0: 0,
        epoch: 0,
        batch: 0,
        batches: 0,
        step: 0,
        examples: 0,
        loss: 0.0,
        learning_rate: 0.0,
        examples_per_s: 0.0,
        seconds: 0.0,
        names: null(),
        values: null(),
        num_values: 0,
        text: null(),
    };
}

impl dtg_fit_callbacks {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_fit_callbacks>(),
        user: null_mut(),
        begin: None,
        epoch_begin: None,
        step: None,
        validation: None,
        rate: None,
        epoch_end: None,
        checkpoint: None,
        stopped: None,
        done: None,
    };
}

unsafe extern "C" {
    pub fn dtg_dataset_arrow(runtime: *mut dtg_runtime, stream: *mut ArrowArrayStream, options: *const dtg_arrow_options, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_abi_version() -> u32;
    pub fn dtg_version() -> *const c_char;
    pub fn dtg_has_feature(name: *const c_char) -> i32;
    pub fn dtg_dtype_size(dtype: dtg_dtype) -> usize;
    pub fn dtg_dtype_name(dtype: dtg_dtype) -> *const c_char;
    pub fn dtg_dtype_from_name(name: *const c_char) -> dtg_dtype;
    pub fn dtg_live_handles() -> usize;
    pub fn dtg_checkpoint_open(model: *mut dtg_model, session: *mut dtg_session, options: *const dtg_checkpoint_options, out: *mut *mut dtg_checkpoint) -> *mut dtg_error;
    pub fn dtg_checkpoint_retain(checkpoint: *mut dtg_checkpoint) -> *mut dtg_checkpoint;
    pub fn dtg_checkpoint_release(checkpoint: *mut dtg_checkpoint);
    pub fn dtg_checkpoint_add_data(checkpoint: *mut dtg_checkpoint, name: *const c_char, name_len: usize, dataset: *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_checkpoint_resume(checkpoint: *mut dtg_checkpoint, step: *mut i64, report: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_checkpoint_restore(checkpoint: *mut dtg_checkpoint, set: *const c_char, set_len: usize, step: *mut i64, report: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_checkpoint_reached(checkpoint: *mut dtg_checkpoint, step: i64, began: *mut i32) -> *mut dtg_error;
    pub fn dtg_checkpoint_save(checkpoint: *mut dtg_checkpoint, step: i64, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_checkpoint_begin_save(checkpoint: *mut dtg_checkpoint, step: i64, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_checkpoint_wait(checkpoint: *mut dtg_checkpoint, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_checkpoint_status(checkpoint: *const dtg_checkpoint, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_checkpoint_list(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_checkpoint_describe(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_checkpoint_verify(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_checkpoint_reshard(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, into: *const c_char, into_len: usize, shards: i32, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_cluster_parse(text: *const c_char, text_len: usize, out: *mut *mut dtg_cluster) -> *mut dtg_error;
    pub fn dtg_cluster_from_tf_config(json: *const c_char, json_len: usize, out: *mut *mut dtg_cluster, self_: *mut dtg_task) -> *mut dtg_error;
    pub fn dtg_cluster_target(cluster: *const dtg_cluster, task: *const dtg_task, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_cluster_json(cluster: *const dtg_cluster, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_cluster_job_count(cluster: *const dtg_cluster) -> usize;
    pub fn dtg_cluster_job(cluster: *const dtg_cluster, i: usize) -> *const c_char;
    pub fn dtg_cluster_task_count(cluster: *const dtg_cluster, job: *const c_char) -> usize;
    pub fn dtg_cluster_task_index(cluster: *const dtg_cluster, job: *const c_char, i: usize) -> i32;
    pub fn dtg_cluster_address(cluster: *const dtg_cluster, job: *const c_char, index: i32) -> *const c_char;
    pub fn dtg_cluster_retain(cluster: *mut dtg_cluster) -> *mut dtg_cluster;
    pub fn dtg_cluster_release(cluster: *mut dtg_cluster);
    pub fn dtg_coordinator_create(session: *mut dtg_session, options: *const dtg_coordinator_options, out: *mut *mut dtg_coordinator) -> *mut dtg_error;
    pub fn dtg_coordinator_retain(coordinator: *mut dtg_coordinator) -> *mut dtg_coordinator;
    pub fn dtg_coordinator_release(coordinator: *mut dtg_coordinator);
    pub fn dtg_coordinator_prepare(coordinator: *mut dtg_coordinator, args: *const dtg_run_args, worker: dtg_value, out: *mut *mut dtg_closure) -> *mut dtg_error;
    pub fn dtg_closure_retain(closure: *mut dtg_closure) -> *mut dtg_closure;
    pub fn dtg_closure_release(closure: *mut dtg_closure);
    pub fn dtg_coordinator_create_per_worker(coordinator: *mut dtg_coordinator, closure: *mut dtg_closure, feed_tensors: *const *const dtg_tensor, num_feeds: usize) -> *mut dtg_error;
    pub fn dtg_coordinator_schedule(coordinator: *mut dtg_coordinator, closure: *mut dtg_closure, feed_tensors: *const *const dtg_tensor, num_feeds: usize, options: *const dtg_schedule_options, out: *mut *mut dtg_remote_value) -> *mut dtg_error;
    pub fn dtg_coordinator_join(coordinator: *mut dtg_coordinator, timeout_ns: i64, cancellation: *mut dtg_cancellation) -> *mut dtg_error;
    pub fn dtg_coordinator_done(coordinator: *mut dtg_coordinator, done: *mut i32) -> *mut dtg_error;
    pub fn dtg_coordinator_cancel(coordinator: *mut dtg_coordinator) -> *mut dtg_error;
    pub fn dtg_coordinator_status(coordinator: *mut dtg_coordinator, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_remote_value_fetch(value: *mut dtg_remote_value, fetched: *mut *mut dtg_tensor, num_fetches: usize, timeout_ns: i64, cancellation: *mut dtg_cancellation) -> *mut dtg_error;
    pub fn dtg_remote_value_retain(value: *mut dtg_remote_value) -> *mut dtg_remote_value;
    pub fn dtg_remote_value_release(value: *mut dtg_remote_value);
    pub fn dtg_partitioner_shards(partitioner: *const dtg_partitioner, dtype: dtg_dtype, dims: *const i64, rank: usize, shards: *mut i64) -> *mut dtg_error;
    pub fn dtg_shard_rows(rows: i64, shards: i64, shard: i64, first: *mut i64, count: *mut i64) -> *mut dtg_error;
    pub fn dtg_dataset_tensors(runtime: *mut dtg_runtime, tensors: *const *const dtg_tensor, num_tensors: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_range(runtime: *mut dtg_runtime, start: i64, stop: i64, step: i64, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_idx(runtime: *mut dtg_runtime, paths: *const *const c_char, num_paths: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_npy(runtime: *mut dtg_runtime, paths: *const *const c_char, num_paths: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_npz(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, names: *const *const c_char, num_names: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_tfrecord(runtime: *mut dtg_runtime, paths: *const *const c_char, num_paths: usize, features: *const c_char, features_len: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_csv(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, options: *const dtg_csv_options, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_json_lines(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, options: *const dtg_json_lines_options, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_bad_rows(dataset: *const dtg_dataset, count: *mut i64, why: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_dataset_schema(dataset: *const dtg_dataset, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_dataset_retain(dataset: *mut dtg_dataset) -> *mut dtg_dataset;
    pub fn dtg_dataset_release(dataset: *mut dtg_dataset);
    pub fn dtg_dataset_shuffle(dataset: *mut dtg_dataset, buffer: i64, seed: u64) -> *mut dtg_error;
    pub fn dtg_dataset_shuffle_once(dataset: *mut dtg_dataset, buffer: i64, seed: u64) -> *mut dtg_error;
    pub fn dtg_dataset_batch(dataset: *mut dtg_dataset, size: i64, drop_remainder: i32) -> *mut dtg_error;
    pub fn dtg_dataset_shard(dataset: *mut dtg_dataset, count: i64, index: i64) -> *mut dtg_error;
    pub fn dtg_dataset_auto_shard(dataset: *mut dtg_dataset, count: i64, index: i64) -> *mut dtg_error;
    pub fn dtg_dataset_rebatch(dataset: *mut dtg_dataset, parts: i64) -> *mut dtg_error;
    pub fn dtg_batch_sizes(global_batch: i64, num_workers: i64, replicas_per_worker: i64, worker: i64, sizes: *mut i64, cap: usize, count: *mut usize) -> *mut dtg_error;
    pub fn dtg_dataset_repeat(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_take(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_skip(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_zip(dataset: *mut dtg_dataset, others: *const *mut dtg_dataset, num_others: usize) -> *mut dtg_error;
    pub fn dtg_dataset_concatenate(dataset: *mut dtg_dataset, others: *const *mut dtg_dataset, num_others: usize) -> *mut dtg_error;
    pub fn dtg_dataset_interleave(dataset: *mut dtg_dataset, others: *const *mut dtg_dataset, num_others: usize, block: i64) -> *mut dtg_error;
    pub fn dtg_dataset_cache(dataset: *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_window(dataset: *mut dtg_dataset, size: i64, shift: i64, stride: i64, drop_remainder: i32) -> *mut dtg_error;
    pub fn dtg_dataset_padded_batch(dataset: *mut dtg_dataset, size: i64, drop_remainder: i32, padding: f64) -> *mut dtg_error;
    pub fn dtg_dataset_bucket_batch(dataset: *mut dtg_dataset, component: usize, boundaries: *const i64, num_boundaries: usize, sizes: *const i64, num_sizes: usize, drop_remainder: i32, padding: f64) -> *mut dtg_error;
    pub fn dtg_dataset_scale(dataset: *mut dtg_dataset, component: usize, divisor: f64) -> *mut dtg_error;
    pub fn dtg_dataset_cast(dataset: *mut dtg_dataset, component: usize, dtype: dtg_dtype) -> *mut dtg_error;
    pub fn dtg_dataset_normalize(dataset: *mut dtg_dataset, component: usize, normalization: *const c_char, normalization_len: usize) -> *mut dtg_error;
    pub fn dtg_dataset_prefetch(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_split(dataset: *const dtg_dataset, split: *const dtg_split, train: *mut *mut dtg_dataset, held_out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_fit_normalization(dataset: *const dtg_dataset, component: usize, kind: i32, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_dataset_next(dataset: *mut dtg_dataset, tensors: *mut *mut dtg_tensor, num_tensors: usize, more: *mut i32) -> *mut dtg_error;
    pub fn dtg_dataset_restart(dataset: *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_position(dataset: *const dtg_dataset, numbers: *mut i64, cap: usize, count: *mut usize) -> *mut dtg_error;
    pub fn dtg_dataset_move_to(dataset: *mut dtg_dataset, numbers: *const i64, count: usize) -> *mut dtg_error;
    pub fn dtg_dataset_cardinality(dataset: *const dtg_dataset) -> i64;
    pub fn dtg_dataset_component_count(dataset: *const dtg_dataset) -> usize;
    pub fn dtg_dataset_component(dataset: *const dtg_dataset, i: usize, dtype: *mut dtg_dtype, dims: *mut i64, cap: usize, rank: *mut i32) -> *mut dtg_error;
    pub fn dtg_tensor_from_dlpack(managed: *mut DLManagedTensorVersioned, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_from_dlpack_unversioned(managed: *mut DLManagedTensor, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_to_dlpack(tensor: *mut dtg_tensor, writable: i32, out: *mut *mut DLManagedTensorVersioned) -> *mut dtg_error;
    pub fn dtg_tensor_to_dlpack_unversioned(tensor: *mut dtg_tensor, out: *mut *mut DLManagedTensor) -> *mut dtg_error;
    pub fn dtg_error_code(error: *const dtg_error) -> dtg_code;
    pub fn dtg_error_message(error: *const dtg_error, length: *mut usize) -> *const c_char;
    pub fn dtg_error_node(error: *const dtg_error) -> *const c_char;
    pub fn dtg_error_task(error: *const dtg_error) -> *const c_char;
    pub fn dtg_error_peer(error: *const dtg_error) -> *const c_char;
    pub fn dtg_error_phase(error: *const dtg_error) -> *const c_char;
    pub fn dtg_code_name(code: dtg_code) -> *const c_char;
    pub fn dtg_error_create(code: dtg_code, message: *const c_char, message_len: usize) -> *mut dtg_error;
    pub fn dtg_error_retain(error: *mut dtg_error) -> *mut dtg_error;
    pub fn dtg_error_release(error: *mut dtg_error);
    pub fn dtg_string_data(string: *const dtg_string, length: *mut usize) -> *const c_char;
    pub fn dtg_string_release(string: *mut dtg_string);
    pub fn dtg_function_begin(outer: *mut dtg_graph, name: *const c_char, name_len: usize, body: *mut *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_function_add_argument(body: *mut dtg_graph, dtype: dtg_dtype, dims: *const i64, rank: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_function_add_argument_like(body: *mut dtg_graph, value: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_function_end(body: *mut dtg_graph, results: *const dtg_value, num_results: usize, controls: *const dtg_value, num_controls: usize, out: *mut *mut dtg_function) -> *mut dtg_error;
    pub fn dtg_function_retain(function: *mut dtg_function) -> *mut dtg_function;
    pub fn dtg_function_release(function: *mut dtg_function);
    pub fn dtg_function_captures(function: *const dtg_function, values: *mut dtg_value, cap: usize, count: *mut usize) -> *mut dtg_error;
    pub fn dtg_graph_add_if(graph: *mut dtg_graph, condition: dtg_value, then_branch: *const dtg_function, else_branch: *const dtg_function, outs: *mut dtg_value, num_outs: usize) -> *mut dtg_error;
    pub fn dtg_graph_add_case(graph: *mut dtg_graph, index: dtg_value, branches: *const *const dtg_function, num_branches: usize, outs: *mut dtg_value, num_outs: usize) -> *mut dtg_error;
    pub fn dtg_graph_add_while(graph: *mut dtg_graph, start: *const dtg_value, num_vars: usize, condition: *const dtg_function, body: *const dtg_function, outs: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_graph_add_call(graph: *mut dtg_graph, function: *const dtg_function, arguments: *const dtg_value, num_arguments: usize, outs: *mut dtg_value, num_outs: usize) -> *mut dtg_error;
    pub fn dtg_graph_create(runtime: *mut dtg_runtime, out: *mut *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_retain(graph: *mut dtg_graph) -> *mut dtg_graph;
    pub fn dtg_graph_release(graph: *mut dtg_graph);
    pub fn dtg_graph_add_op(graph: *mut dtg_graph, spec: *const dtg_op_spec, outs: *mut dtg_value, num_outs: usize) -> *mut dtg_error;
    pub fn dtg_graph_node_count(graph: *const dtg_graph) -> usize;
    pub fn dtg_graph_node_at(graph: *const dtg_graph, index: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_graph_find(graph: *const dtg_graph, name: *const c_char, name_len: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_value_name(graph: *const dtg_graph, value: dtg_value, out: *mut *const c_char, length: *mut usize) -> *mut dtg_error;
    pub fn dtg_value_op(graph: *const dtg_graph, value: dtg_value, out: *mut *const c_char, length: *mut usize) -> *mut dtg_error;
    pub fn dtg_value_device(graph: *const dtg_graph, value: dtg_value, out: *mut *const c_char, length: *mut usize) -> *mut dtg_error;
    pub fn dtg_value_num_outputs(graph: *const dtg_graph, value: dtg_value, out: *mut usize) -> *mut dtg_error;
    pub fn dtg_value_output(graph: *const dtg_graph, value: dtg_value, i: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_value_dtype(graph: *const dtg_graph, value: dtg_value, out: *mut dtg_dtype) -> *mut dtg_error;
    pub fn dtg_value_shape(graph: *const dtg_graph, value: dtg_value, dims: *mut i64, cap: usize, rank: *mut i32) -> *mut dtg_error;
    pub fn dtg_graph_push_name_scope(graph: *mut dtg_graph, name: *const c_char, name_len: usize) -> *mut dtg_error;
    pub fn dtg_graph_pop_name_scope(graph: *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_push_device(graph: *mut dtg_graph, device: *const c_char, device_len: usize) -> *mut dtg_error;
    pub fn dtg_graph_pop_device(graph: *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_push_device_setter(graph: *mut dtg_graph, setter: *const dtg_device_setter) -> *mut dtg_error;
    pub fn dtg_graph_push_controls(graph: *mut dtg_graph, values: *const dtg_value, num_values: usize) -> *mut dtg_error;
    pub fn dtg_graph_pop_controls(graph: *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_push_colocation(graph: *mut dtg_graph, value: dtg_value) -> *mut dtg_error;
    pub fn dtg_graph_pop_colocation(graph: *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_push_recompute(graph: *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_pop_recompute(graph: *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_graph_add_gradients(graph: *mut dtg_graph, ys: *const dtg_value, num_ys: usize, xs: *const dtg_value, num_xs: usize, grad_ys: *const dtg_value, out: *mut dtg_gradient) -> *mut dtg_error;
    pub fn dtg_graph_densify(graph: *mut dtg_graph, gradient: *const dtg_gradient, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_graph_serialize(graph: *const dtg_graph, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_graph_import(graph: *mut dtg_graph, bytes: *const c_void, nbytes: usize) -> *mut dtg_error;
    pub fn dtg_group_join(server: *mut dtg_server, options: *const dtg_group_options, out: *mut *mut dtg_group) -> *mut dtg_error;
    pub fn dtg_group_reform(group: *mut dtg_group, least: usize, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_group_leave(group: *mut dtg_group) -> *mut dtg_error;
    pub fn dtg_group_rank(group: *const dtg_group) -> i32;
    pub fn dtg_group_size(group: *const dtg_group) -> i32;
    pub fn dtg_group_epoch(group: *const dtg_group) -> u64;
    pub fn dtg_group_member(group: *const dtg_group, rank: i32) -> *const c_char;
    pub fn dtg_group_retain(group: *mut dtg_group) -> *mut dtg_group;
    pub fn dtg_group_release(group: *mut dtg_group);
    pub fn dtg_group_all_reduce(group: *mut dtg_group, r#in: *const dtg_tensor, args: *const dtg_collective_args, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_group_all_gather(group: *mut dtg_group, r#in: *const dtg_tensor, args: *const dtg_collective_args, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_group_reduce_scatter(group: *mut dtg_group, r#in: *const dtg_tensor, args: *const dtg_collective_args, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_group_broadcast(group: *mut dtg_group, r#in: *const dtg_tensor, args: *const dtg_collective_args, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_group_all_to_all(group: *mut dtg_group, r#in: *const dtg_tensor, args: *const dtg_collective_args, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_group_barrier(group: *mut dtg_group, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_group_start(group: *mut dtg_group, kind: dtg_collective_kind, r#in: *const dtg_tensor, into: *mut dtg_tensor, args: *const dtg_collective_args, cq: *mut dtg_cq, tag: u64, out: *mut *mut dtg_collective) -> *mut dtg_error;
    pub fn dtg_collective_cancel(collective: *mut dtg_collective);
    pub fn dtg_collective_take_result(collective: *mut dtg_collective, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_collective_retain(collective: *mut dtg_collective) -> *mut dtg_collective;
    pub fn dtg_collective_release(collective: *mut dtg_collective);
    pub fn dtg_weights_create(out: *mut *mut dtg_weights) -> *mut dtg_error;
    pub fn dtg_weights_load(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, out: *mut *mut dtg_weights) -> *mut dtg_error;
    pub fn dtg_weights_save(weights: *const dtg_weights, path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_weights_set(weights: *mut dtg_weights, name: *const c_char, name_len: usize, tensor: *const dtg_tensor) -> *mut dtg_error;
    pub fn dtg_weights_get(weights: *const dtg_weights, name: *const c_char, name_len: usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_weights_count(weights: *const dtg_weights) -> usize;
    pub fn dtg_weights_name(weights: *const dtg_weights, i: usize) -> *const c_char;
    pub fn dtg_weights_set_metadata(weights: *mut dtg_weights, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize) -> *mut dtg_error;
    pub fn dtg_weights_metadata(weights: *const dtg_weights, key: *const c_char, key_len: usize) -> *const c_char;
    pub fn dtg_weights_retain(weights: *mut dtg_weights) -> *mut dtg_weights;
    pub fn dtg_weights_release(weights: *mut dtg_weights);
    pub fn dtg_event_writer_open(directory: *const c_char, directory_len: usize, options: *const dtg_event_writer_options, out: *mut *mut dtg_event_writer) -> *mut dtg_error;
    pub fn dtg_event_writer_scalar(writer: *mut dtg_event_writer, tag: *const c_char, tag_len: usize, step: i64, value: f64) -> *mut dtg_error;
    pub fn dtg_event_writer_histogram(writer: *mut dtg_event_writer, tag: *const c_char, tag_len: usize, step: i64, tensor: *const dtg_tensor) -> *mut dtg_error;
    pub fn dtg_event_writer_text(writer: *mut dtg_event_writer, tag: *const c_char, tag_len: usize, step: i64, markdown: *const c_char, markdown_len: usize) -> *mut dtg_error;
    pub fn dtg_event_writer_flush(writer: *mut dtg_event_writer) -> *mut dtg_error;
    pub fn dtg_event_writer_close(writer: *mut dtg_event_writer) -> *mut dtg_error;
    pub fn dtg_event_writer_retain(writer: *mut dtg_event_writer) -> *mut dtg_event_writer;
    pub fn dtg_event_writer_release(writer: *mut dtg_event_writer);
    pub fn dtg_nn_batch_norm(model: *mut dtg_model, x: dtg_value, layer: *const dtg_batch_norm, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_layer_norm(model: *mut dtg_model, x: dtg_value, layer: *const dtg_norm, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_rms_norm(model: *mut dtg_model, x: dtg_value, layer: *const dtg_norm, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_group_norm(model: *mut dtg_model, x: dtg_value, layer: *const dtg_norm, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_recurrent(model: *mut dtg_model, x: dtg_value, layer: *const dtg_recurrent, out: *mut dtg_recurrent_result) -> *mut dtg_error;
    pub fn dtg_nn_attention(model: *mut dtg_model, query: dtg_value, value: dtg_value, layer: *const dtg_attention, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_attention_cache(model: *mut dtg_model, value: dtg_value, layer: *const dtg_attention, longest: i64, out: *mut dtg_attention_cache) -> *mut dtg_error;
    pub fn dtg_nn_attention_step(model: *mut dtg_model, query: dtg_value, layer: *const dtg_attention, cache: *mut dtg_attention_cache, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_position_embedding(model: *mut dtg_model, x: dtg_value, layer: *const dtg_position, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_embedding_bag(model: *mut dtg_model, ids: dtg_value, layer: *const dtg_embedding_bag, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_hashing(model: *mut dtg_model, x: dtg_value, layer: *const dtg_hashing, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_lookup(model: *mut dtg_model, x: dtg_value, layer: *const dtg_lookup, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_noise(model: *mut dtg_model, x: dtg_value, kind: dtg_noise_kind, amount: f64, step: dtg_value, training: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_conv1d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_conv3d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_conv2d_transpose(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_depthwise_conv2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_separable_conv2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_global_avg_pool(model: *mut dtg_model, x: dtg_value, keep_dims: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_global_max_pool(model: *mut dtg_model, x: dtg_value, keep_dims: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_adaptive_pool(model: *mut dtg_model, x: dtg_value, sizes: *const i64, num_sizes: usize, max: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_up_sampling2d(model: *mut dtg_model, x: dtg_value, high: i64, wide: i64, bilinear: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_loss(model: *mut dtg_model, loss: *const dtg_loss, labels: dtg_value, predictions: dtg_value, sample_weights: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_triplet_loss(model: *mut dtg_model, anchor: dtg_value, positive: dtg_value, negative: dtg_value, margin: f64, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sampled_loss(model: *mut dtg_model, loss: *const dtg_sampled_loss, labels: dtg_value, x: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_regularize(model: *mut dtg_model, loss: dtg_value, handles: *const dtg_value, num_handles: usize, l1: f64, l2: f64, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_dataset_add_arguments(dataset: *const dtg_dataset, body: *mut dtg_graph, arguments: *mut dtg_value, num_arguments: usize) -> *mut dtg_error;
    pub fn dtg_dataset_map(dataset: *mut dtg_dataset, function: *const dtg_function, options: *const dtg_map_options) -> *mut dtg_error;
    pub fn dtg_dataset_filter(dataset: *mut dtg_dataset, function: *const dtg_function, options: *const dtg_map_options) -> *mut dtg_error;
    pub fn dtg_dataset_map_host(dataset: *mut dtg_dataset, r#fn: Option<dtg_element_fn>, user: *mut c_void, user_free: Option<dtg_user_free_fn>, components: *const dtg_component, num_components: usize) -> *mut dtg_error;
    pub fn dtg_dataset_filter_host(dataset: *mut dtg_dataset, r#fn: Option<dtg_predicate_fn>, user: *mut c_void, user_free: Option<dtg_user_free_fn>) -> *mut dtg_error;
    pub fn dtg_dataset_host(runtime: *mut dtg_runtime, source: *const dtg_host_source, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_mesh_create(model: *mut dtg_model, options: *const dtg_mesh_options, out: *mut *mut dtg_mesh) -> *mut dtg_error;
    pub fn dtg_mesh_retain(mesh: *mut dtg_mesh) -> *mut dtg_mesh;
    pub fn dtg_mesh_release(mesh: *mut dtg_mesh);
    pub fn dtg_mesh_begin(mesh: *mut dtg_mesh, batch: *const dtg_value, num_batch: usize, micro_batches: i64, forward_only: i32) -> *mut dtg_error;
    pub fn dtg_mesh_next(mesh: *mut dtg_mesh, step: *mut dtg_mesh_step, more: *mut i32) -> *mut dtg_error;
    pub fn dtg_mesh_give(mesh: *mut dtg_mesh, outputs: *const dtg_value, num_outputs: usize) -> *mut dtg_error;
    pub fn dtg_mesh_abandon(mesh: *mut dtg_mesh) -> *mut dtg_error;
    pub fn dtg_mesh_result(mesh: *mut dtg_mesh, k: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_mesh_minimize(mesh: *mut dtg_mesh, optimizer: *const dtg_optimizer, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_mesh_column_dense(mesh: *mut dtg_mesh, x: dtg_value, layer: *const dtg_dense, parts: *mut dtg_value, num_parts: usize) -> *mut dtg_error;
    pub fn dtg_mesh_row_dense(mesh: *mut dtg_mesh, parts: *const dtg_value, num_parts: usize, layer: *const dtg_dense, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_mesh_together(mesh: *mut dtg_mesh, parts: *const dtg_value, num_parts: usize, axis: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_mesh_embedding(mesh: *mut dtg_mesh, ids: dtg_value, layer: *const dtg_embedding, by: dtg_table_cut, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_mesh_attention(mesh: *mut dtg_mesh, query: dtg_value, value: dtg_value, layer: *const dtg_attention, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_metric(model: *mut dtg_model, metric: *const dtg_metric, labels: dtg_value, predictions: dtg_value, sample_weights: dtg_value, out: *mut dtg_metric_values) -> *mut dtg_error;
    pub fn dtg_model_create(graph: *mut dtg_graph, seed: u64, out: *mut *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_model_inside(model: *mut dtg_model, body: *mut dtg_graph, out: *mut *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_model_retain(model: *mut dtg_model) -> *mut dtg_model;
    pub fn dtg_model_release(model: *mut dtg_model);
    pub fn dtg_model_add_variable(model: *mut dtg_model, spec: *const dtg_variable_spec, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_variable_count(model: *const dtg_model) -> usize;
    pub fn dtg_model_variable(model: *const dtg_model, i: usize, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_find_variable(model: *const dtg_model, name: *const c_char, name_len: usize, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_global_step(model: *mut dtg_model, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_init(model: *mut dtg_model, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_model_set_metadata(model: *mut dtg_model, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize) -> *mut dtg_error;
    pub fn dtg_model_metadata(model: *const dtg_model, key: *const c_char, key_len: usize, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_model_set_classes(model: *mut dtg_model, output: *const c_char, output_len: usize, names: *const *const c_char, num_names: usize) -> *mut dtg_error;
    pub fn dtg_model_classes(model: *const dtg_model, output: *const c_char, output_len: usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_model_save(model: *const dtg_model, session: *mut dtg_session, path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_model_restore(model: *const dtg_model, session: *mut dtg_session, path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_model_restore_from(model: *const dtg_model, session: *mut dtg_session, path: *const c_char, path_len: usize, restore: *const dtg_restore, report: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_model_import(graph: *mut dtg_graph, seed: u64, out: *mut *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_model_export(model: *const dtg_model, session: *mut dtg_session, what: *const dtg_export, path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_model_load(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, session: *mut *mut dtg_session, out: *mut *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_model_endpoint(model: *const dtg_model, name: *const c_char, name_len: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_model_endpoints(model: *const dtg_model, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_model_graph(model: *const dtg_model, out: *mut *mut dtg_graph) -> *mut dtg_error;
    pub fn dtg_nn_dense(model: *mut dtg_model, x: dtg_value, layer: *const dtg_dense, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_conv2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv2d, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_max_pool2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_pool2d, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_avg_pool2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_pool2d, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_flatten(model: *mut dtg_model, x: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_dropout(model: *mut dtg_model, x: dtg_value, rate: f64, step: dtg_value, training: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_embedding(model: *mut dtg_model, ids: dtg_value, layer: *const dtg_embedding, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_normalize(model: *mut dtg_model, x: dtg_value, normalization: *const c_char, normalization_len: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_activation(model: *mut dtg_model, x: dtg_value, activation: dtg_activation, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sparse_softmax_cross_entropy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_softmax_cross_entropy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sigmoid_cross_entropy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_mean_squared_error(model: *mut dtg_model, labels: dtg_value, predictions: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_accuracy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_correct_count(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_minimize(model: *mut dtg_model, loss: dtg_value, optimizer: *const dtg_optimizer, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_nn_apply_gradients(model: *mut dtg_model, optimizer: *const dtg_optimizer, handles: *const dtg_value, gradients: *const dtg_gradient, num_gradients: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_schedule(model: *mut dtg_model, step: dtg_value, schedule: *const dtg_schedule, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_exponential_decay(model: *mut dtg_model, step: dtg_value, rate: f64, every: f64, factor: f64, staircase: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_cosine_decay(model: *mut dtg_model, step: dtg_value, rate: f64, steps: f64, floor: f64, warmup: f64, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_minimize_replicated(model: *mut dtg_model, loss: dtg_value, optimizer: *const dtg_optimizer, replication: *const dtg_replication, out: *mut dtg_replicated) -> *mut dtg_error;
    pub fn dtg_nn_apply_replicated(model: *mut dtg_model, handles: *const dtg_value, gradients: *const dtg_gradient, num_gradients: usize, optimizer: *const dtg_optimizer, replication: *const dtg_replication, out: *mut dtg_replicated) -> *mut dtg_error;
    pub fn dtg_dataset_deal(dataset: *mut dtg_dataset, model: *mut dtg_model, session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_dataset_dealt(dataset: *const dtg_dataset, epoch: *mut i64, element: *mut i64) -> *mut dtg_error;
    pub fn dtg_model_next_tower(model: *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_nn_minimize_towers(model: *mut dtg_model, losses: *const dtg_value, num_losses: usize, optimizer: *const dtg_optimizer, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_nn_minimize_all_reduce(model: *mut dtg_model, loss: dtg_value, optimizer: *const dtg_optimizer, how: *const dtg_all_reduce, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_model_wait_ready(model: *mut dtg_model, session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_model_recover(model: *mut dtg_model, session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_runtime_create(options: *const dtg_runtime_options, out: *mut *mut dtg_runtime) -> *mut dtg_error;
    pub fn dtg_runtime_threads(runtime: *mut dtg_runtime) -> i32;
    pub fn dtg_runtime_retain(runtime: *mut dtg_runtime) -> *mut dtg_runtime;
    pub fn dtg_runtime_release(runtime: *mut dtg_runtime);
    pub fn dtg_runtime_trim(runtime: *mut dtg_runtime) -> *mut dtg_error;
    pub fn dtg_ops_json(runtime: *mut dtg_runtime, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_runtime_metrics(runtime: *mut dtg_runtime, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_runtime_trace_start(runtime: *mut dtg_runtime) -> *mut dtg_error;
    pub fn dtg_runtime_trace_stop(runtime: *mut dtg_runtime, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_keygen(path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_server_start(runtime: *mut dtg_runtime, cluster: *const dtg_cluster, options: *const dtg_server_options, out: *mut *mut dtg_server) -> *mut dtg_error;
    pub fn dtg_server_target(server: *const dtg_server) -> *const c_char;
    pub fn dtg_server_join(server: *mut dtg_server, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_server_stop(server: *mut dtg_server, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_server_status(server: *const dtg_server, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_server_retain(server: *mut dtg_server) -> *mut dtg_server;
    pub fn dtg_server_release(server: *mut dtg_server);
    pub fn dtg_session_barrier(session: *mut dtg_session, name: *const c_char, name_len: usize, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_session_outcome(session: *mut dtg_session, write: u64, timeout_ns: i64, out: *mut dtg_outcome) -> *mut dtg_error;
    pub fn dtg_session_end_job(session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_session_end_job_now(session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_session_cluster_status(session: *mut dtg_session, timeout_ns: i64, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_cluster_status(runtime: *mut dtg_runtime, target: *const c_char, target_len: usize, options: *const dtg_session_options, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_session_run_repeatedly(session: *mut dtg_session, targets: *const dtg_value, num_targets: usize, cq: *mut dtg_cq, tag: u64, out: *mut *mut dtg_run) -> *mut dtg_error;
    pub fn dtg_session_connect(runtime: *mut dtg_runtime, target: *const c_char, target_len: usize, graph: *mut dtg_graph, options: *const dtg_session_options, out: *mut *mut dtg_session) -> *mut dtg_error;
    pub fn dtg_cancellation_create(out: *mut *mut dtg_cancellation) -> *mut dtg_error;
    pub fn dtg_cancellation_cancel(cancellation: *mut dtg_cancellation);
    pub fn dtg_cancellation_retain(cancellation: *mut dtg_cancellation) -> *mut dtg_cancellation;
    pub fn dtg_cancellation_release(cancellation: *mut dtg_cancellation);
    pub fn dtg_session_run(session: *mut dtg_session, args: *const dtg_run_args) -> *mut dtg_error;
    pub fn dtg_session_run_if_brief(session: *mut dtg_session, args: *const dtg_run_args, ran: *mut i32) -> *mut dtg_error;
    pub fn dtg_session_run_async(session: *mut dtg_session, args: *const dtg_run_args, cq: *mut dtg_cq, tag: u64, out: *mut *mut dtg_run) -> *mut dtg_error;
    pub fn dtg_session_prepare(session: *mut dtg_session, args: *const dtg_run_args, out: *mut *mut dtg_callable) -> *mut dtg_error;
    pub fn dtg_callable_run(callable: *mut dtg_callable, feed_tensors: *const *const dtg_tensor, num_feeds: usize, fetched: *mut *mut dtg_tensor, num_fetches: usize, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_callable_run_cancellable(callable: *mut dtg_callable, feed_tensors: *const *const dtg_tensor, num_feeds: usize, fetched: *mut *mut dtg_tensor, num_fetches: usize, timeout_ns: i64, cancellation: *mut dtg_cancellation) -> *mut dtg_error;
    pub fn dtg_session_plan_text(session: *mut dtg_session, args: *const dtg_plan_args, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_callable_retain(callable: *mut dtg_callable) -> *mut dtg_callable;
    pub fn dtg_callable_release(callable: *mut dtg_callable);
    pub fn dtg_session_device_count(session: *const dtg_session) -> usize;
    pub fn dtg_session_device_name(session: *const dtg_session, i: usize) -> *const c_char;
    pub fn dtg_session_reset(session: *mut dtg_session, containers: *const *const c_char, num_containers: usize) -> *mut dtg_error;
    pub fn dtg_session_close(session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_session_retain(session: *mut dtg_session) -> *mut dtg_session;
    pub fn dtg_session_release(session: *mut dtg_session);
    pub fn dtg_run_cancel(run: *mut dtg_run);
    pub fn dtg_run_take_result(run: *mut dtg_run, i: usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_run_retain(run: *mut dtg_run) -> *mut dtg_run;
    pub fn dtg_run_release(run: *mut dtg_run);
    pub fn dtg_cq_create(out: *mut *mut dtg_cq) -> *mut dtg_error;
    pub fn dtg_cq_next(cq: *mut dtg_cq, events: *mut dtg_completion, stride: usize, cap: usize, timeout_ns: i64, count: *mut usize) -> *mut dtg_error;
    pub fn dtg_cq_fd(cq: *const dtg_cq) -> i32;
    pub fn dtg_cq_retain(cq: *mut dtg_cq) -> *mut dtg_cq;
    pub fn dtg_cq_release(cq: *mut dtg_cq);
    pub fn dtg_model_add_sharded_variable(model: *mut dtg_model, spec: *const dtg_variable_spec, partitioner: *const dtg_partitioner, out: *mut dtg_sharded) -> *mut dtg_error;
    pub fn dtg_model_find_sharded_variable(model: *const dtg_model, name: *const c_char, name_len: usize, out: *mut dtg_sharded) -> *mut dtg_error;
    pub fn dtg_sharded_shard(model: *const dtg_model, name: *const c_char, name_len: usize, i: i64, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_nn_sharded_value(model: *mut dtg_model, name: *const c_char, name_len: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sharded_lookup(model: *mut dtg_model, name: *const c_char, name_len: usize, ids: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sharded_embedding(model: *mut dtg_model, ids: dtg_value, layer: *const dtg_embedding, partitioner: *const dtg_partitioner, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_create(model: *mut dtg_model, options: *const dtg_strategy_options, out: *mut *mut dtg_strategy) -> *mut dtg_error;
    pub fn dtg_strategy_retain(strategy: *mut dtg_strategy) -> *mut dtg_strategy;
    pub fn dtg_strategy_release(strategy: *mut dtg_strategy);
    pub fn dtg_strategy_describe(strategy: *const dtg_strategy, out: *mut dtg_strategy_info) -> *mut dtg_error;
    pub fn dtg_strategy_enter(strategy: *mut dtg_strategy) -> *mut dtg_error;
    pub fn dtg_strategy_exit(strategy: *mut dtg_strategy) -> *mut dtg_error;
    pub fn dtg_strategy_run(strategy: *mut dtg_strategy, r#fn: Option<dtg_replica_fn>, user: *mut c_void, inputs: *const dtg_per_replica, num_inputs: usize, results: *mut dtg_per_replica, num_results: usize) -> *mut dtg_error;
    pub fn dtg_strategy_begin_replica(strategy: *mut dtg_strategy, replica: i32) -> *mut dtg_error;
    pub fn dtg_strategy_end_replica(strategy: *mut dtg_strategy, results: *const dtg_value, num_results: usize, out: *mut dtg_per_replica) -> *mut dtg_error;
    pub fn dtg_strategy_abandon_run(strategy: *mut dtg_strategy) -> *mut dtg_error;
    pub fn dtg_strategy_merge_call(strategy: *mut dtg_strategy, values: *const dtg_value, num_values: usize, merge: Option<dtg_merge_fn>, merge_user: *mut c_void, num_merged: usize, then: Option<dtg_replica_fn>, then_user: *mut c_void) -> *mut dtg_error;
    pub fn dtg_strategy_reduce(strategy: *mut dtg_strategy, op: dtg_reduction, value: dtg_per_replica, axis: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_gather(strategy: *mut dtg_strategy, value: dtg_per_replica, axis: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_distribute(strategy: *mut dtg_strategy, values: *const dtg_value, num_values: usize, out: *mut dtg_per_replica) -> *mut dtg_error;
    pub fn dtg_strategy_broadcast(strategy: *mut dtg_strategy, value: dtg_value, out: *mut dtg_per_replica) -> *mut dtg_error;
    pub fn dtg_strategy_split(strategy: *mut dtg_strategy, batch: dtg_value, out: *mut dtg_per_replica) -> *mut dtg_error;
    pub fn dtg_strategy_local(strategy: *mut dtg_strategy, value: dtg_per_replica, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_local_results(strategy: *mut dtg_strategy, value: dtg_per_replica, outs: *mut dtg_value, cap: usize, count: *mut usize) -> *mut dtg_error;
    pub fn dtg_strategy_minimize(strategy: *mut dtg_strategy, losses: dtg_per_replica, op: dtg_reduction, optimizer: *const dtg_optimizer, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_strategy_replicated(strategy: *const dtg_strategy, out: *mut dtg_replicated) -> *mut dtg_error;
    pub fn dtg_strategy_assign(strategy: *mut dtg_strategy, handle: dtg_value, op: dtg_assign_op, value: dtg_value, target: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_updates(strategy: *mut dtg_strategy, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_update(strategy: *mut dtg_strategy, handle: dtg_value, r#fn: Option<dtg_update_fn>, user: *mut c_void, values: *const dtg_per_replica, num_values: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_strategy_level(strategy: *mut dtg_strategy, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_tensor_create(dtype: dtg_dtype, dims: *const i64, rank: usize, data: *mut c_void, nbytes: usize, free_fn: Option<dtg_free_fn>, user: *mut c_void, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_allocate(dtype: dtg_dtype, dims: *const i64, rank: usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_create_strings(dims: *const i64, rank: usize, strings: *const *const c_char, lengths: *const usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_create_packed_strings(dims: *const i64, rank: usize, bytes: *const c_void, nbytes: usize, lengths: *const usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_string(tensor: *const dtg_tensor, i: usize, nbytes: *mut usize) -> *const c_char;
    pub fn dtg_tensor_data(tensor: *const dtg_tensor, nbytes: *mut usize) -> *const c_void;
    pub fn dtg_tensor_mutable_data(tensor: *mut dtg_tensor) -> *mut c_void;
    pub fn dtg_tensor_dtype(tensor: *const dtg_tensor) -> dtg_dtype;
    pub fn dtg_tensor_rank(tensor: *const dtg_tensor) -> usize;
    pub fn dtg_tensor_dim(tensor: *const dtg_tensor, i: usize) -> i64;
    pub fn dtg_tensor_count(tensor: *const dtg_tensor) -> i64;
    pub fn dtg_tensor_retain(tensor: *mut dtg_tensor) -> *mut dtg_tensor;
    pub fn dtg_tensor_release(tensor: *mut dtg_tensor);
    pub fn dtg_trainer_create(model: *mut dtg_model, options: *const dtg_trainer_options, out: *mut *mut dtg_trainer) -> *mut dtg_error;
    pub fn dtg_trainer_retain(trainer: *mut dtg_trainer) -> *mut dtg_trainer;
    pub fn dtg_trainer_release(trainer: *mut dtg_trainer);
    pub fn dtg_trainer_session(trainer: *const dtg_trainer, out: *mut *mut dtg_session) -> *mut dtg_error;
    pub fn dtg_trainer_add_metric(trainer: *mut dtg_trainer, name: *const c_char, name_len: usize, metric: *const dtg_metric_values) -> *mut dtg_error;
    pub fn dtg_trainer_begin(trainer: *mut dtg_trainer, data: *mut dtg_dataset, validation: *mut dtg_dataset, how: *const dtg_fit) -> *mut dtg_error;
    pub fn dtg_trainer_next(trainer: *mut dtg_trainer, event: *mut dtg_fit_event) -> *mut dtg_error;
    pub fn dtg_trainer_give_up(trainer: *mut dtg_trainer) -> *mut dtg_error;
    pub fn dtg_trainer_fit(trainer: *mut dtg_trainer, data: *mut dtg_dataset, validation: *mut dtg_dataset, how: *const dtg_fit, callbacks: *const dtg_fit_callbacks) -> *mut dtg_error;
    pub fn dtg_trainer_stop(trainer: *mut dtg_trainer);
    pub fn dtg_trainer_summary(trainer: *const dtg_trainer, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_trainer_train_step(trainer: *mut dtg_trainer, tensors: *const *const dtg_tensor, num_tensors: usize, cancellation: *mut dtg_cancellation, loss: *mut f64) -> *mut dtg_error;
    pub fn dtg_trainer_evaluate(trainer: *mut dtg_trainer, data: *mut dtg_dataset, steps: i64, cancellation: *mut dtg_cancellation, out: *mut dtg_fit_event) -> *mut dtg_error;
    pub fn dtg_trainer_predict(trainer: *mut dtg_trainer, data: *mut dtg_dataset, cancellation: *mut dtg_cancellation, outputs: *mut *mut dtg_tensor, num_outputs: usize) -> *mut dtg_error;
    pub fn dtg_trainer_export(trainer: *mut dtg_trainer, path: *const c_char, path_len: usize) -> *mut dtg_error;
}
