// The transformer writes. A loop of the graph, whose body is made of the layers that were trained (WeightsOf), takes all beams of all rows one
// place further in each round; what attention has seen so far goes along in a cache, so that a place costs one place of work. Of the ways to
// go on, those that are likeliest so far are kept. capi/examples/models/decode.c in Go.

package main

import (
	"context"
	"fmt"
	"slices"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// never is the logarithm of a probability that nothing comes near to.
const never = -1e9

// writer is a search for the likeliest rows, the best first. One beam: the likeliest token each time.
type writer struct {
	beams  int64
	rows   dtg.Value // int32 [batch * beams, longest]
	scores dtg.Value // float32 [batch, beams]: logarithms of their probabilities
}

// state is what goes from round to round. Its rows are those of all beams, batch * beams.
type state struct {
	at           dtg.Value // the place that is written next
	last         dtg.Value // what stands before it, [rows, 1]
	written      dtg.Value // [rows, longest]
	scores       dtg.Value // [batch, beams]
	keys, values dtg.Value // of what the decoder has seen of its own
}

func stateOf(v []dtg.Value) state { return state{v[0], v[1], v[2], v[3], v[4], v[5]} }

func (s state) all() []dtg.Value {
	return []dtg.Value{s.at, s.last, s.written, s.scores, s.keys, s.values}
}

// search is what all rounds share: rows that were read, each as often as there are beams.
type search struct {
	batch, beams int64
	lengths      dtg.Value
	read         dtg.AttentionCache
}

func (s *search) rows() int64 { return s.batch * s.beams }

// round is a place to build in: the body of the loop, and the model inside of it.
type round struct {
	*search
	*dtg.Model
	g *dtg.Graph
}

func i32(g *dtg.Graph, value int32) dtg.Value { return dtg.ConstScalar(g, value) }

func places(g *dtg.Graph) dtg.Value { return g.ConstI32s(0, 1, 2, 3, 4, 5, 6, 7) }

// look is attention with the weights of a layer that was trained.
func look(trained string, lengths dtg.Value) dtg.Attention {
	return dtg.Attention{Heads: heads, KeyWidth: width / heads, Lengths: lengths, WeightsOf: trained}
}

func (r *round) norm(trained string, x dtg.Value) dtg.Value {
	return r.LayerNorm(x, dtg.Norm{WeightsOf: trained})
}

func (r *round) dense(trained string, units int64, activation dtg.Activation, x dtg.Value) dtg.Value {
	return r.Dense(x, dtg.Dense{Units: units, Activation: activation, WeightsOf: trained})
}

func (r *round) lookUp(trained string, rows int64, ids dtg.Value) dtg.Value {
	return r.Embedding(ids, dtg.Embedding{Rows: rows, Width: width, WeightsOf: trained})
}

// token is one place of the decoder: logarithms of the probabilities [rows, tokens] of what stands there. The layers have the names that they
// were given while it was trained, which count on from those of the encoder.
func (r *round) token(s state) (likely dtg.Value, after state) {
	x := r.g.AddV2(r.lookUp("embedding_2", tokens, s.last), r.lookUp("embedding_3", longest, s.at))
	y := r.norm("layer_normalization_3", x)
	y, seen := r.AttentionStep(y, look("multi_head_attention_1", dtg.Value{}), dtg.AttentionCache{Keys: s.keys, Values: s.values, Position: s.at})
	x = r.g.AddV2(x, y)
	y, _ = r.AttentionStep(r.norm("layer_normalization_4", x), look("multi_head_attention_2", r.lengths), r.read)
	x = r.g.AddV2(x, y)
	y = r.dense("dense_2", 2*width, dtg.GELU, r.norm("layer_normalization_5", x))
	x = r.g.AddV2(x, r.dense("dense_3", width, dtg.NoActivation, y))
	y = r.dense("dense_4", tokens, dtg.NoActivation, r.norm("layer_normalization_6", x))
	s.keys, s.values = seen.Keys, seen.Values
	return r.g.LogSoftmax(r.g.Reshape(y, r.g.ConstI64s(r.rows(), tokens))), s
}

// endRows lets a row say nothing but 0 behind its end, which changes no score.
func (r *round) endRows(at, likely dtg.Value) dtg.Value {
	silence := slices.Repeat([]float32{never}, tokens)
	silence[0] = 0
	open := r.g.Reshape(r.g.Less(at, r.lengths), r.g.ConstI64s(r.rows(), 1))
	return r.g.SelectV2(open, likely, dtg.Const(r.g, silence, 1, tokens))
}

// choose takes the likeliest of all ways to go on: from, which row of the beams each goes on with, and token, with what.
func (r *round) choose(likely, scores dtg.Value) (best, from, token dtg.Value) {
	g := r.g
	total := g.AddV2(g.Reshape(scores, g.ConstI64s(r.rows(), 1)), likely)
	best, ways := g.TopKV2(g.Reshape(total, g.ConstI64s(r.batch, r.beams*tokens)), i32(g, int32(r.beams)))
	first := make([]int32, r.batch) // where the beams of each row begin
	for i := range first {
		first[i] = int32(i) * int32(r.beams)
	}
	from = g.AddV2(g.FloorDiv(ways, i32(g, tokens)), dtg.Const(g, first, r.batch, 1))
	token = g.FloorMod(ways, i32(g, tokens))
	return best, g.Reshape(from, g.ConstI64s(r.rows())), g.Reshape(token, g.ConstI64s(r.rows(), 1))
}

// place is one round: what is kept of each row's beams goes on with what it had written and seen.
func (r *round) place(before state) state {
	g := r.g
	likely, s := r.token(before)
	best, from, token := r.choose(r.endRows(s.at, likely), s.scores)
	kept := func(x dtg.Value) dtg.Value { return g.GatherV2(x, from, i32(g, 0)) }
	here := g.Equal(places(g), s.at)
	return state{at: g.AddV2(s.at, i32(g, 1)), last: token, written: g.SelectV2(here, token, kept(s.written)), scores: best,
		keys: kept(s.keys), values: kept(s.values)}
}

// begin is a state in which nothing is written, and all beams of a row but one are out of the question, so that they do not all write the same.
func (s *search) begin(g *dtg.Graph) state {
	scores := slices.Repeat([]float32{never}, int(s.rows()))
	for i := range s.batch {
		scores[i*s.beams] = 0
	}
	zero := i32(g, 0)
	empty := g.Fill(g.ConstI64s(s.rows(), longest, heads, width/heads), g.ConstF32(0))
	return state{at: zero, last: dtg.Const(g, slices.Repeat([]int32{start}, int(s.rows())), s.rows(), 1),
		written: g.Fill(g.ConstI64s(s.rows(), longest), zero), scores: dtg.Const(g, scores, s.batch, s.beams), keys: empty, values: empty}
}

// writer adds a beam search over the decoder. read is what the encoder gives; its keys and values are the same in all rounds, so they are made
// once, before the loop.
func (w *work) writer(batch, beams int64, read, lengths dtg.Value) writer {
	which := make([]int32, batch*beams) // each row once for each beam
	for i := range which {
		which[i] = int32(i) / int32(beams)
	}
	each := func(x dtg.Value) dtg.Value { return w.g.GatherV2(x, w.g.ConstI32s(which...), i32(w.g, 0)) }
	s := &search{batch: batch, beams: beams, lengths: each(lengths)}
	s.read = w.AttentionCache(each(read), look("multi_head_attention_2", dtg.Value{}), 0)
	end := w.g.While(s.begin(w.g).all(),
		func(b *dtg.Graph, v []dtg.Value) dtg.Value { return b.Less(stateOf(v).at, i32(b, longest)) },
		func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
			r := &round{s, w.Inside(b), b}
			return r.place(stateOf(v)).all()
		})
	found := stateOf(end)
	return writer{beams, found.written, found.scores}
}

// show prints what a search writes for a lesson, and how likely it takes it to be.
func (k *writer) show(session *dtg.Session, l *lesson, feeds []dtg.Arg) error {
	var rows []int32
	var scores []float32
	if err := session.Run(context.Background(), append(feeds, dtg.FetchSlice(k.rows, &rows), dtg.FetchSlice(k.scores, &scores))...); err != nil {
		return err
	}
	fmt.Printf("beams: %d\n", k.beams)
	right := 0
	for i := range int64(len(l.lengths)) {
		wrote, length := rows[i*k.beams*longest:][:longest], l.lengths[i]
		fmt.Printf("%s -> %s  %.5f\n", digits(l.source[i*longest:][:length]), digits(wrote[:length]), scores[i*k.beams])
		if slices.Equal(wrote, l.next[i*longest:][:longest]) {
			right++
		}
	}
	fmt.Printf("%d of %d right\n", right, len(l.lengths))
	return nil
}

// digits is tokens as people write them, with a sign for those that are none: ? for what is empty, ! for the start.
func digits(row []int32) string {
	text := make([]byte, len(row))
	for i, token := range row {
		text[i] = "?!0123456789"[token]
	}
	return string(text)
}
