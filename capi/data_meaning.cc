// See data_meaning.h: errors for what cannot be meant, warnings for what may be.
#include "capi/data_meaning.h"

#include "base/json.h"
#include "session/class_names.h"

namespace dtg::capi {
namespace {

void warn(const ModelObject& model, const char* place, const std::string& what) {
  if (LogSink* const log = model.graph->runtime->seams().log) log->write(LogLevel::warn, place, what);
}

// Other data mean the same by their numbers only as they are read by the schema of the data trained on.
Status check_meaning(const DatasetObject& data, const char* what, std::string_view schema, const char* whose, bool with_label) {
  const std::string why = schemas_differ(schema, data.reading.schema(), with_label);
  if (why.empty()) return {};
  return invalid_argument("%s: %s %s; read it with that schema, so that its numbers mean the same", what, why.c_str(), whose);
}

const std::string* schema_of(const ModelObject& model) {
  const auto at = std::ranges::find(model.metadata, kSchemaKey, [](const auto& pair) -> std::string_view { return pair.first; });
  return at != model.metadata.end() ? &at->second : nullptr;
}

// Where the label is of names, and is learnt, one of the outputs has a number for each: otherwise whoever loads the model finds none.
Status check_outputs(const ModelObject& model, const Trainer& trainer, const std::string& schema) {
  const std::vector<std::string> names = label_names(schema);
  const auto has_own = [](const auto& pair) { return pair.first == kClassesKey || pair.first.starts_with(classes_key("") + "/"); };
  if (names.empty() || std::ranges::any_of(model.metadata, has_own) || !trainer.learns_labels()) return {};
  std::string outputs;
  const Graph& graph = model.model->graph();
  for (const Endpoint& each : trainer.endpoints()) {
    if (each.input || graph.node(each.value.node()).outputs.empty()) continue;
    const ValueInfo& info = graph.info(each.value);
    if (!class_names({{kSchemaKey, schema}}, "", &info).empty()) return {};
    outputs += (outputs.empty() ? "" : ", ") + quoted(each.name) + " " + dtype_name(info.dtype) + info.shape.text();
  }
  if (outputs.empty()) return {};
  return invalid_argument(
      "the label has %zu names (%s, ...), and no output tells so many apart: %s; give the last layer one unit for each name, or, "
      "where that is meant, name the classes of the output yourself (dtg_model_set_classes)",
      names.size(), quoted(names[0]).c_str(), outputs.c_str());
}

// What a data set does to the numbers that are its first component, "normalize(0, 1f)" among its stages; empty: nothing of that kind.
std::string stage_of(const std::string& stages, const std::string& kind) {
  const size_t at = stages.find(", " + kind + "(0,");
  return at == stages.npos ? "" : stages.substr(at + 2, stages.find(')', at) - at - 1);
}

// What its source has there, as "float32[3]"; empty: that is not told.
std::string source_of(const std::string& stages) {
  const size_t at = stages.find(" of ");
  return at == stages.npos ? "" : stages.substr(at + 4, stages.find_first_of(" ,", at + 4) - at - 4);
}

// Numbers of another size than those trained on: the model answers, and its answers mean nothing. A function may have done the same, and so
// may whoever made a source of other numbers.
void tell_stages(const ModelObject& model, const std::string& trained, const std::string& now, const char* attempted) {
  if (source_of(trained).empty() || source_of(trained) != source_of(now)) return;
  for (const char* const kind : {"normalize", "convert"}) {
    const std::string before = stage_of(trained, kind), here = stage_of(now, kind);
    if (before.empty() || before == here || now.find(", map(") != now.npos) continue;
    warn(
        model, "trainer",
        format(
            "%s: the data trained on went through %s, and these data %s; do the same to both, with the numbers found in the data trained on",
            attempted, before.c_str(), here.empty() ? "did not" : ("went through " + here).c_str()));
  }
}

}  // namespace

Status keep_schema(ModelObject& model, const Trainer& trainer, const DatasetObject& data, const DatasetObject* validation, bool* kept) {
  DTG_TRY(check_classes(trainer.model().graph(), model.metadata, trainer.endpoints()).with_context("fit"));
  const std::string unknown = unknown_classes(model.metadata, trainer.endpoints());
  if (!unknown.empty() && !trainer.endpoints().empty()) warn(model, "fit", "fit: " + unknown);
  const std::string& schema = data.reading.schema();
  if (validation) {
    DTG_TRY(check_meaning(*validation, "fit, data to validate with", schema, "the schema of the data to train on", true));
    tell_stages(model, data.reading.text(), validation->reading.text(), "fit, data to validate with");
  }
  if (schema.empty()) return {};
  const std::string* const there = schema_of(model);
  DTG_TRY(check_outputs(model, trainer, there ? *there : schema).with_context("fit"));
  if (!there) {
    set_metadata(model, kSchemaKey, schema);
    *kept = true;
    return {};
  }
  return check_meaning(
      data, "fit, data to train on", *there,
      "the schema that the model has kept (where the model is to mean these data from now on, set its metadata \"schema\" to theirs)",
      true);
}

void drop_schema(ModelObject& model) {
  std::erase_if(model.metadata, [](const auto& pair) { return pair.first == kSchemaKey; });
}

Status check_use(const ModelObject& model, const DatasetObject& data, Use use, const std::string& trained) {
  const char* const attempted = use == Use::predict ? "predict" : "evaluate";
  if (const std::string* const schema = schema_of(model))
    DTG_TRY(check_meaning(data, attempted, *schema, "the schema that the model has kept", use == Use::evaluate));
  if (!trained.empty()) tell_stages(model, trained, data.reading.text(), attempted);
  if (use == Use::predict && data.left_out.count > 0) {
    warn(
        model, "trainer",
        format(
            "predict: %lld rows of the data were left out where they were read, so predictions are of the others, and row i of them is not row i "
            "of the file; the first: %.300s. Keep such rows, or fill them in, by the option \"missing\"",
            static_cast<long long>(data.left_out.count), data.left_out.reasons.empty() ? "" : data.left_out.reasons[0].c_str()));
  }
  return {};
}

void tell_dropped(const ModelObject& model, const DatasetObject& data, Use use) {
  const bool predicts = use == Use::predict;
  const std::string dropped = data.reading.tell_dropped(predicts ? "have no prediction" : "count for nothing");
  if (!dropped.empty()) warn(model, "trainer", (predicts ? "predict: " : "evaluate: ") + dropped);
}

}  // namespace dtg::capi
