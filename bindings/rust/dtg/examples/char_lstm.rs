//! A recurrent network learns six words, letter by letter, in sequences of different lengths, and then writes them from their first
//! letter: capi/examples/char_lstm.c in Rust. Alone it trains in this process; as the worker of a job (TF_CONFIG) it keeps its variables on
//! the ps, with the same losses. --device places everything else, and --cell the steps of the network, inside the loops. One thread.
//!
//!     char_lstm [--device /device:EMU:0 [--cell /device:EMU:1]]
//!     dtg run --local --ps 1 --workers 1 -- char_lstm

use dtg::{
    Cluster, DType, DeviceSetter, Graph, Initializer, Model, Optimizer, Result, Scope, ServerOptions, Session, SessionOptions,
    Tensor, Training, Value, VariableSpec, ops,
};

const LETTERS: i64 = 27; // letter 0 ends a word
const EMBEDDING: i64 = 8;
const HIDDEN: i64 = 16;
const SEQUENCES: usize = 3;
const STEPS: usize = 60;
const LONGEST: i32 = 12;
const WORDS: [[&str; SEQUENCES]; 2] = [["if", "loop", "case"], ["graph", "tensor", "variable"]];

/// The weights, and where the steps are done; "": where everything around them is.
#[derive(Clone, Copy)]
struct Network<'a> {
    device: &'a str,
    rows: Value,
    kernel: Value,
    bias: Value,
    output: Value,
    offset: Value,
}

/// What a program feeds and fetches.
struct Program {
    text: Value,
    lengths: Value,
    first: Value,
    loss: Value,
    written: Value,
    training: Training,
    init: Value,
}

impl<'a> Network<'a> {
    fn new(model: &Model, device: &'a str) -> Result<Self> {
        let variable = |name, initializer, dims: &[i64]| {
            Ok(model.add_variable(&VariableSpec { initializer, dims, ..VariableSpec::new(name) })?.read)
        };
        Ok(Self {
            device,
            rows: variable("embedding", Initializer::GlorotUniform, &[LETTERS, EMBEDDING])?,
            kernel: variable("kernel", Initializer::GlorotUniform, &[EMBEDDING + HIDDEN, 4 * HIDDEN])?,
            bias: variable("bias", Initializer::Zeros, &[4 * HIDDEN])?,
            output: variable("output", Initializer::GlorotUniform, &[HIDDEN, LETTERS])?,
            offset: variable("offset", Initializer::Zeros, &[LETTERS])?,
        })
    }

    /// One step of an LSTM: `letter` is a vector, one element per sequence.
    fn cell(&self, b: &Graph, letter: Value, state: [Value; 2]) -> Result<[Value; 2]> {
        b.within(Scope::Device(self.device), |b| self.step(b, letter, state))
    }

    fn step(&self, b: &Graph, letter: Value, [h, c]: [Value; 2]) -> Result<[Value; 2]> {
        let (rows, columns, one) = (b.scalar(0i32)?, b.scalar(1i32)?, b.scalar(1.0f32)?);
        let x = ops::gather_v2(b, self.rows, letter, rows).build()?;
        let z = ops::concat_v2(b, &[x, h], columns).build()?;
        let z = ops::mat_mul(b, z, self.kernel).build()?;
        let z = ops::bias_add(b, z, self.bias).build()?;
        let gates = ops::split(b, columns, z, 4).build()?;
        let &[input, forget, candidate, output] = gates.as_slice() else { unreachable!("Split gives four") };
        let forget = ops::add_v2(b, forget, one).build()?;
        let forget = ops::sigmoid(b, forget).build()?;
        let (input, candidate) = (ops::sigmoid(b, input).build()?, ops::tanh(b, candidate).build()?);
        let (kept, added) = (ops::mul(b, forget, c).build()?, ops::mul(b, input, candidate).build()?);
        let c = ops::add_v2(b, kept, added).build()?;
        let (output, shown) = (ops::sigmoid(b, output).build()?, ops::tanh(b, c).build()?);
        Ok([ops::mul(b, output, shown).build()?, c])
    }

    fn logits(&self, b: &Graph, h: Value) -> Result<Value> {
        let out = ops::mat_mul(b, h, self.output).build()?;
        ops::bias_add(b, out, self.offset).build()
    }

    /// The mean over all letters of all sequences, which are the columns of `text`. It runs over time as long as the longest of them.
    fn loss(&self, g: &Graph, text: Value, lengths: Value) -> Result<Value> {
        let (zero, one, any) = (g.scalar(0i32)?, g.scalar(1i32)?, g.scalar(-1i32)?);
        let begin = zeros(g, SEQUENCES)?;
        let shape = g.vector(&[SEQUENCES as i32, HIDDEN as i32])?;
        let (longest, shortest) = (ops::max(g, lengths, zero).build()?, ops::min(g, lengths, zero).build()?);
        let states = ops::empty_tensor_list(g, shape, any, DType::F32).build()?;
        let [_, _, _, states] = g.while_loop(
            [zero, begin, begin, states],
            |b, [t, ..]| ops::less(b, t, longest).build(),
            |b, [t, h, c, states]| {
                let letter = ops::gather_v2(b, text, t, zero).build()?;
                let new = self.cell(b, letter, [h, c])?;
                // While all sequences go on the new state is taken as it is; afterwards those that have ended keep theirs.
                let going = ops::less(b, t, shortest).build()?;
                let some = |b: &Graph| {
                    let running = ops::less(b, t, lengths).build()?;
                    let running = ops::expand_dims(b, running, one).build()?;
                    Ok([ops::select_v2(b, running, new[0], h).build()?, ops::select_v2(b, running, new[1], c).build()?])
                };
                let [h, c] = b.if_else(going, |_| Ok(new), some)?;
                Ok([ops::add_v2(b, t, one).build()?, h, c, ops::tensor_list_push_back(b, states, h).build()?])
            },
        )?;
        let all = ops::tensor_list_stack(g, states, shape, DType::F32).build()?;
        let (flat, rows) = (g.vector(&[-1i32])?, g.vector(&[-1, HIDDEN as i32])?);
        let all = ops::reshape(g, all, rows).build()?;
        let (from, size) = (g.vector(&[1i32, 0])?, g.vector(&[-1i32, -1])?);
        let wanted = ops::slice(g, text, from, size).build()?;
        let wanted = ops::reshape(g, wanted, flat).build()?;
        let logits = self.logits(g, all)?;
        let [each, _] = ops::sparse_softmax_cross_entropy_with_logits(g, logits, wanted).build()?;
        let time = ops::range(g, zero, longest, one).build()?;
        let time = ops::expand_dims(g, time, one).build()?;
        let counts = ops::less(g, time, lengths).build()?;
        let counts = ops::cast(g, counts, DType::F32).build()?;
        let counts = ops::reshape(g, counts, flat).build()?;
        let each = ops::mul(g, each, counts).build()?;
        let (total, count) = (ops::sum(g, each, zero).build()?, ops::sum(g, counts, zero).build()?);
        ops::real_div(g, total, count).build()
    }

    /// Goes on from a letter, with the likeliest one each time, until a word ends.
    fn write(&self, g: &Graph, first: Value) -> Result<Value> {
        let (zero, one, any) = (g.scalar(0i32)?, g.scalar(1i32)?, g.scalar(-1i32)?);
        let (begin, none, longest) = (zeros(g, 1)?, g.vector::<i32>(&[])?, g.scalar(LONGEST)?);
        let letters = ops::empty_tensor_list(g, none, any, DType::I32).build()?;
        let [.., letters] = g.while_loop(
            [zero, first, begin, begin, letters],
            |b, [t, letter, ..]| {
                let (soon, inside) = (ops::less(b, t, longest).build()?, ops::greater(b, letter, zero).build()?);
                ops::logical_and(b, soon, inside).build()
            },
            |b, [t, letter, h, c, letters]| {
                let row = ops::expand_dims(b, letter, zero).build()?;
                let [h, c] = self.cell(b, row, [h, c])?;
                let logits = self.logits(b, h)?;
                let best = ops::arg_max(b, logits, one).output_type(DType::I32).build()?;
                let best = ops::reshape(b, best, none).build()?;
                let letters = ops::tensor_list_push_back(b, letters, letter).build()?;
                Ok([ops::add_v2(b, t, one).build()?, best, h, c, letters])
            },
        )?;
        ops::tensor_list_stack(g, letters, none, DType::I32).build()
    }
}

fn zeros(g: &Graph, rows: usize) -> Result<Value> {
    let columns = HIDDEN as usize;
    g.constant(&Tensor::from_slice(&[rows, columns], &vec![0.0f32; rows * columns])?)
}

fn build(model: &Model, cell: &str) -> Result<Program> {
    let network = Network::new(model, cell)?;
    let text = model.placeholder("text", DType::I32, Some(&[-1, SEQUENCES as i64]))?;
    let lengths = model.placeholder("lengths", DType::I32, Some(&[SEQUENCES as i64]))?;
    let first = model.placeholder("first", DType::I32, Some(&[]))?;
    let (loss, written) = (network.loss(model, text, lengths)?, network.write(model, first)?);
    let training = model.minimize(loss, &Optimizer::adam(0.05))?;
    let init = model.init()?;
    Ok(Program { text, lengths, first, loss, written, training, init })
}

/// A column per word, a row more than the longest has letters.
fn batch(words: &[&str; SEQUENCES]) -> Result<[Tensor; 2]> {
    let lengths = words.map(|word| word.len() as i32);
    let rows = words.map(str::len).into_iter().max().unwrap_or(0) + 1;
    let mut text = vec![0i32; rows * SEQUENCES];
    for (k, word) in words.iter().enumerate() {
        for (t, letter) in word.bytes().enumerate() {
            text[t * SEQUENCES + k] = i32::from(letter - b'a') + 1;
        }
    }
    Ok([Tensor::from_slice(&[rows, SEQUENCES], &text)?, Tensor::from_slice(&[SEQUENCES], &lengths)?])
}

fn train(session: &Session, program: &Program) -> Result<()> {
    session.run_target(program.init)?;
    for step in 1..=STEPS {
        let [text, lengths] = batch(&WORDS[step % 2])?;
        let run = session.run().feed(program.text, &text).feed(program.lengths, &lengths);
        let loss = run.fetch(program.loss).target(program.training.train).call()?.scalar::<f32>(0)?;
        println!("{{\"step\": {step}, \"loss\": {loss:.6}, \"bits\": \"{:08x}\"}}", loss.to_bits());
    }
    for word in WORDS.iter().flatten() {
        let first = word.as_bytes()[0];
        let out = session.run().feed(program.first, &Tensor::scalar(i32::from(first - b'a') + 1)?).fetch(program.written).call()?;
        let spelled: String = out.slice::<i32>(0)?.iter().map(|letter| char::from((letter - 1) as u8 + b'a')).collect();
        println!("{{\"first\": \"{}\", \"word\": \"{spelled}\"}}", char::from(first));
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option =
        |name: &str| arguments.chunks(2).find(|pair| pair[0] == name).and_then(|pair| pair.get(1)).map_or("", String::as_str);
    let (device, cell) = (option("--device"), option("--cell"));
    let model = Model::new(Graph::new()?, 7)?;
    let (cluster, task) = Cluster::from_env()?;
    let Some(cluster) = cluster else {
        let program = model.within(Scope::Device(device), |model| build(model, cell))?;
        let emulated = if device.contains("EMU") { 2 } else { 0 };
        return train(&SessionOptions::new().emu_devices(emulated).connect("local", &model)?, &program);
    };
    let server = ServerOptions::new().task(&task.job, task.index.unwrap_or(0)).start(&cluster)?;
    if task.job == "ps" {
        return server.join(None);
    }
    let here = format!("/job:{}/task:{}{device}", task.job, task.index.unwrap_or(0));
    let setter = DeviceSetter { cluster: Some(&cluster), worker_device: Some(&here), ..Default::default() };
    let program = model.within(Scope::Setter(&setter), |model| build(model, cell))?;
    let session = Session::connect(server.target(), &model)?;
    train(&session, &program)?;
    session.end_job(std::time::Duration::from_secs(60))
}
