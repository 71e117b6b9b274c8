"""Attention over entities: against a plain loop, with absent rows, in any order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from maple.core.spec import EntityGroup, GameSpec, Metric
from maple.games import make_game
from maple.nets.entities import Attention, EntityTrunk, PointerHead, _Block

SQUADS = EntityGroup("squads", begin=2, count=4, width=5, present=1, actions=(3, 7))
CARDS = EntityGroup("cards", begin=22, count=3, width=3, present=0)
SPEC = GameSpec(
    name="made up",
    seats=1,
    actions=12,
    observation=32,  # 0, 1 and 31 are globals
    view=1,
    signals=("reward",),
    figures=np.dtype([("length", np.int32)]),
    opponents=(),
    metric=Metric("return", 0.0),
    entities=(SQUADS, CARDS),
)


@pytest.fixture
def layers() -> tuple[EntityTrunk, PointerHead]:
    torch.manual_seed(3)
    return EntityTrunk(SPEC, 6, Attention(8, 2, 2)).double(), PointerHead(SPEC, 6, 8).double()


def _observation(rows: int = 5) -> Tensor:
    """Rows with some entities absent: all squads of the first, all cards of the second."""
    observation = torch.randn(rows, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    there = torch.rand(rows, 7, generator=torch.Generator().manual_seed(6)) < 0.6
    there[0, :4], there[1, 4:] = False, False
    observation[:, [3 + 5 * i for i in range(4)]] = there[:, :4].double()
    observation[:, [22 + 3 * i for i in range(3)]] = there[:, 4:].double()
    return observation


def _logits(layers: tuple[EntityTrunk, PointerHead], observation: Tensor) -> tuple[Tensor, Tensor]:
    out, tokens = layers[0](observation)
    return out, layers[1](torch.relu(out), tokens)


def test_attention_is_what_a_loop_over_tokens_makes_of_it() -> None:
    torch.manual_seed(0)
    block = _Block(6, 3).double()
    tokens, present = torch.randn(2, 4, 6, dtype=torch.float64), torch.tensor([[1, 1, 0, 1], [1, 0, 0, 1]]).bool()
    found = block(tokens, present)
    for row in range(2):
        query, key, value = block.inward(block.before(tokens[row])).view(4, 3, 3, 2).unbind(1)  # (T, heads, 2)
        for token in range(4):
            heads = []
            for head in range(3):
                others = [other for other in range(4) if present[row, other]]
                score = torch.stack([query[token, head] @ key[other, head] / 2**0.5 for other in others])
                weight = torch.softmax(score, 0)
                heads.append(sum(w * value[other, head] for w, other in zip(weight, others, strict=True)))
            after = tokens[row, token] + block.outward(torch.cat(heads))
            after = after + block.dense(block.between(after))
            torch.testing.assert_close(found[row, token], after)


def test_what_is_in_absent_rows_changes_nothing(layers: tuple[EntityTrunk, PointerHead]) -> None:
    observation = _observation()
    out, logits = _logits(layers, observation)
    other = observation.clone()
    for group in SPEC.entities:
        rows = other[:, group.begin : group.end].view(len(other), group.count, group.width)
        absent = rows[:, :, group.present] == 0
        noise = torch.randn_like(rows)
        noise[:, :, group.present] = 0
        rows[absent] += noise[absent]
    assert not torch.equal(other, observation)
    found, found_logits = _logits(layers, other)
    torch.testing.assert_close(found, out)
    there = observation[:, [3 + 5 * i for i in range(4)]].repeat(1, 2) != 0
    torch.testing.assert_close(found_logits[:, 3:11][there], logits[:, 3:11][there])
    torch.testing.assert_close(found_logits[:, [0, 1, 2, 11]], logits[:, [0, 1, 2, 11]])


def test_the_order_of_rows_matters_to_the_actions_about_them_alone(layers: tuple[EntityTrunk, PointerHead]) -> None:
    observation = _observation()
    out, logits = _logits(layers, observation)
    squads, cards = torch.tensor([2, 0, 3, 1]), torch.tensor([1, 2, 0])
    moved = observation.clone()
    moved[:, 2:22] = observation[:, 2:22].view(-1, 4, 5)[:, squads].flatten(1)
    moved[:, 22:31] = observation[:, 22:31].view(-1, 3, 3)[:, cards].flatten(1)
    found, found_logits = _logits(layers, moved)
    torch.testing.assert_close(found, out)
    expected = logits.clone()
    expected[:, 3:11] = logits[:, 3:11].view(-1, 2, 4)[:, :, squads].flatten(1)
    torch.testing.assert_close(found_logits, expected)
    assert not torch.allclose(found_logits, logits)


def test_ordered_rows_are_told_apart_and_always_there() -> None:
    torch.manual_seed(3)
    boards = EntityGroup("boards", begin=2, count=4, width=5, present=None, ordered=True)
    trunk = EntityTrunk(replace(SPEC, entities=(boards,)), 6, Attention(8, 2, 1)).double()
    observation = _observation()
    observation[:, 2:22] = 0
    out, tokens = trunk(observation)
    assert tokens.present.all()
    other = observation.clone()
    other[:, 2:7], observation[:, 7:12] = 1.0, 1.0  # the same cards in the first row or in the second
    assert (trunk(other)[0] - trunk(observation)[0]).abs().min() > 1e-6
    assert (tokens.of[:, 0] - tokens.of[:, 1]).abs().min() > 1e-6
    assert not torch.allclose(trunk(other)[0], out)


def test_an_entity_changes_what_becomes_of_the_others(layers: tuple[EntityTrunk, PointerHead]) -> None:
    observation = _observation()
    observation[:, 3::5] = 1.0
    _, tokens = layers[0](observation)
    observation[:, 2] += 1.0  # a number of the first squad
    _, after = layers[0](observation)
    assert (after.of[:, 1:] - tokens.of[:, 1:]).abs().min(dim=2).values.max() > 0


def test_an_action_keeps_its_number(layers: tuple[EntityTrunk, PointerHead]) -> None:
    """Action 3 + i asks row i with the first query, 7 + i with the second; the others have the plain layer."""
    trunk, head = layers
    out, tokens = trunk(_observation())
    logits = head(out, tokens)
    asked = head.query["squads"](out).view(-1, 2, 8)
    for i in range(4):
        for j in range(2):
            torch.testing.assert_close(logits[:, 3 + i + 4 * j], (asked[:, j] * tokens.of[:, i]).sum(1) / 8**0.5)
    assert head.plain is not None
    torch.testing.assert_close(logits[:, [0, 1, 2, 11]], head.plain(out))


def test_an_action_has_a_query_for_each_of_its_numbers(layers: tuple[EntityTrunk, PointerHead]) -> None:
    torch.manual_seed(4)
    head = PointerHead(SPEC, 6, 8, atoms=3).double()
    out, tokens = layers[0](_observation())
    values = head(out, tokens).view(-1, 12, 3)
    asked = head.query["squads"](out).view(-1, 2, 3, 8)
    for i in range(4):
        for j in range(2):
            expected = (asked[:, j] * tokens.of[:, i, None]).sum(2) / 8**0.5
            torch.testing.assert_close(values[:, 3 + i + 4 * j], expected)
    assert head.plain is not None
    torch.testing.assert_close(values[:, [0, 1, 2, 11]], head.plain(out).view(-1, 4, 3))


def test_where_all_entities_are_absent_the_globals_speak_for_themselves() -> None:
    torch.manual_seed(3)
    trunk = EntityTrunk(SPEC, 6, Attention(8, 2, 2)).double()
    observation = _observation()
    observation[:, 3:22:5], observation[:, 22:31:3] = 0.0, 0.0
    out, tokens = trunk(observation)
    assert not tokens.present.any()
    assert torch.isfinite(tokens.of).all()
    assert trunk.of_rest is not None
    alone = (trunk.start + trunk.of_rest(observation[:, trunk.rest]))[:, None]
    for block in trunk.blocks:
        alone = block(alone, torch.ones(len(alone), 1, dtype=torch.bool))
    globals_only = torch.cat([trunk.last(alone)[:, 0], torch.zeros(len(alone), 8)], dim=1)
    torch.testing.assert_close(out, trunk.out(globals_only))


@pytest.mark.parametrize("name", ["ofc", "wargame", "showdown"])
def test_there_is_always_somebody_to_attend_to(name: str) -> None:
    spec = make_game(name).spec
    trunk = EntityTrunk(spec, 4, Attention(8, 2, 1))
    observation = torch.zeros(2, spec.observation)
    assert trunk(observation)[1].of.shape[1] >= 2  # entities, and the globals' token beside them
    with torch.no_grad():
        assert torch.isfinite(trunk(observation)[0]).all()
