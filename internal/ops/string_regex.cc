// RegexReplace, RegexFullMatch and their kin with the pattern as an attribute, which are compiled when a plan is made. Registered once by
// the runtime; kernels run on any thread.
#include "base/watched.h"
#include "ops/all.h"
#include "ops/regex.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

struct RegexArgs {
  int64_t count = 0;
  bool all = true;
  Regex regex;      // of the static ops
  Rewrite rewrite;  // likewise
};

Status replace_all(RunContext& c, const RegexArgs& a, const Regex& regex, const Rewrite& rewrite) {
  RegexMatcher matcher(regex);
  return put_texts(c, a.count, [&](int64_t i) { return replaced(matcher, c.in<Text>(0)[i].view(), rewrite, a.all); });
}

Status match_all(RunContext& c, const RegexArgs& a, const Regex& regex) {
  RegexMatcher matcher(regex);
  for (const int64_t i : watched(a.count, 20)) c.out<bool>(0)[i] = matcher.matches_all(c.in<Text>(0)[i].view());
  return {};
}

// With the node's name in front of what is wrong with the pattern.
template <class Context>
Status told(const Context& c, const Status& status) {
  return status.with_context(c.node().op->name());
}

template <class Context>
Status compile(const Context& c, std::string_view pattern, Regex* regex) {
  auto made = Regex::compile(pattern);
  if (!made.ok()) return told(c, made.status());
  *regex = made.take();
  return {};
}

template <class Context>
Status read_rewrite(const Context& c, std::string_view text, const Regex& regex, Rewrite* rewrite) {
  auto made = Rewrite::parse(text, regex.groups());
  if (!made.ok()) return told(c, made.status());
  *rewrite = made.take();
  return {};
}

Status replace_run(RunContext& c) {
  Regex regex;
  Rewrite rewrite;
  DTG_TRY(compile(c, c.in<Text>(1)->view(), &regex));
  DTG_TRY(read_rewrite(c, c.in<Text>(2)->view(), regex, &rewrite));
  return replace_all(c, c.args<RegexArgs>(), regex, rewrite);
}

Status static_replace_run(RunContext& c) {
  const auto& a = c.args<RegexArgs>();
  return replace_all(c, a, a.regex, a.rewrite);
}

Status match_run(RunContext& c) {
  Regex regex;
  DTG_TRY(compile(c, c.in<Text>(1)->view(), &regex));
  return match_all(c, c.args<RegexArgs>(), regex);
}

Status static_match_run(RunContext& c) { return match_all(c, c.args<RegexArgs>(), c.args<RegexArgs>().regex); }

Status replace_prepare(PrepareContext& c) {
  auto& a = *c.args<RegexArgs>();
  a.count = c.input(0).shape.count();
  a.all = c.boolean("replace_global");
  return c.sync(replace_run);
}

Status static_replace_prepare(PrepareContext& c) {
  auto& a = *c.args<RegexArgs>();
  a.count = c.input(0).shape.count();
  a.all = c.boolean("replace_global");
  DTG_TRY(compile(c, c.attr<std::string>("pattern"), &a.regex));
  DTG_TRY(read_rewrite(c, c.attr<std::string>("rewrite"), a.regex, &a.rewrite));
  return c.sync(static_replace_run);
}

Status match_prepare(PrepareContext& c) {
  c.args<RegexArgs>()->count = c.input(0).shape.count();
  return c.sync(match_run);
}

Status static_match_prepare(PrepareContext& c) {
  auto& a = *c.args<RegexArgs>();
  a.count = c.input(0).shape.count();
  DTG_TRY(compile(c, c.attr<std::string>("pattern"), &a.regex));
  return c.sync(static_match_run);
}

}  // namespace

void register_string_regex(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("RegexReplace")
              .input("input: string")
              .input("pattern: string", {.rank = 0})
              .input("rewrite: string", {.rank = 0})
              .output("output: string")
              .attr("replace_global: bool = true")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Each string with what matches a regular expression of RE2 rewritten; \\1 in the rewrite is the first group."));
  kernels.add({.op = "RegexReplace", .prepare = replace_prepare});
  ops.add(OpDef::make("StaticRegexReplace")
              .input("input: string")
              .output("output: string")
              .attr("pattern: string")
              .attr("rewrite: string")
              .attr("replace_global: bool = true")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("RegexReplace with a pattern that is known when the graph is built."));
  kernels.add({.op = "StaticRegexReplace", .prepare = static_replace_prepare});
  ops.add(OpDef::make("RegexFullMatch")
              .input("input: string")
              .input("pattern: string", {.rank = 0})
              .output("output: bool")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Whether the whole string matches a regular expression of RE2."));
  kernels.add({.op = "RegexFullMatch", .prepare = match_prepare});
  ops.add(OpDef::make("StaticRegexFullMatch")
              .input("input: string")
              .output("output: bool")
              .attr("pattern: string")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("RegexFullMatch with a pattern that is known when the graph is built."));
  kernels.add({.op = "StaticRegexFullMatch", .prepare = static_match_prepare});
}

}  // namespace dtg::ops
