/* data.c: numbers by chance, and images of them. Only integers and exact sums, so every machine gets the same. */
#include "models.h"

struct dice dice_of(uint64_t model, uint64_t step, uint64_t what) {
  struct dice dice = {model};
  dice.state = draw(&dice) ^ step;
  dice.state = draw(&dice) ^ what;
  return dice;
}

uint64_t draw(struct dice *dice) {
  uint64_t z = dice->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t below(struct dice *dice, int64_t limit) { return (int64_t)(draw(dice) >> 33) % limit; }

float unit(struct dice *dice) { return (float)(draw(dice) >> 40) * 0x1p-24f; }

float normal(struct dice *dice) {
  float sum = -6;
  for (int k = 0; k < 12; k++) sum += unit(dice);
  return sum;
}

/* Blocks of four pixels that are bright or dark as the class says, moved by up to three pixels each way, and noise over all. */
void textured(struct dice *dice, int64_t class_, int64_t side, int64_t channels, float *image) {
  const int64_t down = below(dice, 4), right = below(dice, 4);
  for (int64_t i = 0; i < side; i++) {
    for (int64_t j = 0; j < side; j++) {
      for (int64_t c = 0; c < channels; c++) {
        struct dice bright = dice_of((uint64_t)class_, (uint64_t)((i + down) / 4 * 64 + (j + right) / 4), (uint64_t)c);
        *image++ = (draw(&bright) & 1 ? 0.5f : -0.5f) + 2 * (unit(dice) - 0.5f);
      }
    }
  }
}
