"""Goal 41: what a loop costs against the same nodes without one, one thread, in one process and in turns; the ratio is that of the time
without over the time with the loop, so that more is better."""

from sides import Side, say, side_by_side


def plan(program, name):
    """In a process of its own, so that nothing of one plan is at hand for the next."""
    side = Side("dtg", [program])
    answer = side.ask(f"plan {name}")
    side.end()
    return float(answer.split()[0]) if answer else None


def goal_41(run):
    program = run.options.build / "bench_control"
    side = Side("dtg", [program])
    rows = (
        ("a round of a loop with one addition", lambda: side.measure("while"), lambda: side.measure("chain"), "an addition of a chain", 1 / 12),
        ("LSTM of 100 steps and gradient, as a loop", lambda: side.measure("lstm_while"), lambda: side.measure("lstm_unrolled"), "unrolled", 1 / 1.15),
        ("the same, first plan", lambda: plan(program, "lstm_while"), lambda: plan(program, "lstm_unrolled"), "unrolled", 20),
    )
    for name, mine, other, other_name, target in rows:
        result = side_by_side(mine, other, run.options.pairs)
        if result:
            run.table.add(41, name, result[0], result[1], other_name, result[2], target)
        else:
            say(f"goal 41  {name}: no answer")
    side.end()


GOALS = {41: goal_41}
