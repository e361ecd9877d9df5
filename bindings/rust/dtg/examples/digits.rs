//! A small network learns handwritten digits through a server of this process: capi/examples/digits.c in Rust. One thread.
use dtg::*;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or("tests/data/digits.csv.gz".into());
    let data = Dataset::csv(&path, &Csv { label: Some("c64"), ..Default::default() })?.scale(0, 16.0)?;
    let mut data = data.shuffle(0, 1)?.repeat(-1)?.batch(64, true)?;
    let model = Model::new(Graph::new()?, 1)?;
    let x = model.placeholder("x", DType::F32, Some(&[-1, 64]))?;
    let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
    let hidden = model.dense(x, &Dense { units: 32, activation: Activation::Relu, ..Default::default() })?;
    let logits = model.dense(hidden, &Dense { units: 10, ..Default::default() })?;
    let loss = model.sparse_softmax_cross_entropy(y, logits)?;
    let training = model.minimize(loss, &Optimizer::sgd(0.1))?;
    let init = model.init()?;
    let server = Server::start(&Cluster::parse("worker=127.0.0.1:0")?)?;
    let session = Session::connect(server.target(), &model)?;
    session.run_target(init)?;
    for step in 1..=200 {
        let Some(batch) = data.next_element()? else { break };
        let out = session.run().feed(x, &batch[0]).feed(y, &batch[1]).fetch(loss).target(training.train).call()?;
        if step % 40 == 0 {
            println!("step {step}: loss {:.6}", out.scalar::<f32>(0)?);
        }
    }
    Ok(())
}
