"""Two thousand random views in every run; `python -m tests.properties.fuzz` runs as many as there is time for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.algebra.nodes import Node, UnionAll
from engine.algebra.trees import rewrite
from engine.compile.differentiate import join
from engine.errors import TrickleError
from tests.properties import fuzz, judge, record, rule_by_rule
from tests.properties.case import Case
from tests.properties.features import COVERED, FEATURES, GROUPS, SPARK_ONLY, weights
from tests.properties.generator.queries import Generator
from tests.properties.judge import NO_ANSWER, REFUSED, RefusedAlthoughCovered, Settings, WrongRows
from tests.properties.tree import Call, Item, Named, Ref, Select
from tests.properties.tree import Join as JoinOf

#: of everything, and of what is maintained: seeds, in batches
EVERYTHING = range(0, 1_500, 50)
MAINTAINED = range(100_000, 100_500, 50)


@pytest.fixture(scope="module")
def ways() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("first", EVERYTHING)
def test_views_are_what_recompute_gives(first: int) -> None:
    for seed in range(first, first + EVERYTHING.step):
        fuzz.check(seed)


@pytest.mark.parametrize("first", MAINTAINED)
def test_views_of_what_is_covered_are_maintained(first: int, ways: Counter[str]) -> None:
    covered = weights(["covered"])
    for seed in range(first, first + MAINTAINED.step):
        ways[fuzz.check(seed, chosen=covered).way] += 1


def test_the_cases_reach_every_way_and_are_rarely_refused(ways: Counter[str]) -> None:
    if not ways:
        pytest.skip("runs after the cases")
    total = sum(ways.values())
    assert ways[REFUSED] <= total * 0.1
    assert ways[NO_ANSWER] <= total * 0.01
    for way in ("by row", "by group, stored sums", "by group, recomputed"):
        assert ways[way] >= total * 0.05


# ---------------------------------------------------------------- the generator


def test_the_same_seed_gives_the_same_case() -> None:
    assert Generator(7).case() == Generator(7).case()
    assert Generator(7).case() != Generator(8).case()


def test_every_feature_is_generated() -> None:
    seen = frozenset().union(*(Generator(seed).case().features for seed in range(1_500)))
    assert seen == set(FEATURES) - SPARK_ONLY


@pytest.mark.parametrize("group", [*GROUPS, "covered"])
def test_only_what_is_asked_for_is_generated(group: str) -> None:
    chosen = weights([group], spark=True)
    allowed = {name for name, weight in chosen.items() if weight}
    for seed in range(60):
        assert Generator(seed, chosen).case().features <= allowed


def test_what_is_not_wanted_is_not_generated() -> None:
    chosen = weights(without=["windows", "recursive", "union_all"])
    unwanted = {*GROUPS["windows"], "recursive", "union_all"}
    for seed in range(200):
        assert not Generator(seed, chosen).case().features & unwanted


def test_a_feature_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no feature is called joints"):
        weights(["joints"])


def test_what_is_covered_are_features() -> None:
    assert set(FEATURES) >= COVERED


# ---------------------------------------------------------------- the judge


def one_join() -> Case:
    """Rows of t0 beside those of another table, or of itself, with one key; it changes on both sides at once."""
    return next(
        case
        for case in (Generator(seed, weights(["inner_join"])).case() for seed in range(1_000))
        if isinstance(case.query, Select)
        and isinstance(case.query.source, JoinOf)
        and isinstance(case.query.source.left, Named)
        and isinstance(case.query.source.right, Named)
        and judge.judge(case, Settings()).way == "by row"
    )


def test_a_wrong_rule_is_found_and_its_case_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both inputs of a join at their new versions: a pair whose sides change together is then counted wrongly."""
    monkeypatch.setattr(join, "at_frontier", lambda node: node)
    chosen = weights(["covered"])
    for seed in range(300):
        case, settings = Generator(seed, chosen).case(), Settings(weights=chosen)
        try:
            judge.judge(case, settings)
        except AssertionError as error:
            cut = fuzz.cut_down(fuzz.Failure(seed, case, error), lambda each, how=settings: judge.judge(each, how))
            assert len(cut.case.steps) == 1
            assert len(cut.case.query.sql()) <= min(250, len(case.query.sql()))
            assert "view\nSELECT" in str(cut)
            return
        except TrickleError:
            continue
    pytest.fail("300 cases did not notice a wrong rule")


def test_a_case_that_should_be_maintained_must_not_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in map(case_of, range(100)) if "right_join" in case.features)
    refused = judge.Outcome(REFUSED, "RIGHT JOIN cannot be maintained")
    monkeypatch.setattr(judge, "maintain", lambda *_, **__: refused)
    assert judge.judge(case, Settings(covered=frozenset())).way == REFUSED
    with pytest.raises(RefusedAlthoughCovered, match="JOIN cannot be maintained"):
        judge.judge(case, Settings(covered=frozenset(FEATURES)))


def case_of(seed: int) -> Case:
    return Generator(seed, weights(["right_join"])).case()


def test_parts_that_do_not_add_up_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = one_join()
    assert judge.judge(case, Settings(in_parts=True)).asked == ("in parts",)
    whole = case.query
    monkeypatch.setattr(judge, "partitions", lambda *given: (whole, whole))
    empty = all(not table.rows for table in case.tables)
    assert not empty
    with pytest.raises(WrongRows, match="in parts"):
        judge.judge(case, Settings(in_parts=True))


def test_another_answer_without_optimization_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = one_join()
    assert judge.judge(case, Settings(plainly=True)).asked == ("without optimization",)
    shown = Item(Call("1", "int"), "c99")
    monkeypatch.setattr(judge, "unoptimized", lambda query: Select((shown,), query.source))
    with pytest.raises(WrongRows, match="without optimization"):
        judge.judge(case, Settings(plainly=True))


def test_each_rule_is_applied_by_itself_and_a_wrong_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: set[str] = set()
    for seed in range(300, 330):
        case = Generator(seed).case()
        applied |= rule_by_rule.check_each_rule(case, *judge.on_duckdb(case.relations))
    assert applied == {rule.__name__ for rule in rule_by_rule.RULES}

    def first_only(root: Node) -> Node:
        return rewrite(root, lambda node: node.members[0] if isinstance(node, UnionAll) else node)

    monkeypatch.setattr(rule_by_rule, "RULES", (first_only,))

    def judge_all() -> None:
        for seed in range(300, 330):
            judge.judge(Generator(seed).case(), Settings(rule_by_rule=True))

    with pytest.raises(rule_by_rule.RuleChangesRows, match="first_only changes the rows"):
        judge_all()


def test_where_there_are_ties_the_text_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def look(view: object, where: str, texts: tuple[str, ...], *, hidden: bool) -> None:
        assert hidden
        asked.append(bool(texts))

    monkeypatch.setattr(judge, "check_against_recompute", look)
    case = one_join()
    asked.clear()
    judge.judge(Case(case.tables, case.query, case.steps, ties=True), Settings(in_parts=True))
    assert asked == [False] * (1 + len(case.steps))


def test_a_view_may_fail_only_where_its_text_does(monkeypatch: pytest.MonkeyPatch) -> None:
    case = one_join()
    fails = case.with_query(Select((Item(Call("CAST(raise_error('no') AS INT)", "int"), "c1"),), case.query.source))
    assert judge.judge(fails, Settings()).way == NO_ANSWER

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(judge.FakeStreamTable, "refresh", broken)
    with pytest.raises(ZeroDivisionError):
        judge.judge(case, Settings())


# ---------------------------------------------------------------- the program


def test_the_program_counts_what_is_covered_and_why_a_query_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--cases", "30", "--only", "joins,recursive", "--without", "natural_join"]) == 0
    told = capsys.readouterr().out
    assert "30 cases" in told
    assert "0 failures" in told
    assert "inner_join" in told
    assert "never: " in told


def test_a_failure_is_written_as_a_file(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(case: Case, settings: Settings) -> None:
        raise WrongRows("on purpose")

    monkeypatch.setattr(fuzz, "judge", fail)
    assert fuzz.main(["--cases", "1", "--seed", "4", "--write", str(tmp_path)]) == 1
    assert "seed 4: WrongRows: on purpose" in capsys.readouterr().out
    (file,) = tmp_path.iterdir()
    assert file.name == "seed_4.test"
    assert file.read_text().startswith("# Found by chance, seed 4.\n\ntable t")


def test_an_unknown_feature_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--only", "joints"]) == 2
    assert "no feature is called joints" in capsys.readouterr().err


def test_a_query_reads_a_table() -> None:
    for seed in range(300):
        text = Generator(seed).case().query.sql()
        assert " t0 " in text or " t1 " in text or " t2 " in text


def test_a_name_that_is_gone_is_no_name() -> None:
    assert Ref("", "c1", "int").sql() == "c1"
    assert Ref("m", "c1", "int").sql() == "m.c1"


def test_runs_of_several_sittings_add_up(tmp_path: Path) -> None:
    first = record.Run("DuckDB", "abc", 0, 100, 3, 1, 0, 60)
    for run in (first, record.Run("Spark", "abc", 0, 10, 0, 0, 1, 60), replace(first, cases=200)):
        record.write(run, tmp_path)
    record.write(record.Run("DuckDB", "def", 200, 50, 0, 0, 0, 30), tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "DuckDB: 250 cases, 0 failures.\nSpark: 10 cases, 1 failures." in page
    assert "| DuckDB | abc | 0 – 199 | 200 | 3 | 1 | 0 | 1 |  |" in page
