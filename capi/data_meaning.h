// What the numbers of data mean to a model: schemas are compared before data are trained on, tested with or predicted from, names of
// classes with what outputs tell apart, and what would be another thing without a word is told. For trainer.cc; one thread at a time.
#pragma once

#include <string>

#include "capi/data.h"
#include "capi/model.h"
#include "train/trainer.h"

namespace dtg::capi {

// Data to fit with, and to validate with (may be null). Keeps their schema in the model, so that whoever loads it knows what its numbers
// mean; `kept`: it has none yet. Where there is one, the host's or that of the weights, data that mean something else are refused.
Status keep_schema(ModelObject& model, const Trainer& trainer, const DatasetObject& data, const DatasetObject* validation, bool* kept);
// Of a fit that has made no step.
void drop_schema(ModelObject& model);

enum class Use : uint8_t { evaluate, predict };
// Other data, for that. `trained` are the stages of the data trained on last; empty: nobody knows.
Status check_use(const ModelObject& model, const DatasetObject& data, Use use, const std::string& trained);
// Once all of them are read: that batches have dropped some.
void tell_dropped(const ModelObject& model, const DatasetObject& data, Use use);

}  // namespace dtg::capi
