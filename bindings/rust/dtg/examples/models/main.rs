//! Five models that people train: LeNet, word2vec (skip-grams with sampled softmax), language models with an LSTM and a GRU, and a transformer that
//! learns to write rows of digits backwards, and then writes some (decode.rs); capi/examples/models in Rust, with the same losses and rows.
//!
//! ```text
//! models                            the names of all
//! models lenet [--steps 200]        trains, and prints the loss now and then
//! models lenet --save FILE          trains, and keeps the weights
//! models lenet --reference 50       the losses of the first steps in full, for whoever holds them to another library's
//! ```

mod decode;

use dtg::{
    Activation, Attention, Conv2D, DType, Dense, Embedding, Graph, Loss, LossKind, LossReduction, Model, Norm, Optimizer,
    OptimizerKind, Padding, Pool2D, Recurrent, RecurrentKind, Result, SampledKind, SampledLoss, Session, Tensor, Value, ops,
};

use decode::Writer;

/// Numbers by chance that are the same on every machine: SplitMix64.
struct Dice(u64);

impl Dice {
    fn new(model: u64, step: u64) -> Self {
        let mut dice = Self(model);
        dice.0 = dice.draw() ^ step;
        dice.0 = dice.draw();
        dice
    }
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, limit: usize) -> usize {
        (self.draw() >> 33) as usize % limit
    }
    fn unit(&mut self) -> f32 {
        (self.draw() >> 40) as f32 / (1 << 24) as f32
    }
}

/// What is fed in one step.
type Batch = Vec<(Value, Tensor)>;

/// A model in work: its loss and its training, how the batch of a step is made, and what shows at the end what it has learned.
struct Work {
    loss: Value,
    train: Value,
    fill: Box<dyn FnMut(u64) -> Result<Batch>>,
    writers: Vec<Writer>,
}

/// A model to build; with `reference` nothing is by chance but what dice say, and learning is slow.
struct Builder {
    m: Model,
    reference: bool,
}

impl Builder {
    fn feed(&self, name: &str, dtype: DType, dims: &[i64]) -> Result<Value> {
        let all: Vec<i64> = std::iter::once(-1).chain(dims.iter().copied()).collect();
        self.m.placeholder(name, dtype, Some(&all))
    }

    fn work(&self, loss: Value, optimizer: Optimizer, calm: f64, fill: impl FnMut(u64) -> Result<Batch> + 'static) -> Result<Work> {
        let rate = if self.reference { optimizer.rate * calm } else { optimizer.rate };
        let train = self.m.minimize(loss, &Optimizer { rate, ..optimizer })?.train;
        Ok(Work { loss, train, fill: Box::new(fill), writers: Vec::new() })
    }

    /// The mean cross entropy over the tokens that the mask counts.
    fn by_token(&self, next: Value, logits: Value, mask: Value) -> Result<Value> {
        let loss = Loss {
            from_logits: true,
            reduction: LossReduction::MeanByWeights,
            sample_weights: Some(mask),
            kind: LossKind::SparseCategoricalCrossentropy,
            ..Default::default()
        };
        self.m.loss(next, logits, &loss)
    }

    fn lenet(&self) -> Result<Work> {
        const BATCH: usize = 32;
        let (images, labels) =
            (self.feed("images", DType::F32, &[SIDE as i64, SIDE as i64, 1])?, self.feed("labels", DType::I32, &[])?);
        let first =
            Conv2D { filters: 6, kernel_size: (5, 5), padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
        let second = Conv2D { filters: 16, kernel_size: (5, 5), activation: Activation::Relu, ..Default::default() };
        let relu = |units| Dense { units, activation: Activation::Relu, ..Default::default() };
        let x = self.m.max_pool2d(self.m.conv2d(images, &first)?, &Pool2D::default())?;
        let x = self.m.flatten(self.m.max_pool2d(self.m.conv2d(x, &second)?, &Pool2D::default())?)?;
        let x = self.m.dense(self.m.dense(x, &relu(120))?, &relu(84))?;
        let x = self.m.dense(x, &Dense { units: TEXTURES as i64, ..Default::default() })?;
        let loss = self.m.sparse_softmax_cross_entropy(labels, x)?;
        self.work(loss, Optimizer::momentum(0.02, 0.9), 0.1, move |step| {
            let mut dice = Dice::new(1, step);
            let (mut pixels, mut classes) = (Vec::new(), Vec::new());
            for _ in 0..BATCH {
                classes.push(dice.below(TEXTURES) as i32);
                textured(&mut dice, classes[classes.len() - 1] as u64, &mut pixels);
            }
            Ok(vec![
                (images, Tensor::from_slice(&[BATCH, SIDE, SIDE, 1], &pixels)?),
                (labels, Tensor::from_slice(&[BATCH], &classes)?),
            ])
        })
    }

    fn word2vec(&self) -> Result<Work> {
        const BATCH: usize = 128;
        const WORDS: usize = 200;
        const TOPICS: i32 = 10;
        const SAMPLES: usize = 20;
        let (x, context) = (self.feed("words", DType::I32, &[])?, self.feed("context", DType::I32, &[])?);
        let mut head =
            SampledLoss { kind: SampledKind::SampledSoftmax, classes: WORDS as i64, samples: SAMPLES as i64, ..Default::default() };
        // What is drawn, and how likely it was, comes from us where another library does the same.
        if self.reference {
            let sampled = self.feed("sampled", DType::I64, &[])?;
            let (of_true, of_sampled) =
                (self.feed("true_expected", DType::F32, &[1])?, self.feed("sampled_expected", DType::F32, &[])?);
            head.sampled = Some((sampled, of_true, of_sampled));
        }
        let given = head.sampled;
        let rows = self.m.embedding(x, &Embedding { rows: WORDS as i64, width: 16, ..Default::default() })?;
        let loss = self.m.sampled_loss(context, rows, &head)?;
        // Frequent words have low numbers.
        let word = |dice: &mut Dice| {
            let u = dice.unit();
            (u * u * WORDS as f32) as i32
        };
        self.work(loss, Optimizer { kind: OptimizerKind::Adagrad, rate: 0.2, ..Default::default() }, 1.0, move |step| {
            let mut dice = Dice::new(7, step);
            let (mut from, mut to) = (Vec::new(), Vec::new());
            for _ in 0..BATCH {
                let (here, there) = (word(&mut dice), word(&mut dice));
                from.push(here);
                // Four neighbours of five are of the topic, which is the number's last digit.
                to.push(if dice.below(5) == 0 { there } else { there - there % TOPICS + here % TOPICS });
            }
            let mut batch = vec![(x, Tensor::from_slice(&[BATCH], &from)?), (context, Tensor::from_slice(&[BATCH], &to)?)];
            if let Some((sampled, of_true, of_sampled)) = given {
                let classes: Vec<i64> =
                    (0..SAMPLES).map(|i| (i * (WORDS / SAMPLES) + dice.below(WORDS / SAMPLES)) as i64).collect();
                let share = SAMPLES as f32 / WORDS as f32;
                batch.push((sampled, Tensor::from_slice(&[SAMPLES], &classes)?));
                batch.push((of_true, Tensor::from_slice(&[BATCH, 1], &[share; BATCH])?));
                batch.push((of_sampled, Tensor::from_slice(&[SAMPLES], &[share; SAMPLES])?));
            }
            Ok(batch)
        })
    }

    fn language(&self, kind: RecurrentKind) -> Result<Work> {
        const BATCH: usize = 8;
        const LETTERS: i64 = 29;
        const LONGEST: usize = 48;
        let text = [LONGEST as i64];
        let (x, next) = (self.feed("letters", DType::I32, &text)?, self.feed("next", DType::I32, &text)?);
        let (mask, lengths) = (self.feed("mask", DType::F32, &text)?, self.feed("lengths", DType::I32, &[])?);
        let rows = self.m.embedding(x, &Embedding { rows: LETTERS, width: 16, ..Default::default() })?;
        let y = self.m.recurrent(rows, &Recurrent { kind, units: 64, lengths: Some(lengths), ..Default::default() })?.outputs;
        let logits = self.m.dense(y, &Dense { units: LETTERS, ..Default::default() })?;
        let loss = self.by_token(next, logits, mask)?;
        self.work(loss, Optimizer::adam(0.005), 1.0, move |step| {
            let mut dice = Dice::new(8, step);
            let (mut within, mut out, mut ends) = (vec![0i32; BATCH * LONGEST], vec![0i32; BATCH * LONGEST], Vec::new());
            let mut counts = vec![0f32; BATCH * LONGEST];
            for i in 0..BATCH {
                let sentence = SENTENCES[dice.below(SENTENCES.len())].as_bytes();
                for (t, letter) in sentence.iter().enumerate() {
                    within[i * LONGEST + t + 1] = number(*letter);
                    out[i * LONGEST + t] = number(*letter);
                }
                counts[i * LONGEST..=i * LONGEST + sentence.len()].fill(1.0);
                ends.push(sentence.len() as i32 + 1);
            }
            let shape = [BATCH, LONGEST];
            Ok(vec![
                (x, Tensor::from_slice(&shape, &within)?),
                (next, Tensor::from_slice(&shape, &out)?),
                (mask, Tensor::from_slice(&shape, &counts)?),
                (lengths, Tensor::from_slice(&[BATCH], &ends)?),
            ])
        })
    }

    fn embed(&self, x: Value) -> Result<Value> {
        let rows = |rows| Embedding { rows, width: WIDTH, ..Default::default() };
        let tokens = self.m.embedding(x, &rows(TOKENS as i64))?;
        let places = self.m.vector(&[0i32, 1, 2, 3, 4, 5, 6, 7])?;
        let places = self.m.embedding(places, &rows(LONGEST as i64))?;
        ops::add_v2(&self.m, tokens, places).build()
    }

    /// Looks at itself where there is no value.
    fn attend(&self, x: Value, value: Option<Value>, lengths: Option<Value>, causal: bool) -> Result<Value> {
        let y = self.m.layer_norm(x, &Norm::default())?;
        let layer = Attention { heads: HEADS, key_width: WIDTH / HEADS, causal, lengths, ..Default::default() };
        let seen = self.m.attention(y, value.unwrap_or(y), &layer)?;
        ops::add_v2(&self.m, x, seen).build()
    }

    fn think(&self, x: Value) -> Result<Value> {
        let y = self.m.layer_norm(x, &Norm::default())?;
        let y = self.m.dense(y, &Dense { units: 2 * WIDTH, activation: Activation::Gelu, ..Default::default() })?;
        let y = self.m.dense(y, &Dense { units: WIDTH, ..Default::default() })?;
        ops::add_v2(&self.m, x, y).build()
    }

    fn transformer(&self) -> Result<Work> {
        let row = [LONGEST as i64];
        let (source, written) = (self.feed("source", DType::I32, &row)?, self.feed("written", DType::I32, &row)?);
        let (next, mask) = (self.feed("next", DType::I32, &row)?, self.feed("mask", DType::F32, &row)?);
        let lengths = self.feed("lengths", DType::I32, &[])?;
        let x = self.think(self.attend(self.embed(source)?, None, Some(lengths), false)?)?;
        let x = self.m.layer_norm(x, &Norm::default())?;
        let y = self.attend(self.embed(written)?, None, None, true)?;
        let y = self.think(self.attend(y, Some(x), Some(lengths), false)?)?;
        let y = self.m.layer_norm(y, &Norm::default())?;
        let logits = self.m.dense(y, &Dense { units: TOKENS as i64, ..Default::default() })?;
        let loss = self.by_token(next, logits, mask)?;
        let feeds = [source, written, next, mask, lengths];
        let fill = move |step| Ok(feeds.into_iter().zip(backwards(step)?).collect());
        let work = self.work(loss, Optimizer::adam(0.003), 0.1, fill)?;
        // Greedily, and with the four likeliest rows so far.
        let writers = [1, 4].map(|beams| Writer::new(&self.m, x, lengths, ROWS, beams));
        Ok(Work { writers: writers.into_iter().collect::<Result<_>>()?, ..work })
    }
}

/// Rows of digits and the same backwards: what the transformer is fed in a step.
fn backwards(step: u64) -> Result<[Tensor; 5]> {
    let mut dice = Dice::new(9, step);
    let empty = || vec![0i32; ROWS * LONGEST];
    let (mut from, mut within, mut out, mut ends) = (empty(), empty(), empty(), Vec::new());
    let mut counts = vec![0f32; ROWS * LONGEST];
    for i in 0..ROWS {
        let (length, row) = (3 + dice.below(LONGEST - 2), i * LONGEST);
        for each in &mut from[row..row + length] {
            *each = (FIRST + dice.below(TOKENS - FIRST)) as i32;
        }
        within[row] = START;
        for t in 0..length {
            out[row + t] = from[row + length - 1 - t];
            counts[row + t] = 1.0;
        }
        for t in 1..LONGEST {
            within[row + t] = out[row + t - 1];
        }
        ends.push(length as i32);
    }
    let shape = [ROWS, LONGEST];
    Ok([
        Tensor::from_slice(&shape, &from)?,
        Tensor::from_slice(&shape, &within)?,
        Tensor::from_slice(&shape, &out)?,
        Tensor::from_slice(&shape, &counts)?,
        Tensor::from_slice(&[ROWS], &ends)?,
    ])
}

const SIDE: usize = 28;
const TEXTURES: usize = 10;
const ROWS: usize = 16;
const LONGEST: usize = 8;
const TOKENS: usize = 12;
/// The token before a row, and that of digit 0.
const START: i32 = 1;
const FIRST: usize = 2;
const WIDTH: i64 = 32;
const HEADS: i64 = 2;

/// Lewis Carroll, Alice's Adventures in Wonderland.
const SENTENCES: [&str; 18] = [
    "alice was beginning to get very tired",
    "of sitting by her sister on the bank",
    "and of having nothing to do",
    "once or twice she had peeped into the book",
    "her sister was reading",
    "but it had no pictures",
    "or conversations in it",
    "and what is the use of a book",
    "thought alice",
    "without pictures or conversations",
    "so she was considering in her own mind",
    "whether the pleasure of making a daisy chain",
    "would be worth the trouble of getting up",
    "and picking the daisies",
    "when suddenly a white rabbit",
    "with pink eyes ran close by her",
    "there was nothing so very remarkable in that",
    "oh dear, oh dear, i shall be late",
];

fn number(letter: u8) -> i32 {
    match letter {
        b'a'..=b'z' => i32::from(letter - b'a') + 1,
        b' ' => 27,
        _ => 28,
    }
}

/// Blocks of four pixels that are bright or dark as the class says, moved a little, with noise over all.
fn textured(dice: &mut Dice, class: u64, image: &mut Vec<f32>) {
    let (down, right) = (dice.below(4), dice.below(4));
    for i in 0..SIDE {
        for j in 0..SIDE {
            let bright = Dice::new(class, ((i + down) / 4 * 64 + (j + right) / 4) as u64).draw() & 1 != 0;
            image.push(if bright { 0.5 } else { -0.5 } + 2.0 * (dice.unit() - 0.5));
        }
    }
}

/// The number of a batch that nobody trains on.
const UNSEEN: u64 = -100i64 as u64;

type Build = fn(&Builder) -> Result<Work>;

const MODELS: [(&str, Build); 5] = [
    ("lenet", Builder::lenet),
    ("word2vec_softmax", Builder::word2vec),
    ("lstm", |b| b.language(RecurrentKind::Lstm)),
    ("gru", |b| b.language(RecurrentKind::Gru)),
    ("transformer", Builder::transformer),
];

/// What the command line asks for.
struct Options<'a> {
    steps: u64,
    reference: bool,
    save: Option<&'a str>,
}

fn run(build: Build, options: &Options<'_>) -> Result<()> {
    let builder = Builder { m: Model::new(Graph::new()?, 2015)?, reference: options.reference };
    let mut work = build(&builder)?;
    let init = builder.m.init()?;
    let session = Session::connect("local", &builder.m)?;
    session.run_target(init)?;
    for step in 0..options.steps {
        let batch = (work.fill)(step)?;
        let run = batch.iter().fold(session.run(), |run, (value, tensor)| run.feed(*value, tensor));
        let loss: f32 = run.fetch(work.loss).target(work.train).call()?.scalar(0)?;
        if options.reference {
            println!("[{loss}]");
        } else if step % 20 == 19 {
            println!("step {:5}   loss {loss:8.5}", step + 1);
        }
    }
    if options.reference {
        return Ok(());
    }
    if let Some(file) = options.save {
        builder.m.save(&session, file)?;
    }
    for writer in &work.writers {
        writer.show(&session, &(work.fill)(UNSEEN)?)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = args.first() else {
        MODELS.iter().for_each(|(name, _)| println!("{name} steps loss"));
        return Ok(());
    };
    let text = |option: &str| args.iter().position(|arg| arg == option).and_then(|at| args.get(at + 1)).map(String::as_str);
    let number = |option: &str| -> Option<u64> { text(option)?.parse().ok() };
    let reference = number("--reference");
    let steps = reference.or_else(|| number("--steps")).unwrap_or(200);
    match MODELS.iter().find(|(each, _)| each == name) {
        Some((_, build)) => run(*build, &Options { steps, reference: reference.is_some(), save: text("--save") }),
        None => {
            eprintln!("no model is called {name}");
            std::process::exit(2);
        }
    }
}
