/* policy.c: a policy gradient: who walks along a corridor of eight places and is paid at its right end learns to go right. Each step of
 * training walks some episodes with what was learned so far, and makes what paid more likely. The metric: how likely it goes right. */
#include "models.h"

enum { PLACES = 8, EPISODES = 16, STEPS = 12, ACTIONS = 2 };

static dtg_error *build(struct work *w) {
  const int64_t states[] = {w->batch, PLACES};
  dtg_loss surprise = DTG_LOSS_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value x, actions, advantages, loss, chances[ACTIONS], axis;
  const int32_t last = 1;
  TRY(feed(w, "states", DTG_F32, states, 2, &x));
  TRY(feed(w, "actions", DTG_I32, states, 1, &actions));
  TRY(feed(w, "advantages", DTG_F32, states, 1, &advantages));
  TRY(dense(w, 16, DTG_ACT_TANH, &x));
  TRY(dense(w, ACTIONS, DTG_ACT_NONE, &x));
  surprise.kind = DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
  surprise.from_logits = 1;
  TRY(dtg_nn_loss(w->model, &surprise, actions, x, advantages, &loss));
  TRY(dtg_nn_activation(w->model, x, DTG_ACT_SOFTMAX, &w->output));
  TRY(dtg_const_of(w->graph, DTG_I32, NULL, 0, &last, sizeof last, &axis));
  TRY(dtg_add_split(w->graph, NULL, axis, w->output, ACTIONS, chances));
  TRY(reduce(w, "Mean", 0, &chances[1]));
  w->metric = chances[1];
  TRY(reduce(w, "Mean", 0, &w->metric));
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.01;
  return train_on(w, loss, &adam);
}

/* How likely it goes right from each place, at present. */
static dtg_error *ask(struct work *w, float right[PLACES]) {
  dtg_tensor *chances;
  for (int64_t k = 0; k < PLACES * PLACES; k++) floats(w, 1)[k] = k / PLACES == k % PLACES;
  TRY(look(w, w->output, &chances));
  for (int k = 0; k < PLACES; k++) right[k] = ((const float *)dtg_tensor_data(chances, NULL))[k * ACTIONS + 1];
  dtg_tensor_release(chances);
  return NULL;
}

static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(12, (uint64_t)step, 0);
  float right[PLACES];
  for (int k = 0; k < PLACES; k++) right[k] = 0.5f;
  if (!w->as_reference) TRY(ask(w, right));
  for (int64_t i = 0; i < EPISODES; i++) {
    int64_t place = below(&dice, PLACES);
    float *reward = floats(w, 3) + i * STEPS, later = 0;
    for (int64_t t = 0; t < STEPS; t++) {
      float *state = floats(w, 1) + (i * STEPS + t) * PLACES;
      const int32_t action = unit(&dice) < right[place];
      for (int64_t k = 0; k < PLACES; k++) state[k] = k == place;
      ints(w, 2)[i * STEPS + t] = action;
      if (action ? place + 1 < PLACES : place > 0) place += action ? 1 : -1;
      reward[t] = place == PLACES - 1;
    }
    for (int64_t t = STEPS; t-- > 0;) reward[t] = later = reward[t] + 0.75f * later; /* what is yet to come, and less of what comes late */
    for (int64_t t = 0; t < STEPS; t++) reward[t] -= 1.5f;
  }
  return NULL;
}

const struct example policy = {"policy", "steps", "chance of right", EPISODES *STEPS, 1, build, fill, NULL};
