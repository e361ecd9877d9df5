//! Groups: collectives between the tasks of a cluster. Shared: any thread; calls are numbered as they come in.

use std::fmt;
use std::ptr::{null, null_mut};
use std::time::Duration;

use dtg_sys as sys;

use crate::error::{Result, borrowed, check};
use crate::handle::{Handle, c_string, name_of, nanoseconds, or_default};
use crate::server::Server;
use crate::tensor::Tensor;

/// What is made of the ranks' elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum.
    #[default]
    Sum,
    /// The sum, divided by the number of ranks; whole numbers towards zero.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The product.
    Product,
}

impl Reduction {
    pub(crate) fn of(number: i32) -> Self {
        match number {
            sys::DTG_REDUCE_MEAN => Self::Mean,
            sys::DTG_REDUCE_MIN => Self::Min,
            sys::DTG_REDUCE_MAX => Self::Max,
            sys::DTG_REDUCE_PRODUCT => Self::Product,
            _ => Self::Sum,
        }
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Sum => sys::DTG_REDUCE_SUM,
            Self::Mean => sys::DTG_REDUCE_MEAN,
            Self::Min => sys::DTG_REDUCE_MIN,
            Self::Max => sys::DTG_REDUCE_MAX,
            Self::Product => sys::DTG_REDUCE_PRODUCT,
        }
    }
}

/// Which [`Group`], and who is in it; every member says the same. What is not set keeps its default.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct GroupOptions {
    name: Option<String>,
    members: Vec<String>,
    join_timeout: Option<Duration>,
    timeout: Option<Duration>,
    key: i32,
}

impl GroupOptions {
    /// All tasks of the server's job.
    pub fn new() -> Self {
        Self::default()
    }

    /// Up to 64 characters. Default: `default`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Tasks in the order of their ranks, such as `/job:worker/task:0`.
    pub fn members(mut self, members: &[&str]) -> Self {
        self.members = members.iter().map(|member| (*member).into()).collect();
        self
    }

    /// How long the others are waited for. Default: 60 s.
    pub fn join_timeout(mut self, time: Duration) -> Self {
        self.join_timeout = Some(time);
        self
    }

    /// Of each collective. Default: 10 min.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// By which graph ops and strategies name the group. Default: 1.
    pub fn key(mut self, key: i32) -> Self {
        self.key = key;
        self
    }

    /// Takes part in the group as the task of `server`, and returns when all members do. Errors: `InvalidArgument` (members that are
    /// none), `AlreadyExists`, `DeadlineExceeded` (which are missing, and why).
    pub fn join(&self, server: &Server) -> Result<Group> {
        let members = self.members.iter().map(|member| c_string(member, "the member")).collect::<Result<Vec<_>>>()?;
        let members: (Vec<_>, Vec<_>) = members.into_iter().map(|member| (member.as_ptr(), member)).unzip();
        let (name, name_len) = name_of(self.name.as_deref());
        let raw = sys::dtg_group_options {
            name,
            name_len,
            members: members.0.as_ptr(),
            num_members: members.0.len(),
            join_timeout_ns: or_default(self.join_timeout),
            default_timeout_ns: or_default(self.timeout),
            key: self.key,
            ..sys::dtg_group_options::INIT
        };
        // SAFETY: an open server, options whose texts outlive the call (a CString's bytes do not move with it).
        unsafe { Handle::create(|out| sys::dtg_group_join(server.raw(), &raw, out)) }.map(Group)
    }
}

/// One member's place in a group. All members make the same calls in the same order. The first member that is lost (`Unavailable`), or
/// makes another call than the others (`InvalidArgument`), is named in the error that everything under way and everything after it
/// gets on all members, until they have called [`Group::reform`]. Cloning gives another reference; the last one that is dropped leaves.
///
/// ```
/// use dtg::{Cluster, Group, Reduction, Server, Tensor};
///
/// # let folder = std::env::temp_dir().join(format!("dtg-group-{}", std::process::id()));
/// # std::fs::create_dir(&folder).unwrap();
/// # std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
/// # let socket = format!("worker=unix:{}/w", folder.display());
/// let server = Server::start(&Cluster::parse(&socket)?)?; // the only member, here
/// let group = Group::join(&server)?;
/// let gradient = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let sum = group.all_reduce(&gradient, Reduction::Sum)?; // the same bits on every rank
/// assert_eq!(sum.as_slice::<f32>()?, [1.0, 2.0]);
/// # drop((group, server));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Group(Handle<sys::dtg_group>);

impl Group {
    /// With default options.
    pub fn join(server: &Server) -> Result<Self> {
        GroupOptions::new().join(server)
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_group {
        self.0.raw()
    }

    /// Reduces the ranks' tensors, which have one shape, element by element; every rank gets the result, with the same bits.
    pub fn all_reduce(&self, tensor: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let args = sys::dtg_collective_args { reduction: reduction.number(), ..sys::dtg_collective_args::INIT };
        // SAFETY: an open group and tensor; the answer is a new tensor.
        unsafe { Handle::create(|out| sys::dtg_group_all_reduce(self.raw(), tensor.raw(), &args, out)) }.map(Tensor::adopt)
    }

    /// The ranks' rows one behind the other, in the order of the ranks. They may have different numbers of rows.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Tensor> {
        // SAFETY: as in all_reduce.
        unsafe { Handle::create(|out| sys::dtg_group_all_gather(self.raw(), tensor.raw(), null(), out)) }.map(Tensor::adopt)
    }

    /// Reduces like [`Group::all_reduce`], but every rank gets its share of the rows only.
    pub fn reduce_scatter(&self, tensor: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let args = sys::dtg_collective_args { reduction: reduction.number(), ..sys::dtg_collective_args::INIT };
        // SAFETY: as in all_reduce.
        unsafe { Handle::create(|out| sys::dtg_group_reduce_scatter(self.raw(), tensor.raw(), &args, out)) }.map(Tensor::adopt)
    }

    /// The tensor of rank `root` on every rank; the others give None.
    pub fn broadcast(&self, tensor: Option<&Tensor>, root: i32) -> Result<Tensor> {
        let args = sys::dtg_collective_args { root, ..sys::dtg_collective_args::INIT };
        let tensor = tensor.map_or(null_mut(), Tensor::raw);
        // SAFETY: as in all_reduce; NULL where there is nothing to give.
        unsafe { Handle::create(|out| sys::dtg_group_broadcast(self.raw(), tensor, &args, out)) }.map(Tensor::adopt)
    }

    /// Sends each rank its part of the rows, `splits[r]` of them to rank r (empty: as many to each), and puts what came one behind the other.
    pub fn all_to_all(&self, tensor: &Tensor, splits: &[i64]) -> Result<Tensor> {
        let splits_at = if splits.is_empty() { null() } else { splits.as_ptr() };
        let args = sys::dtg_collective_args { splits: splits_at, num_splits: splits.len(), ..sys::dtg_collective_args::INIT };
        // SAFETY: as in all_reduce; the splits outlive the call.
        unsafe { Handle::create(|out| sys::dtg_group_all_to_all(self.raw(), tensor.raw(), &args, out)) }.map(Tensor::adopt)
    }

    /// Returns when all ranks have called it.
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: an open group.
        unsafe { check(sys::dtg_group_barrier(self.raw(), 0)) }
    }

    /// Agrees on a next epoch with the members that are there, which all have to call it. `least`: how many there must be; 0: all that
    /// joined. Errors: `DeadlineExceeded` (who is missing, and why).
    pub fn reform(&self, least: usize, timeout: Duration) -> Result<()> {
        // SAFETY: an open group.
        unsafe { check(sys::dtg_group_reform(self.raw(), least, nanoseconds(timeout))) }
    }

    /// Ends this member's part. What the others can end without it they do.
    pub fn leave(&self) -> Result<()> {
        // SAFETY: an open group.
        unsafe { check(sys::dtg_group_leave(self.raw())) }
    }

    /// This member's rank in the present epoch.
    pub fn rank(&self) -> i32 {
        // SAFETY: an open group.
        unsafe { sys::dtg_group_rank(self.raw()) }
    }

    /// How many members the present epoch has.
    pub fn size(&self) -> i32 {
        // SAFETY: an open group.
        unsafe { sys::dtg_group_size(self.raw()) }
    }

    /// The number of the present epoch, from 1.
    pub fn epoch(&self) -> u64 {
        // SAFETY: an open group.
        unsafe { sys::dtg_group_epoch(self.raw()) }
    }

    /// The task with that rank in the present epoch.
    pub fn member(&self, rank: i32) -> Option<&str> {
        // SAFETY: an open group; the text lives as long, which the borrow keeps.
        unsafe { borrowed(sys::dtg_group_member(self.raw(), rank)) }.and_then(|task| task.to_str().ok())
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(rank {} of {})", self.rank(), self.size())
    }
}
