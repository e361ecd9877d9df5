//! One worker of a job that trains one model strictly synchronously: capi/examples/sync_worker.c in Rust, so that one job can mix them.
//! The job's tasks and this one's place come from TF_CONFIG, and a ps is any server: dtg server. One thread.
//!
//!     dtg run --local --ps 1 --workers 4 -- sync_worker tests/data/digits.csv.gz weights.safetensors

use std::time::Duration;

use dtg::{
    Activation, Cluster, Csv, DType, Dataset, Dense, DeviceSetter, Graph, Model, Optimizer, Replicated, Replication, Result, Run,
    Scope, Server, ServerOptions, Session, SyncMode, Task, Value,
};

/// What is built before the session is there.
struct Network {
    model: Model,
    feeds: [Value; 2],
    loss: Value,
    steps: Replicated,
}

/// The same layers in every worker: variables on the ps, everything else here.
fn build(cluster: &Cluster, task: &Task) -> Result<Network> {
    let here = format!("/job:{}/task:{}", task.job, task.index.unwrap_or(0));
    let setter = DeviceSetter { cluster: Some(cluster), worker_device: Some(&here), ..Default::default() };
    let share = Replication { mode: SyncMode::Strict, worker: task.id, total: task.num_workers, ..Default::default() };
    let model = Model::new(Graph::new()?, 7)?;
    let (feeds, loss, steps) = model.within(Scope::Setter(&setter), |model| {
        let x = model.placeholder("x", DType::F32, Some(&[-1, 64]))?;
        let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
        let hidden = model.dense(x, &Dense { units: 32, activation: Activation::Relu, ..Default::default() })?;
        let logits = model.dense(hidden, &Dense { units: 10, ..Default::default() })?;
        let loss = model.sparse_softmax_cross_entropy(y, logits)?;
        Ok(([x, y], loss, model.minimize_replicated(loss, &Optimizer::momentum(0.05, 0.9), &share)?))
    })?;
    Ok(Network { model, feeds, loss, steps })
}

/// This worker's share of every batch of 60.
fn open_data(path: &str, task: &Task) -> Result<Dataset> {
    let workers = i64::from(task.num_workers);
    let data = Dataset::csv(path, &Csv { label: Some("c64"), ..Default::default() })?.scale(0, 16.0)?;
    data.shuffle(0, 3)?.repeat(-1)?.shard(workers, task.id.into())?.batch(60 / workers, true)
}

/// The chief gives the variables their first values and keeps the updates going, as long as what this gives is held; the others wait
/// until that is done.
fn begin(network: &mut Network, session: &Session, chief: bool) -> Result<Option<Run>> {
    let (mut updates, steps) = (None, &network.steps);
    if chief {
        let init = network.model.init()?;
        session.run_target(init)?;
    }
    network.model.wait_ready(session, Duration::from_secs(60))?;
    if let (true, Some(chief_init), Some(update)) = (chief, steps.chief_init, steps.update) {
        session.run_target(chief_init)?;
        updates = Some(session.run_repeatedly(&[update])?);
    }
    if let Some(local_init) = steps.local_init {
        session.run_target(local_init)?;
    }
    Ok(updates)
}

fn train(network: &Network, session: &Session, data: &mut Dataset, steps: i32) -> Result<()> {
    for step in 1..=steps {
        let Some(batch) = data.next_element()? else { break };
        let run = session.run().feed(network.feeds[0], &batch[0]).feed(network.feeds[1], &batch[1]);
        let out = run.fetch(network.loss).target(network.steps.train).call()?;
        if step % 20 == 0 {
            println!("step {step}: loss {:.6}", out.scalar::<f32>(0)?);
        }
    }
    Ok(())
}

/// Everything that a worker does until the job ends.
fn work(cluster: &Cluster, task: &Task, server: &Server, data: &str, weights: &str) -> Result<()> {
    let mut network = build(cluster, task)?;
    let mut data = open_data(data, task)?;
    let session = Session::connect(server.target(), &network.model)?;
    let updates = begin(&mut network, &session, task.is_chief)?;
    train(&network, &session, &mut data, 100)?;
    if task.is_chief {
        network.model.save(&session, weights)?;
    }
    session.end_job(Duration::from_secs(60))?; // waits until all workers are through
    drop(updates);
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, weights] = arguments.as_slice() else {
        return Err("usage: sync_worker DATA WEIGHTS, as a task of a job (TF_CONFIG)".into());
    };
    let (cluster, task) = Cluster::from_env()?;
    let cluster = cluster.ok_or("TF_CONFIG names no cluster; start this with dtg run")?;
    let server = ServerOptions::new().task(&task.job, task.index.unwrap_or(0)).start(&cluster)?;
    if task.job == "ps" {
        return Ok(server.join(None)?);
    }
    Ok(work(&cluster, &task, &server, data, weights)?)
}
