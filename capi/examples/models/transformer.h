/* transformer.h: what transformer.c, which learns, and decode.c, which writes with what was learned, know of the model. */
#ifndef TRANSFORMER_H
#define TRANSFORMER_H

#include "models.h"

enum { LONGEST = 8, TOKENS = 12, WIDTH = 32, HEADS = 2, START = 1, FIRST = 2 };

/* Adds a beam search over the decoder: rows and scores of `out`, whose number of beams says how wide. `read` is what the encoder gives. */
dtg_error *add_writer(struct work *w, dtg_value read, dtg_value lengths, struct writer *out);

#endif /* TRANSFORMER_H */
