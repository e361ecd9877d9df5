"""Goal 41: what a loop costs against the same nodes without one, one thread, in one process and in turns; the ratio is that of the time
without over the time with the loop, so that more is better."""

from sides import Side, say, side_by_side


def plan(side, name):
    answer = side.ask(f"plan {name}")
    return float(answer.split()[0]) if answer else None


def goal_41(run):
    side = Side("dtg", [run.options.build / "bench_control"])
    rows = (
        ("a round of a loop with one addition", lambda: side.measure("while"), lambda: side.measure("chain"), "an addition of a chain", 1 / 12),
        ("LSTM of 100 steps and gradient, as a loop", lambda: side.measure("lstm_while"), lambda: side.measure("lstm_unrolled"), "unrolled", 1 / 1.15),
        ("the same, first plan", lambda: plan(side, "lstm_while"), lambda: plan(side, "lstm_unrolled"), "unrolled", 20),
    )
    for name, mine, other, other_name, target in rows:
        result = side_by_side(mine, other, run.options.pairs)
        if result:
            run.table.add(41, name, result[0], result[1], other_name, result[2], target)
        else:
            say(f"goal 41  {name}: no answer")
    side.end()


GOALS = {41: goal_41}
