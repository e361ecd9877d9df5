// Short ways to build functions and what calls them, for tests. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fixture.h"
#include "graph/closure.h"

namespace dtg {

class ControlTest : public SessionTest {
 protected:
  using Values = std::vector<Value>;
  // Makes the results of a body from its arguments.
  using Body = std::function<Values(Build&, const Values&)>;

  // A function in `outer` whose arguments are like these values.
  static Result<Closure> function(Graph& outer, const Values& like, const Body& body, const char* name = "body") {
    DTG_ASSIGN(Ref<Graph> graph, Graph::create_inside(Ref<Graph>::share(&outer)));
    Values arguments;
    for (Value value : like) {
      DTG_ASSIGN(const Value around, outer.capture(value));
      DTG_ASSIGN(const Value argument, graph->add_argument(outer.info(around)));
      arguments.push_back(argument);
    }
    Build b(*graph);
    Values results = body(b, arguments);
    DTG_TRY(b.status());
    return finish_function(std::move(graph), name, std::move(results));
  }
  static Closure made(Result<Closure> result) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result.take() : Closure();
  }
  static Values made(Result<Values> result) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result.take() : Values(8);
  }

  static Values loop(Graph& outer, const Values& start, const Body& condition, const Body& body) {
    return made(add_while(outer, start, made(function(outer, start, condition, "condition")), made(function(outer, start, body))));
  }
  static Values when(Graph& outer, Value condition, const Body& yes, const Body& no) {
    return made(add_if(outer, condition, made(function(outer, {}, yes, "yes")), made(function(outer, {}, no, "no"))));
  }
  Value gradient(Value y, Value x) {
    auto made = add_gradients(*graph, {&y, 1}, {&x, 1}, {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() && made.value()[0].any() ? densify(*build, made.value()[0]) : Value();
  }
};

}  // namespace dtg
