//! Clusters: which jobs there are, where their tasks listen, and which of them this process is. Immutable; any thread.

use std::ffi::c_char;
use std::fmt;
use std::ptr::null;

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, borrowed, check};
use crate::handle::{Handle, agreed, c_string, string};

/// Jobs and the addresses of their tasks. Cloning gives another reference.
///
/// ```
/// use dtg::Cluster;
///
/// let cluster = Cluster::parse("ps=unix:/run/j/ps0;worker=10.0.0.1:2222,10.0.0.2:2222")?;
/// assert_eq!(cluster.jobs(), ["ps", "worker"]);
/// assert_eq!(cluster.tasks("worker"), [0, 1]);
/// assert_eq!(cluster.address("worker", 1), Some("10.0.0.2:2222"));
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Cluster(Handle<sys::dtg_cluster>);

impl Cluster {
    /// Reads a cluster: JSON `{"ps": ["unix:/run/j/ps0"], "worker": {"3": "10.0.0.4:2222"}}` or the short form
    /// `ps=unix:/run/j/ps0;worker=3@10.0.0.4:2222`. Errors: `InvalidArgument` (which says where), `ResourceExhausted`.
    pub fn parse(text: &str) -> Result<Self> {
        // SAFETY: a text with its length.
        unsafe { Handle::create(|out| sys::dtg_cluster_parse(text.as_ptr().cast(), text.len(), out)) }.map(Self)
    }

    /// What the launcher wrote into the environment variable `TF_CONFIG`: the cluster, None when none is said and the program trains
    /// alone, and the place of this process in it. Read like TensorFlow's TFConfigClusterResolver. Errors: `InvalidArgument`,
    /// `ResourceExhausted`.
    pub fn from_env() -> Result<(Option<Self>, Task)> {
        Self::from_tf_config_at(null(), 0)
    }

    /// As [`Cluster::from_env`], for a text in place of the environment variable.
    pub fn from_tf_config(json: &str) -> Result<(Option<Self>, Task)> {
        Self::from_tf_config_at(json.as_ptr().cast(), json.len())
    }

    fn from_tf_config_at(json: *const c_char, length: usize) -> Result<(Option<Self>, Task)> {
        agreed()?;
        let mut cluster = std::ptr::null_mut();
        let mut task = sys::dtg_task::INIT;
        // SAFETY: a text with its length, or NULL for the environment; a task of this size.
        unsafe { check(sys::dtg_cluster_from_tf_config(json, length, &mut cluster, &mut task)) }?;
        // SAFETY: NULL, or a cluster that is ours.
        let cluster = unsafe { Handle::adopt(cluster) };
        Ok((cluster.map(Self), Task::of(&task)))
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_cluster {
        self.0.raw()
    }

    /// The cluster as JSON that [`Cluster::parse`] reads.
    pub fn json(&self) -> Result<String> {
        // SAFETY: an open cluster.
        unsafe { string(|out| sys::dtg_cluster_json(self.raw(), out)) }
    }

    /// The names of the jobs, in the order in which they were given.
    pub fn jobs(&self) -> Vec<&str> {
        // SAFETY: an open cluster; the names live as long, which the borrow keeps.
        unsafe {
            (0..sys::dtg_cluster_job_count(self.raw()))
                .filter_map(|i| borrowed(sys::dtg_cluster_job(self.raw(), i))?.to_str().ok())
                .collect()
        }
    }

    /// The indices of a job's tasks; none when there is no such job.
    pub fn tasks(&self, job: &str) -> Vec<i32> {
        let Ok(job) = c_string(job, "the job") else { return Vec::new() };
        // SAFETY: an open cluster, a text that ends with NUL.
        unsafe {
            (0..sys::dtg_cluster_task_count(self.raw(), job.as_ptr()))
                .map(|i| sys::dtg_cluster_task_index(self.raw(), job.as_ptr(), i))
                .collect()
        }
    }

    /// The address of a task.
    pub fn address(&self, job: &str, index: i32) -> Option<&str> {
        let job = c_string(job, "the job").ok()?;
        // SAFETY: an open cluster, a text that ends with NUL; the address lives as long as the cluster, which the borrow keeps.
        unsafe { borrowed(sys::dtg_cluster_address(self.raw(), job.as_ptr(), index)) }?.to_str().ok()
    }

    /// What TensorFlow's resolver calls the master of a task: its address, after `LAYER://` where the task has an rpc layer; "" where
    /// there is at most one task, or no cluster. Errors: `InvalidArgument` (the cluster has no such task).
    pub fn target(cluster: Option<&Self>, task: &Task) -> Result<String> {
        let raw = task.raw()?;
        // SAFETY: an open cluster or NULL, and a task of this size.
        unsafe { string(|out| sys::dtg_cluster_target(cluster.map_or(null(), |cluster| cluster.raw().cast_const()), &raw, out)) }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json().unwrap_or_else(|error| error.to_string()))
    }
}

/// The place of a process in its cluster, as a launcher told it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Task {
    /// `chief`, `worker`, `ps`, `evaluator`, ...; "" when not said.
    pub job: String,
    /// None when not said.
    pub index: Option<i32>,
    /// The chief, the master, worker 0 where there is neither, and a process without a cluster.
    pub is_chief: bool,
    /// chief 0, worker i: i + number of chiefs; others: their index; 0 when not said.
    pub id: i32,
    /// Chief and workers; at least 1.
    pub num_workers: i32,
    /// Parameter servers.
    pub num_ps: i32,
    /// "" when not said.
    pub rpc_layer: String,
}

impl Task {
    fn of(raw: &sys::dtg_task) -> Self {
        Self {
            job: from_chars(&raw.r#type),
            index: (raw.index >= 0).then_some(raw.index),
            is_chief: raw.is_chief != 0,
            id: raw.id,
            num_workers: raw.num_workers,
            num_ps: raw.num_ps,
            rpc_layer: from_chars(&raw.rpc_layer),
        }
    }

    fn raw(&self) -> Result<sys::dtg_task> {
        Ok(sys::dtg_task {
            r#type: to_chars(&self.job, "the job")?,
            index: self.index.unwrap_or(-1),
            is_chief: self.is_chief.into(),
            id: self.id,
            num_workers: self.num_workers,
            num_ps: self.num_ps,
            rpc_layer: to_chars(&self.rpc_layer, "the rpc layer")?,
            ..sys::dtg_task::INIT
        })
    }
}

fn from_chars(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|char| char.to_ne_bytes()[0]).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn to_chars<const N: usize>(text: &str, what: &str) -> Result<[c_char; N]> {
    let mut chars = [0; N];
    if text.len() >= N || text.bytes().any(|byte| byte == 0) {
        return Err(Error::found(
            ErrorKind::InvalidArgument,
            format!("{what} of a task is {text:?}; it must be shorter than {N} bytes and without NUL"),
        ));
    }
    for (char, byte) in chars.iter_mut().zip(text.bytes()) {
        *char = c_char::from_ne_bytes([byte]);
    }
    Ok(chars)
}
