// The C ABI of libdtg as Rust declarations. Written by bindings/generate from capi/include/dtg; do not edit.
// The headers are the documentation: what each function does, who owns what, which threads may call it.

use core::ffi::{c_char, c_void};
use core::mem::size_of;
use core::ptr::{null, null_mut};

/// What only libdtg looks into: of no size that Rust may rely on, and neither Send, Sync nor Unpin.
#[repr(C)]
struct Opaque([u8; 0], core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>);

#[repr(C)]
pub struct dtg_error(Opaque);
#[repr(C)]
pub struct dtg_string(Opaque);
#[repr(C)]
pub struct dtg_runtime(Opaque);
#[repr(C)]
pub struct dtg_tensor(Opaque);
#[repr(C)]
pub struct dtg_graph(Opaque);
#[repr(C)]
pub struct dtg_session(Opaque);
#[repr(C)]
pub struct dtg_callable(Opaque);
#[repr(C)]
pub struct dtg_run(Opaque);
#[repr(C)]
pub struct dtg_cq(Opaque);
#[repr(C)]
pub struct dtg_cluster(Opaque);
#[repr(C)]
pub struct dtg_dataset(Opaque);
#[repr(C)]
pub struct DLManagedTensor(Opaque);
#[repr(C)]
pub struct DLManagedTensorVersioned(Opaque);
#[repr(C)]
pub struct dtg_weights(Opaque);
#[repr(C)]
pub struct dtg_event_writer(Opaque);
#[repr(C)]
pub struct dtg_model(Opaque);
#[repr(C)]
pub struct dtg_server(Opaque);

pub type dtg_code = i32;
pub type dtg_dtype = i32;
pub type dtg_attr_kind = i32;
pub type dtg_setter_strategy = i32;
pub type dtg_initializer_kind = i32;
pub type dtg_activation = i32;
pub type dtg_padding = i32;
pub type dtg_optimizer_kind = i32;
pub type dtg_sync_mode = i32;
pub type dtg_log_level = i32;
pub type dtg_durability = i32;
pub type dtg_security = i32;

pub type dtg_log_fn = unsafe extern "C" fn(user: *mut c_void, level: dtg_log_level, component: *const c_char, message: *const c_char);
pub type dtg_user_free_fn = unsafe extern "C" fn(user: *mut c_void);
pub type dtg_free_fn = unsafe extern "C" fn(data: *mut c_void, nbytes: usize, user: *mut c_void);

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
pub const DTG_SYNC_ASYNC: dtg_sync_mode = 0;
pub const DTG_SYNC_STRICT: dtg_sync_mode = 1;
pub const DTG_SYNC_REPLICAS: dtg_sync_mode = 2;
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
pub const DTG_SECURITY_TLS: dtg_security = 0;
pub const DTG_SECURITY_CLEAR_FRAMES: dtg_security = 1;

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct dtg_value {
    pub id: u64,
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
pub struct dtg_event_writer_options {
    pub struct_size: usize,
    pub flush_every_ns: i64,
    pub resumed_at_step: i64,
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
pub struct dtg_dense {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub units: i64,
    pub activation: dtg_activation,
    pub no_bias: i32,
    pub kernel: dtg_initializer,
    pub bias: dtg_initializer,
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
pub struct dtg_replication {
    pub struct_size: usize,
    pub mode: dtg_sync_mode,
    pub worker: i32,
    pub total: i32,
    pub to_aggregate: i32,
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
    pub reserved0: i32,
    pub device_filters: *const *const c_char,
    pub num_device_filters: usize,
    pub heartbeat_ns: i64,
    pub dead_ns: i64,
    pub state_dir: *const c_char,
    pub state_dir_len: usize,
    pub durability: dtg_durability,
    pub reserved1: i32,
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
    pub reserved1: i32,
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

impl dtg_event_writer_options {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_event_writer_options>(),
        flush_every_ns: 0,
        resumed_at_step: 0,
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

impl dtg_replication {
    /// Every field at its default: what the _INIT macro of the header says.
    pub const INIT: Self = Self {
        struct_size: size_of::<dtg_replication>(),
        mode: DTG_SYNC_ASYNC,
        worker: 0,
        total: 0,
        to_aggregate: 0,
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
        reserved0: 0,
        device_filters: null(),
        num_device_filters: 0,
        heartbeat_ns: 0,
        dead_ns: 0,
        state_dir: null(),
        state_dir_len: DTG_STRLEN,
        durability: 0,
        reserved1: 0,
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
        reserved1: 0,
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

unsafe extern "C" {
    pub fn dtg_abi_version() -> u32;
    pub fn dtg_version() -> *const c_char;
    pub fn dtg_has_feature(name: *const c_char) -> i32;
    pub fn dtg_dtype_size(dtype: dtg_dtype) -> usize;
    pub fn dtg_dtype_name(dtype: dtg_dtype) -> *const c_char;
    pub fn dtg_dtype_from_name(name: *const c_char) -> dtg_dtype;
    pub fn dtg_live_handles() -> usize;
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
    pub fn dtg_dataset_tensors(runtime: *mut dtg_runtime, tensors: *const *const dtg_tensor, num_tensors: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_range(runtime: *mut dtg_runtime, start: i64, stop: i64, step: i64, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_idx(runtime: *mut dtg_runtime, paths: *const *const c_char, num_paths: usize, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_csv(runtime: *mut dtg_runtime, path: *const c_char, path_len: usize, options: *const dtg_csv_options, out: *mut *mut dtg_dataset) -> *mut dtg_error;
    pub fn dtg_dataset_retain(dataset: *mut dtg_dataset) -> *mut dtg_dataset;
    pub fn dtg_dataset_release(dataset: *mut dtg_dataset);
    pub fn dtg_dataset_shuffle(dataset: *mut dtg_dataset, buffer: i64, seed: u64) -> *mut dtg_error;
    pub fn dtg_dataset_batch(dataset: *mut dtg_dataset, size: i64, drop_remainder: i32) -> *mut dtg_error;
    pub fn dtg_dataset_shard(dataset: *mut dtg_dataset, count: i64, index: i64) -> *mut dtg_error;
    pub fn dtg_dataset_auto_shard(dataset: *mut dtg_dataset, count: i64, index: i64) -> *mut dtg_error;
    pub fn dtg_dataset_rebatch(dataset: *mut dtg_dataset, parts: i64) -> *mut dtg_error;
    pub fn dtg_batch_sizes(global_batch: i64, num_workers: i64, replicas_per_worker: i64, worker: i64, sizes: *mut i64, cap: usize, count: *mut usize) -> *mut dtg_error;
    pub fn dtg_dataset_repeat(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_take(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_skip(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_scale(dataset: *mut dtg_dataset, component: usize, divisor: f64) -> *mut dtg_error;
    pub fn dtg_dataset_cast(dataset: *mut dtg_dataset, component: usize, dtype: dtg_dtype) -> *mut dtg_error;
    pub fn dtg_dataset_prefetch(dataset: *mut dtg_dataset, count: i64) -> *mut dtg_error;
    pub fn dtg_dataset_next(dataset: *mut dtg_dataset, tensors: *mut *mut dtg_tensor, num_tensors: usize, more: *mut i32) -> *mut dtg_error;
    pub fn dtg_dataset_restart(dataset: *mut dtg_dataset) -> *mut dtg_error;
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
    pub fn dtg_error_retain(error: *mut dtg_error) -> *mut dtg_error;
    pub fn dtg_error_release(error: *mut dtg_error);
    pub fn dtg_string_data(string: *const dtg_string, length: *mut usize) -> *const c_char;
    pub fn dtg_string_release(string: *mut dtg_string);
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
    pub fn dtg_graph_add_gradients(graph: *mut dtg_graph, ys: *const dtg_value, num_ys: usize, xs: *const dtg_value, num_xs: usize, grad_ys: *const dtg_value, out: *mut dtg_gradient) -> *mut dtg_error;
    pub fn dtg_graph_densify(graph: *mut dtg_graph, gradient: *const dtg_gradient, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_graph_serialize(graph: *const dtg_graph, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_graph_import(graph: *mut dtg_graph, bytes: *const c_void, nbytes: usize) -> *mut dtg_error;
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
    pub fn dtg_model_create(graph: *mut dtg_graph, seed: u64, out: *mut *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_model_retain(model: *mut dtg_model) -> *mut dtg_model;
    pub fn dtg_model_release(model: *mut dtg_model);
    pub fn dtg_model_add_variable(model: *mut dtg_model, spec: *const dtg_variable_spec, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_variable_count(model: *const dtg_model) -> usize;
    pub fn dtg_model_variable(model: *const dtg_model, i: usize, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_find_variable(model: *const dtg_model, name: *const c_char, name_len: usize, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_global_step(model: *mut dtg_model, out: *mut dtg_variable) -> *mut dtg_error;
    pub fn dtg_model_init(model: *mut dtg_model, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_model_save(model: *const dtg_model, session: *mut dtg_session, path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_model_restore(model: *const dtg_model, session: *mut dtg_session, path: *const c_char, path_len: usize) -> *mut dtg_error;
    pub fn dtg_nn_dense(model: *mut dtg_model, x: dtg_value, layer: *const dtg_dense, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_conv2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_conv2d, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_max_pool2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_pool2d, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_avg_pool2d(model: *mut dtg_model, x: dtg_value, layer: *const dtg_pool2d, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_flatten(model: *mut dtg_model, x: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_dropout(model: *mut dtg_model, x: dtg_value, rate: f64, step: dtg_value, training: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_embedding(model: *mut dtg_model, ids: dtg_value, layer: *const dtg_embedding, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_activation(model: *mut dtg_model, x: dtg_value, activation: dtg_activation, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sparse_softmax_cross_entropy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_softmax_cross_entropy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_sigmoid_cross_entropy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_mean_squared_error(model: *mut dtg_model, labels: dtg_value, predictions: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_accuracy(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_correct_count(model: *mut dtg_model, labels: dtg_value, logits: dtg_value, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_minimize(model: *mut dtg_model, loss: dtg_value, optimizer: *const dtg_optimizer, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_nn_apply_gradients(model: *mut dtg_model, optimizer: *const dtg_optimizer, handles: *const dtg_value, gradients: *const dtg_gradient, num_gradients: usize, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_exponential_decay(model: *mut dtg_model, step: dtg_value, rate: f64, every: f64, factor: f64, staircase: i32, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_cosine_decay(model: *mut dtg_model, step: dtg_value, rate: f64, steps: f64, floor: f64, warmup: f64, out: *mut dtg_value) -> *mut dtg_error;
    pub fn dtg_nn_minimize_replicated(model: *mut dtg_model, loss: dtg_value, optimizer: *const dtg_optimizer, replication: *const dtg_replication, out: *mut dtg_replicated) -> *mut dtg_error;
    pub fn dtg_nn_apply_replicated(model: *mut dtg_model, handles: *const dtg_value, gradients: *const dtg_gradient, num_gradients: usize, optimizer: *const dtg_optimizer, replication: *const dtg_replication, out: *mut dtg_replicated) -> *mut dtg_error;
    pub fn dtg_model_next_tower(model: *mut dtg_model) -> *mut dtg_error;
    pub fn dtg_nn_minimize_towers(model: *mut dtg_model, losses: *const dtg_value, num_losses: usize, optimizer: *const dtg_optimizer, out: *mut dtg_training) -> *mut dtg_error;
    pub fn dtg_model_wait_ready(model: *mut dtg_model, session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_runtime_create(options: *const dtg_runtime_options, out: *mut *mut dtg_runtime) -> *mut dtg_error;
    pub fn dtg_runtime_threads(runtime: *mut dtg_runtime) -> i32;
    pub fn dtg_runtime_retain(runtime: *mut dtg_runtime) -> *mut dtg_runtime;
    pub fn dtg_runtime_release(runtime: *mut dtg_runtime);
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
    pub fn dtg_session_end_job(session: *mut dtg_session, timeout_ns: i64) -> *mut dtg_error;
    pub fn dtg_session_cluster_status(session: *mut dtg_session, timeout_ns: i64, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_cluster_status(runtime: *mut dtg_runtime, target: *const c_char, target_len: usize, options: *const dtg_session_options, out: *mut *mut dtg_string) -> *mut dtg_error;
    pub fn dtg_session_run_repeatedly(session: *mut dtg_session, targets: *const dtg_value, num_targets: usize, cq: *mut dtg_cq, tag: u64, out: *mut *mut dtg_run) -> *mut dtg_error;
    pub fn dtg_session_connect(runtime: *mut dtg_runtime, target: *const c_char, target_len: usize, graph: *mut dtg_graph, options: *const dtg_session_options, out: *mut *mut dtg_session) -> *mut dtg_error;
    pub fn dtg_session_run(session: *mut dtg_session, args: *const dtg_run_args) -> *mut dtg_error;
    pub fn dtg_session_run_async(session: *mut dtg_session, args: *const dtg_run_args, cq: *mut dtg_cq, tag: u64, out: *mut *mut dtg_run) -> *mut dtg_error;
    pub fn dtg_session_prepare(session: *mut dtg_session, args: *const dtg_run_args, out: *mut *mut dtg_callable) -> *mut dtg_error;
    pub fn dtg_callable_run(callable: *mut dtg_callable, feed_tensors: *const *const dtg_tensor, num_feeds: usize, fetched: *mut *mut dtg_tensor, num_fetches: usize, timeout_ns: i64) -> *mut dtg_error;
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
    pub fn dtg_tensor_create(dtype: dtg_dtype, dims: *const i64, rank: usize, data: *mut c_void, nbytes: usize, free_fn: Option<dtg_free_fn>, user: *mut c_void, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_allocate(dtype: dtg_dtype, dims: *const i64, rank: usize, out: *mut *mut dtg_tensor) -> *mut dtg_error;
    pub fn dtg_tensor_data(tensor: *const dtg_tensor, nbytes: *mut usize) -> *const c_void;
    pub fn dtg_tensor_mutable_data(tensor: *mut dtg_tensor) -> *mut c_void;
    pub fn dtg_tensor_dtype(tensor: *const dtg_tensor) -> dtg_dtype;
    pub fn dtg_tensor_rank(tensor: *const dtg_tensor) -> usize;
    pub fn dtg_tensor_dim(tensor: *const dtg_tensor, i: usize) -> i64;
    pub fn dtg_tensor_count(tensor: *const dtg_tensor) -> i64;
    pub fn dtg_tensor_retain(tensor: *mut dtg_tensor) -> *mut dtg_tensor;
    pub fn dtg_tensor_release(tensor: *mut dtg_tensor);
}
