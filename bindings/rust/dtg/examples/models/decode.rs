//! The transformer writes. A loop of the graph, whose body is made of the layers that were trained (`weights_of`), takes all beams of all rows
//! one place further in each round; what attention has seen so far goes along in a cache, so that a place costs one place of work. Of the
//! ways to go on, those that are likeliest so far are kept. One thread builds it.

use dtg::{Activation, Attention, AttentionCache, Dense, Embedding, Model, Norm, Result, Session, Tensor, Value, Values, ops};

use super::{Batch, HEADS, LONGEST, START, TOKENS, WIDTH};

/// What each token is printed as.
const SIGNS: [u8; TOKENS] = *b"?!0123456789";

/// So unlikely that no search takes it.
const NEVER: f32 = -1e9;

/// A search for the likeliest rows. With one beam it takes the likeliest token each time.
pub struct Writer {
    beams: usize,
    /// int32 `[batch * beams, LONGEST]`, the likeliest of each row first.
    rows: Value,
    /// float32 `[batch, beams]`: the logarithms of their probabilities.
    scores: Value,
}

impl Writer {
    /// Adds a search over the decoder for each of `batch` rows; `read` is what the encoder gives for them.
    pub fn new(m: &Model, read: Value, lengths: Value, batch: usize, beams: usize) -> Result<Self> {
        let search = Search::new(m, read, lengths, batch, beams)?;
        let end = m.while_loop(
            search.begin(m)?,
            |body, state: State| body.expr(state.at).less(LONGEST as i32).value(),
            |body, state| search.go_on(&m.inside(body)?, &state),
        )?;
        Ok(Self { beams, rows: end.written, scores: end.scores })
    }

    /// Prints what is written for a batch beside what was read, and how likely it was taken to be.
    pub fn show(&self, session: &Session, batch: &Batch) -> Result<()> {
        let [(_, source), _, (_, wanted), _, (_, lengths)] = batch.as_slice() else { unreachable!("the transformer is fed five") };
        let run = batch.iter().fold(session.run(), |run, (value, tensor)| run.feed(*value, tensor));
        let out = run.fetch(self.rows).fetch(self.scores).call()?;
        let wrote = out.slice::<i32>(0)?.chunks(self.beams * LONGEST).map(|beams| &beams[..LONGEST]);
        let scores = out.slice::<f32>(1)?.iter().step_by(self.beams);
        let rows = rows_of(source)?.zip(rows_of(wanted)?).zip(lengths.as_slice::<i32>()?);
        let mut right = 0;
        println!("beams: {}", self.beams);
        for (((source, wanted), length), (wrote, score)) in rows.zip(wrote.zip(scores)) {
            let length = *length as usize;
            println!("{} -> {}  {score:.5}", spelled(&source[..length]), spelled(&wrote[..length]));
            right += usize::from(wrote == wanted);
        }
        println!("{right} of {} right", lengths.count());
        Ok(())
    }
}

fn rows_of(tokens: &Tensor) -> Result<std::slice::Chunks<'_, i32>> {
    Ok(tokens.as_slice::<i32>()?.chunks(LONGEST))
}

fn spelled(tokens: &[i32]) -> String {
    tokens.iter().map(|token| char::from(SIGNS[*token as usize])).collect()
}

/// What goes from round to round.
struct State {
    /// The place that is written next, an int32 scalar.
    at: Value,
    /// The token before it, `[rows, 1]`.
    last: Value,
    /// What is there so far, `[rows, LONGEST]`, and how likely it is, `[batch, beams]`.
    written: Value,
    scores: Value,
    /// What attention has seen of it.
    keys: Value,
    values: Value,
}

impl Values for State {
    fn to_vec(&self) -> Vec<Value> {
        vec![self.at, self.last, self.written, self.scores, self.keys, self.values]
    }

    fn of(values: &[Value]) -> Result<Self> {
        let [at, last, written, scores, keys, values] = <[Value; 6]>::of(values)?;
        Ok(Self { at, last, written, scores, keys, values })
    }
}

/// What is the same in all rounds. `m` is everywhere the model to add to: in the loop the one inside of its body.
struct Search {
    batch: usize,
    beams: usize,
    /// How long each row of all beams is.
    lengths: Value,
    /// The keys and values of what was read.
    read: AttentionCache,
}

impl Search {
    fn new(m: &Model, read: Value, lengths: Value, batch: usize, beams: usize) -> Result<Self> {
        // Each row once for each beam.
        let which: Vec<i32> = (0..batch * beams).map(|i| (i / beams) as i32).collect();
        let [read, lengths] = [rows(m, read, m.vector(&which)?)?, rows(m, lengths, m.vector(&which)?)?];
        let read = m.attention_cache(read, &attention("multi_head_attention_2", None), 0)?;
        Ok(Self { batch, beams, lengths, read })
    }

    fn rows(&self) -> usize {
        self.batch * self.beams
    }

    /// Nothing is written, and all beams of a row but one are out of the question, so that they do not all write the same.
    fn begin(&self, m: &Model) -> Result<State> {
        let rows = self.rows();
        let likely: Vec<f32> = (0..rows).map(|i| if i % self.beams == 0 { 0.0 } else { NEVER }).collect();
        let cache = m.constant(&Tensor::from_vec(
            &[rows, LONGEST, HEADS as usize, (WIDTH / HEADS) as usize],
            vec![0f32; rows * LONGEST * WIDTH as usize],
        )?)?;
        Ok(State {
            at: m.scalar(0i32)?,
            last: m.constant(&Tensor::from_vec(&[rows, 1], vec![START; rows])?)?,
            written: m.constant(&Tensor::from_vec(&[rows, LONGEST], vec![0i32; rows * LONGEST])?)?,
            scores: m.constant(&Tensor::from_vec(&[self.batch, self.beams], likely)?)?,
            keys: cache,
            values: cache,
        })
    }

    fn go_on(&self, m: &Model, state: &State) -> Result<State> {
        let (likely, cache) = self.next_token(m, state)?;
        let likely = self.end_rows(m, state.at, likely)?;
        let Choice { scores, from, last } = self.choose(m, likely, state.scores)?;
        let places: [i32; LONGEST] = std::array::from_fn(|place| place as i32);
        let here = m.expr(m.vector(&places)?).equal(state.at);
        Ok(State {
            at: (m.expr(state.at) + 1).value()?,
            last,
            written: here.select_v2(last, rows(m, state.written, from)?).value()?,
            scores,
            keys: rows(m, cache.keys, from)?,
            values: rows(m, cache.values, from)?,
        })
    }

    /// One place of the decoder: logarithms of probabilities `[rows, TOKENS]` of what stands there, and the cache with this place.
    fn next_token(&self, m: &Model, state: &State) -> Result<(Value, AttentionCache)> {
        let plus = |x, y| ops::add_v2(m, x, y).build();
        let look_up = |weights_of, rows: usize, ids| m.embedding(ids, &embedding(weights_of, rows as i64));
        let dense = |weights_of, units, activation, x| {
            m.dense(x, &Dense { units, activation, weights_of: Some(weights_of), ..Default::default() })
        };
        let norm = |weights_of, x| m.layer_norm(x, &Norm { weights_of: Some(weights_of), ..Default::default() });

        let before = AttentionCache { keys: state.keys, values: state.values, position: Some(state.at) };
        let x = plus(look_up("embedding_2", TOKENS, state.last)?, look_up("embedding_3", LONGEST, state.at)?)?;
        let y = norm("layer_normalization_3", x)?;
        let (y, cache) = m.attention_step(y, &attention("multi_head_attention_1", None), &before)?;
        let x = plus(x, y)?;
        let y = norm("layer_normalization_4", x)?;
        let (y, _) = m.attention_step(y, &attention("multi_head_attention_2", Some(self.lengths)), &self.read)?;
        let x = plus(x, y)?;
        let y = dense("dense_2", 2 * WIDTH, Activation::Gelu, norm("layer_normalization_5", x)?)?;
        let x = plus(x, dense("dense_3", WIDTH, Activation::None, y)?)?;
        let y = dense("dense_4", TOKENS as i64, Activation::None, norm("layer_normalization_6", x)?)?;
        Ok((m.expr(y).reshape([self.rows() as i64, TOKENS as i64]).log_softmax().value()?, cache))
    }

    /// Behind its end a row says nothing but 0, which changes no score.
    fn end_rows(&self, m: &Model, at: Value, likely: Value) -> Result<Value> {
        let mut silence = [NEVER; TOKENS];
        silence[0] = 0.0;
        let open = m.expr(at).less(self.lengths).reshape([self.rows() as i64, 1]);
        open.select_v2(likely, m.vector(&silence)?).value()
    }

    /// The likeliest of all ways to go on.
    fn choose(&self, m: &Model, likely: Value, scores: Value) -> Result<Choice> {
        let (batch, beams, rows) = (self.batch as i64, self.beams as i64, self.rows() as i64);
        let total = m.expr(scores).reshape([rows, 1]) + likely;
        let total = total.reshape([batch, beams * TOKENS as i64]).value()?;
        let [scores, ways] = ops::top_k_v2(m, total, m.scalar(self.beams as i32)?).build()?;
        let first: Vec<i32> = (0..self.batch).map(|row| (row * self.beams) as i32).collect();
        let first = m.constant(&Tensor::from_vec(&[self.batch, 1], first)?)?;
        Ok(Choice {
            scores,
            from: (m.expr(ways).floor_div(TOKENS as i32) + first).reshape([rows]).value()?,
            last: m.expr(ways).floor_mod(TOKENS as i32).reshape([rows, 1]).value()?,
        })
    }
}

/// The ways that go on: how likely they are, which row of all beams each goes on with, and with what token.
struct Choice {
    scores: Value,
    from: Value,
    last: Value,
}

/// Rows of x by their numbers.
fn rows(m: &Model, x: Value, which: Value) -> Result<Value> {
    m.expr(x).gather_v2(which, 0i32).value()
}

fn attention(weights_of: &str, lengths: Option<Value>) -> Attention<'_> {
    Attention { heads: HEADS, key_width: WIDTH / HEADS, lengths, weights_of: Some(weights_of), ..Default::default() }
}

fn embedding(weights_of: &str, rows: i64) -> Embedding<'_> {
    Embedding { rows, width: WIDTH, weights_of: Some(weights_of), ..Default::default() }
}
