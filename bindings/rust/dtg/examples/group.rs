//! One worker of a job that trains by all-reduce, without a parameter server: capi/examples/group.c in Rust, and one job may mix the
//! languages. When a worker is lost the others go on with what they have, from the step that the furthest of them has made.
//!
//!     dtg run --local --ps 0 --workers 4 -- group 100

use std::time::{Duration, Instant};

use dtg::{Cluster, ErrorKind, Group, Reduction, Result, ServerOptions, Tensor};

/// More than a frame: on one host it travels through shared memory.
const WIDTH: usize = 20000;
const ROWS: usize = 8;
/// Where the model keeps how many steps it has made.
const STEPS: usize = WIDTH + ROWS;

struct Worker {
    group: Group,
    /// Weights, rows and steps: the same on every worker.
    model: Vec<f32>,
}

impl Worker {
    /// Changes the model only when everything of the step is there.
    fn step(&mut self) -> Result<()> {
        let gradient = Tensor::from_slice(&[WIDTH], &[self.model[STEPS] + 1.0; WIDTH])?;
        let gradient = self.group.all_reduce(&gradient, Reduction::Mean)?;
        // Rows by their index, of which every rank has others: gathered, then added where they belong, in the order of the ranks.
        let rank = usize::try_from(self.group.rank()).unwrap_or(0);
        let mine = 1 + rank % 2;
        let indices = self.group.all_gather(&Tensor::from_slice(&[mine], &[(rank % ROWS) as i64, 0][..mine])?)?;
        let values = self.group.all_gather(&Tensor::from_slice(&[mine], &[1.0f32, 1.0][..mine])?)?;
        for (weight, add) in self.model.iter_mut().zip(gradient.as_slice::<f32>()?) {
            *weight += add;
        }
        for (index, add) in indices.as_slice::<i64>()?.iter().zip(values.as_slice::<f32>()?) {
            self.model[WIDTH + *index as usize] += add;
        }
        self.model[STEPS] += 1.0;
        Ok(())
    }

    /// Everybody gets what the furthest has: after a loss, and at the start.
    fn agree(&mut self) -> Result<()> {
        let one = |value: f32, how| self.group.all_reduce(&Tensor::from_slice(&[1], &[value])?, how)?.to_scalar::<f32>();
        let furthest = one(self.model[STEPS], Reduction::Max)?;
        let root = one(if self.model[STEPS] == furthest { self.group.rank() as f32 } else { 1e9 }, Reduction::Min)?;
        let mine = Tensor::from_slice(&[self.model.len()], &self.model)?;
        let model = self.group.broadcast(Some(&mine), root as i32)?;
        self.model.copy_from_slice(model.as_slice()?);
        Ok(())
    }

    fn train(&mut self, steps: f32, pause: Duration) -> Result<()> {
        let mut anew = true;
        while self.model[STEPS] < steps {
            let made = if anew { self.agree() } else { self.step() };
            anew = false;
            std::thread::sleep(pause);
            let Err(lost) = made else { continue };
            // Who is lost is named in the message; the others go on without it.
            println!("lost: {lost}");
            if !matches!(lost.kind(), ErrorKind::Unavailable | ErrorKind::Aborted) {
                return Err(lost);
            }
            let began = Instant::now();
            self.group.reform(1, Duration::from_secs(60))?;
            let (rank, size, epoch) = (self.group.rank(), self.group.size(), self.group.epoch());
            println!("re-formed in {:.3} s: rank {rank} of {size}, epoch {epoch}", began.elapsed().as_secs_f64());
            anew = true;
        }
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let steps: f32 = arguments.first().ok_or("usage: group STEPS [PAUSE_US], as a task of a job (TF_CONFIG)")?.parse()?;
    let pause = Duration::from_micros(arguments.get(1).map_or(Ok(0), |text| text.parse())?);
    let (cluster, task) = Cluster::from_env()?;
    let cluster = cluster.ok_or("TF_CONFIG names no cluster; start this with dtg run")?;
    let server = ServerOptions::new().task(&task.job, task.index.unwrap_or(0)).start(&cluster)?;
    let mut worker = Worker { group: Group::join(&server)?, model: vec![0.0; STEPS + 1] };
    println!("joined: rank {} of {}", worker.group.rank(), worker.group.size());
    worker.train(steps, pause)?;
    worker.group.barrier()?;
    println!("done: {} steps, weight {}, row {}", worker.model[STEPS], worker.model[0], worker.model[WIDTH]);
    Ok(())
}
