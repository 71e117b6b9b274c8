"""The rules once more, slow and plain: squads as objects, lines walked cell by cell, ways by a heap, odds by counting.

It shares nothing with the kernels but the files, the numbers of actions and the random numbers.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

from maple.games.wargame.content import BattleMap, Mission, Roster, load_map, load_mission
from maple.games.wargame.game import WargameGame
from tests.games.wargame.slow_pieces import HEIGHT, WIDTH, Cell, Dice, Squad, apart, between, strike, touching, turned

SHOOT, CHARGE, FIGHT, HOLD, DEFER, FOCUS, SURGE, BRACE, RALLY = 289, 297, 305, 313, 314, 315, 316, 317, 325
COMMAND, MOVING, SHOOTING, CHARGING, FIGHTING = range(5)


@dataclass
class SlowGame:
    """One game from its deal to its end."""

    game: WargameGame
    seed: int
    deal: int
    sides: list[list[Squad]] = field(default_factory=lambda: [[], []])
    vp: list[int] = field(default_factory=lambda: [0, 0])
    destroyed: list[int] = field(default_factory=lambda: [0, 0])
    luck: list[float] = field(default_factory=lambda: [0.0, 0.0])  # hundreds of points beyond the average
    kills: list[int] = field(default_factory=lambda: [0, 0])
    charges: list[int] = field(default_factory=lambda: [0, 0])
    command: list[int] = field(default_factory=lambda: [0, 0])
    used: list[set[str]] = field(default_factory=lambda: [set(), set()])
    round: int = 1
    phase: int = COMMAND
    side: int = 0
    slot: int | None = None
    boost: str | None = None
    decisions: int = 0
    over: str | None = None
    rolls: list[list[int]] = field(default_factory=list)  # since the last decision, as `state.TABLE` keeps them

    def __post_init__(self) -> None:
        first = Dice(self.seed, self.deal, 0, 0, 0, 0)
        maps, missions = self.game.maps, self.game.missions
        self.map: BattleMap = load_map(maps[first.below(len(maps))])
        self.mission: Mission = load_mission(missions[first.below(len(missions))])
        self.first = self.turn = first.below(2)
        self._muster()
        self._begin_turn()
        self._go_on()

    # -- set-up

    def _draw(self, dice: Dice) -> list[str]:
        units, chosen, points = self.game.roster.units, [], self.game.settings.points
        while len(chosen) < self.game.settings.squads:
            fitting = [name for name, unit in units.items() if unit.body.points <= points]
            if not fitting:
                break
            chosen.append(fitting[dice.below(len(fitting))])
            points -= units[chosen[-1]].body.points
        return chosen

    def _muster(self) -> None:
        roster: Roster = self.game.roster
        dice, armies = Dice(self.seed, self.deal, 0, 0, 0, 1), self.game.settings.armies
        if armies == "mirrored":
            lists = [self._draw(dice)] * 2
        elif armies == "drawn":
            lists = [self._draw(dice), self._draw(dice)]
        else:
            names = armies.split(",")
            lists = [roster.armies[names[0]], roster.armies[names[-1]]]
        places, zone = Dice(self.seed, self.deal, 0, 0, 0, 2), self.map.zone()
        for slot in range(8):
            j = slot + places.below(len(zone) - slot)
            zone[slot], zone[j] = zone[j], zone[slot]
            cell = (zone[slot] % WIDTH, zone[slot] // WIDTH)
            for side in range(2):
                if slot < len(lists[side]):
                    name = lists[side][slot]
                    unit = roster.units[name]
                    number = list(roster.units).index(name)
                    at = turned(cell) if side else cell
                    self.sides[side].append(Squad(unit, number, at, unit.body.models, unit.body.wounds))

    # -- the board

    def mark(self, cell: Cell) -> str:
        return self.map.rows[cell[1]][cell[0]]

    def sees(self, a: Cell, b: Cell) -> bool:
        return not any(all(self.mark(c) == "#" for c in cells) for cells in between(a, b))

    def covered(self, a: Cell, b: Cell) -> bool:
        return self.mark(b) == "+" or any(all(self.mark(c) == "+" for c in cells) for cells in between(a, b))

    def alive(self, side: int) -> list[Squad]:
        return [squad for squad in self.sides[side] if squad.alive]

    def engaged(self, side: int, squad: Squad) -> list[int]:
        """Slots of the enemies next to a squad."""
        foes = self.sides[1 - side]
        return [i for i, foe in enumerate(foes) if foe.alive and squad.alive and touching(squad.cell, foe.cell)]

    def in_sight(self, side: int, squad: Squad) -> list[int]:
        """Slots of the enemies that a squad's weapon reaches."""
        ranged, foes = squad.unit.ranged, self.sides[1 - side]
        if ranged is None or not squad.alive:
            return []
        near = [i for i, foe in enumerate(foes) if foe.alive and apart(squad.cell, foe.cell) <= ranged.range]
        return [i for i in near if self.sees(squad.cell, foes[i].cell)]

    def targets(self, side: int, squad: Squad) -> list[int]:
        if squad.rushed or self.engaged(side, squad):
            return []
        foes = self.sides[1 - side]
        return [i for i in self.in_sight(side, squad) if not self.engaged(1 - side, foes[i])]

    def ways(self, side: int, squad: Squad, budget: int) -> dict[Cell, int]:
        """Inches to every cell within the budget, around walls and enemies."""
        enemies = {foe.cell for foe in self.alive(1 - side)}

        def closed(cell: Cell) -> bool:
            inside = 0 <= cell[0] < WIDTH and 0 <= cell[1] < HEIGHT
            return not inside or self.mark(cell) == "#" or cell in enemies

        cost, queue = {squad.cell: 0}, [(0, squad.cell)]
        while queue:
            spent, (x, y) = heapq.heappop(queue)
            if spent > cost[x, y]:
                continue
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    there, after = (x + dx, y + dy), spent + (3 if dx and dy else 2)
                    if closed(there) or after > budget or after >= cost.get(there, 999):
                        continue
                    if dx and dy and closed((x + dx, y)) and closed((x, y + dy)):
                        continue
                    cost[there] = after
                    heapq.heappush(queue, (after, there))
        return cost

    def index(self, side: int, squad: Squad, cell: Cell) -> int:
        """The number of a move to a cell, as this side looks at the board."""
        dx, dy = cell[0] - squad.cell[0], cell[1] - squad.cell[1]
        return (8 - dy) * 17 + 8 - dx if side else (8 + dy) * 17 + 8 + dx

    def cell_of(self, side: int, squad: Squad, index: int) -> Cell:
        dx, dy = index % 17 - 8, index // 17 - 8
        return (squad.cell[0] - dx, squad.cell[1] - dy) if side else (squad.cell[0] + dx, squad.cell[1] + dy)

    def moves(self, side: int, squad: Squad) -> dict[int, bool]:
        """Where a squad may go, and whether that is a rush or a fall back."""
        near, engaged = 2 * squad.unit.body.move, bool(self.engaged(side, squad))
        friends = {other.cell for other in self.alive(side)}
        found = {}
        for cell, inches in self.ways(side, squad, near if engaged else near + 4).items():
            if cell not in friends and not any(touching(cell, foe.cell) for foe in self.alive(1 - side)):
                found[self.index(side, squad, cell)] = engaged or inches > near
        return found

    def charge_way(self, side: int, squad: Squad, foe: Squad) -> tuple[int, Cell] | None:
        """Inches and the cell that a charge ends on."""
        friends = {other.cell for other in self.alive(side) if other is not squad}
        ends = [
            (inches, self.index(side, squad, cell), cell)
            for cell, inches in self.ways(side, squad, 12).items()
            if touching(cell, foe.cell) and cell not in friends
        ]
        return (min(ends)[0], min(ends)[2]) if ends else None

    def chargeable(self, side: int, squad: Squad) -> list[int]:
        if squad.rushed or self.engaged(side, squad):
            return []
        foes = self.sides[1 - side]
        return [i for i, foe in enumerate(foes) if foe.alive and self.charge_way(side, squad, foe) is not None]

    # -- objectives

    def control(self, side: int, label: int) -> int:
        cells = [(c % WIDTH, c // WIDTH) for c in self.map.objectives()[label]]
        return sum(
            squad.unit.body.control
            for squad in self.alive(side)
            if not squad.shaken and any(max(abs(squad.cell[0] - x), abs(squad.cell[1] - y)) <= 2 for x, y in cells)
        )

    def _score(self, side: int) -> None:
        for label, objective in self.mission.objectives.items():
            if self.round >= objective.opens and self.control(side, label) > self.control(1 - side, label):
                self.vp[side] += objective.vp

    # -- the course of a game

    def _begin_turn(self) -> None:
        side = self.turn
        self.phase, self.side, self.slot, self.boost, self.used[side] = COMMAND, side, None, None, set()
        self.command[side] = min(3, self.command[side] + 1)
        for slot, squad in enumerate(self.sides[side]):
            squad.shaken = squad.rushed = squad.charged = squad.braced = squad.done = squad.deferred = False
            if squad.alive and squad.below_half:
                dice = Dice(self.seed, self.deal, self.round, 1 + self.turn, side * 8 + slot, COMMAND)
                nerve = dice.d6() + dice.d6()
                squad.shaken = nerve < squad.unit.body.leadership
                self.rolls.append([4, side * 8 + slot, 0, nerve, squad.unit.body.leadership, 0, 0, 0])
        self._score(side)

    def _begin_phase(self, phase: int) -> None:
        self.phase, self.boost, self.slot = phase, None, None
        for squad in self.sides[0] + self.sides[1]:
            squad.done = squad.deferred = False
        self.fighter = 1 - self.turn

    def _in_order(self, side: int, fits: Any) -> int | None:
        for deferred in (False, True):
            for slot, squad in enumerate(self.sides[side]):
                if squad.alive and not squad.done and squad.deferred == deferred and fits(squad):
                    return slot
        return None

    def _next(self) -> bool:
        if self.boost:
            return True
        if self.phase != FIGHTING:
            self.side, self.slot = self.turn, self._in_order(self.turn, lambda _: True)
            return self.slot is not None
        for side, chargers in ((self.turn, True), (self.fighter, False), (1 - self.fighter, False)):
            found = self._in_order(
                side, lambda s, side=side, c=chargers: self.engaged(side, s) and (s.charged or not c)
            )
            if found is not None:
                self.side, self.slot = side, found
                return True
        return False

    def _tactic(self, name: str, squad: Squad) -> bool:
        return self.command[self.side] > 0 and name not in self.used[self.side] and not squad.shaken

    def _may_defer(self, squad: Squad) -> bool:
        if squad.deferred or self.boost:
            return False
        others = [s for s in self.alive(self.side) if s is not squad and not s.done and not s.deferred]
        if self.phase == FIGHTING:
            others = [s for s in others if self.engaged(self.side, s)]
            if self.side == self.turn:
                others = [s for s in others if s.charged == squad.charged]
        return bool(others)

    def legal(self) -> list[int]:
        """The actions of the squad that decides, in order."""
        own = self.sides[self.side]
        if self.slot is None:
            found = [HOLD]
            for slot, squad in enumerate(own):
                found += [BRACE + slot] if squad.alive and self._tactic("brace", squad) else []
            if self.command[self.side] and "rally" not in self.used[self.side]:
                found += [RALLY + slot for slot, squad in enumerate(own) if squad.alive and squad.shaken]
            return found
        squad = own[self.slot]
        if self.phase == MOVING:
            found = [*self.moves(self.side, squad), HOLD]
        elif self.phase == SHOOTING:
            found = [SHOOT + i for i in self.targets(self.side, squad)] + [HOLD]
        elif self.phase == CHARGING:
            found = [CHARGE + i for i in self.chargeable(self.side, squad)] + [HOLD]
        else:
            found = [FIGHT + i for i in self.engaged(self.side, squad)]
        found += [DEFER] if self._may_defer(squad) else []
        found += [FOCUS] if self.phase in (SHOOTING, FIGHTING) and self._tactic("focus", squad) else []
        found += [SURGE] if self.phase == CHARGING and self._tactic("surge", squad) else []
        return sorted(found)

    def _forced(self) -> int | None:
        """The only thing to do: squads without a target or a way are passed over."""
        legal = self.legal()
        if self.phase == FIGHTING or self.slot is None:
            return legal[0] if len(legal) == 1 else None
        return None if any(action < HOLD for action in legal) else HOLD

    def _go_on(self) -> None:
        while True:
            if not self.alive(0) or not self.alive(1):
                self._end("wipe_out")
                return
            if self.phase == COMMAND or self._next():
                forced = self._forced()
                if forced is None:
                    return
                self._act(forced)
            elif self.phase < FIGHTING:
                self._begin_phase(self.phase + 1)
            else:
                self.turn = 1 - self.turn
                if self.turn == self.first:
                    if self.round == self.game.settings.rounds:
                        self._end("round_limit")
                        return
                    self.round += 1
                self._begin_turn()

    def _end(self, reason: str) -> None:
        self._score(0)
        self._score(1)
        self.over = reason

    def play(self, action: int) -> None:
        """Play an action up to the next decision or the end."""
        self.decisions, self.rolls = self.decisions + 1, []
        self._act(action)
        self._go_on()
        if self.over is None and self.decisions >= self.game.settings.step_cap:
            self.over = "step_cap"

    def _spend(self, name: str) -> None:
        self.command[self.side] -= 1
        self.used[self.side].add(name)

    def _act(self, action: int) -> None:
        own = self.sides[self.side]
        if action >= RALLY:
            self._spend("rally")
            own[action - RALLY].shaken = False
        elif action >= BRACE:
            self._spend("brace")
            own[action - BRACE].braced = True
        elif action in (FOCUS, SURGE):
            self.boost = "focus" if action == FOCUS else "surge"
            self._spend(self.boost)
        elif self.slot is None:
            self._begin_phase(MOVING)
        elif action == DEFER:
            own[self.slot].deferred = True
        else:
            self._do(own[self.slot], action)
            own[self.slot].done = True
            self.boost = None

    def _do(self, squad: Squad, action: int) -> None:
        assert self.slot is not None
        dice = Dice(self.seed, self.deal, self.round, 1 + self.turn, self.side * 8 + self.slot, self.phase)
        if action < SHOOT:
            squad.rushed = self.moves(self.side, squad)[action]
            squad.cell = self.cell_of(self.side, squad, action)
        elif action < CHARGE:
            self._attack(squad, action - SHOOT, dice)
        elif action < FIGHT:
            way = self.charge_way(self.side, squad, self.sides[1 - self.side][action - CHARGE])
            assert way is not None
            inches = dice.d6() + dice.d6() + (2 if self.boost == "surge" else 0)
            self.rolls.append([3, self.side * 8 + self.slot, action - CHARGE, inches, way[0], 0, 0, 0])
            if inches >= way[0]:
                squad.cell, squad.charged = way[1], True
                self.charges[self.side] += 1
        elif action < HOLD:
            if self.side != self.turn or not squad.charged:
                self.fighter = 1 - self.side
            self._attack(squad, action - FIGHT, dice)

    def _attack(self, squad: Squad, slot: int, dice: Dice) -> None:
        foe, shot = self.sides[1 - self.side][slot], self.phase == SHOOTING
        weapon = squad.unit.ranged if shot else squad.unit.melee
        assert weapon is not None
        before = foe.lost_points
        bonus = foe.braced + (shot and self.covered(squad.cell, foe.cell))
        models, counts, luck = foe.models, *strike(squad, weapon, foe, bonus, self.boost == "focus", dice)
        self.luck[self.side] += luck
        assert self.slot is not None
        lost = models - foe.models
        self.rolls.append([1 if shot else 2, self.side * 8 + self.slot, slot, *counts, lost])
        gained, per = foe.lost_points - before, self.mission.points_per_vp
        self.vp[self.side] += (self.destroyed[self.side] + gained) // per - self.destroyed[self.side] // per
        self.destroyed[self.side] += gained
        self.kills[self.side] += not foe.alive

    def winner(self) -> int:
        """The side that has won; -1 for a draw."""
        left = [sum(s.unit.body.points - s.lost_points for s in side) for side in self.sides]
        mine, theirs = (self.vp[0], left[0]), (self.vp[1], left[1])
        return -1 if mine == theirs else 0 if mine > theirs else 1
