/** Teams from files, judged by the format's own validator, and team preview as decisions. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {FIRST_SWITCH} from '../src/actions.js';
import {pick, Stream} from '../src/random.js';
import {numbered, place, VIEW_BYTES} from '../src/schema.js';
import {OUTCOME} from '../src/account.js';
import {Table} from '../src/table.js';
import {findFormat, readTeams, REFRESH, RulesError, TeamBank} from '../src/teams.js';
import {makeRules, simulator} from './simulator.js';
import {MEADOW, SHORE} from './squads.js';

const POKEMON = place('pokemon'), SIDE = place('side'), TURN = place('turn'), SWITCH = place('switch');
const PREVIEW = numbered('request').get('preview');
const ACTIVE = 2, MARKED = 8;
const ou = simulator.Dex.formats.get('gen9ou');

/** @param {() => unknown} act @returns {any} what it refuses */
function refusal(act) {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof RulesError);
    return error.content;
  }
  assert.fail('nothing was refused');
}

/** @param {Table} table @param {number} seat */
function viewOf(table, seat) {
  const u8 = new Uint8Array(VIEW_BYTES);
  table.write(seat, u8, 0);
  return u8;
}

const flag = (/** @type {Uint8Array} */ view, /** @type {number} */ i) => view[POKEMON.at + i * POKEMON.stride + POKEMON.field.flags];
const species = (/** @type {Uint8Array} */ view, /** @type {number} */ i) =>
  view[POKEMON.at + i * POKEMON.stride + POKEMON.field.species] + 256 * view[POKEMON.at + i * POKEMON.stride + POKEMON.field.species + 1];

test('exported and packed teams are the same teams, however many a file holds', () => {
  const exported = readTeams(simulator, ou, [{file: 'a', text: MEADOW}, {file: 'b', text: SHORE}]);
  const together = readTeams(simulator, ou, [{file: 'c', text: `=== [gen9ou] one ===\n\n${MEADOW}\n\n=== two ===\n${SHORE}\n`}]);
  const packed = readTeams(simulator, ou, [{file: 'd', text: `${exported.join('\n')}\n`}]);
  assert.equal(exported.length, 2);
  assert.deepEqual(together, exported);
  assert.deepEqual(packed, exported);
});

test('generated teams are refreshed by the count of games, the same in every process, and old ones are dropped', () => {
  const random = simulator.Dex.formats.get('gen9randombattle'), size = 4;
  const bank = () => new TeamBank(simulator, random, [], 11n, size);
  const first = bank(), other = bank();
  const pool = (/** @type {TeamBank} */ from, /** @type {number} */ game) => [...Array(size).keys()].map(number => from.team(number, game));
  const young = pool(first, 0), old = pool(first, REFRESH);
  assert.deepEqual(pool(first, 0), young);
  for (let number = 0; number < size; number++) assert.notEqual(young[number], old[number]);
  assert.deepEqual(pool(other, REFRESH), old, 'what a process made before does not matter');
  assert.deepEqual(pool(other, 0), young);
  assert.equal(first.made.size, size);
  assert.deepEqual(pool(first, REFRESH - 1).map((team, number) => team === young[number]), [true, false, false, false], 'one after the other');
  assert.equal(first.draw(3, 700, 1), other.draw(3, 700, 1));
  const given = new TeamBank(simulator, ou, [{file: 'a', text: MEADOW}], 11n, size);
  assert.equal(given.draw(0, 0, 0), given.draw(0, 10 * REFRESH, 0));
});

test('the validator speaks for itself', () => {
  const wrong = MEADOW.replace('Ability: Flash Fire', 'Ability: Levitate');
  const found = refusal(() => readTeams(simulator, ou, [{file: 'wrong.txt', text: wrong}]));
  assert.equal(found.kind, 'team');
  assert.equal(found.file, 'wrong.txt');
  assert.match(found.problems.join(' '), /Arcanine/);
  assert.match(found.problems.join(' '), /Levitate/);
  assert.equal(found.title, '');
  const several = `=== [gen9ou] sea ===\n\n${SHORE}\n\n=== [gen9ou] land ===\n${wrong}\n`;
  assert.equal(refusal(() => readTeams(simulator, ou, [{file: 'x', text: several}])).title, '[gen9ou] land');
  assert.equal(refusal(() => readTeams(simulator, ou, [{file: 'x', text: `${SHORE}\n===\n${wrong}`}])).title, 'team 2');
  assert.equal(refusal(() => readTeams(simulator, ou, [{file: 'x', text: '\n \n'}])).kind, 'team');
  assert.equal(refusal(() => readTeams(simulator, ou, [])).kind, 'teamless');
  const random = simulator.Dex.formats.get('gen9randombattle');
  assert.equal(refusal(() => readTeams(simulator, random, [{file: 'x', text: MEADOW}])).kind, 'generated');
  for (const name of ['gen9oou', 'gen9doublesou', 'sleepclausemod']) {
    const content = refusal(() => findFormat(simulator, name));
    assert.equal(content.kind, 'format');
    assert.ok(content.known.includes('gen9ou'));
  }
});

test('a lead is picked with both teams in sight, and it is the one that comes in', () => {
  const rules = makeRules({format: 'gen9ou', teams: [{file: 'a', text: MEADOW}, {file: 'b', text: SHORE}]}), stream = new Stream(3);
  for (let number = 0; number < 4; number++) {
    const table = new Table(rules, number, 0);
    table.update();
    for (const seat of [0, 1]) {
      const view = viewOf(table, seat);
      assert.equal(view[TURN.at + TURN.field.request], PREVIEW);
      assert.equal(table.masks[seat], 0b111111 << FIRST_SWITCH);
      for (let i = 0; i < 12; i++) assert.equal(flag(view, i) & ACTIVE, 0);
      for (let i = 6; i < 12; i++) assert.equal(flag(view, i) & MARKED, MARKED);
      assert.equal(view[SIDE.at + SIDE.stride + SIDE.field.seen], 0);
      assert.ok(view[SWITCH.at + SWITCH.field.dealt] > 0);
    }
    const [mine, theirs] = [viewOf(table, 0), viewOf(table, 1)];
    const hidden = rules.lexicon.species('Dudunsparce-Three-Segment').id, shown = rules.lexicon.species('Dudunsparce').id;
    for (let i = 0; i < 6; i++) assert.equal(species(mine, 6 + i), species(theirs, i) === hidden ? shown : species(theirs, i));
    table.play(0, FIRST_SWITCH + 4);
    table.play(1, FIRST_SWITCH + 2);
    table.update();
    const after = viewOf(table, 0);
    assert.equal(species(after, 0), species(mine, 4));
    assert.equal(species(after, 6), species(mine, 8));
    assert.equal(flag(after, 6), 1 | ACTIVE);
    assert.equal(after[SIDE.at + SIDE.stride + SIDE.field.seen], 1);
    while (table.outcome === OUTCOME.playing) {
      for (const seat of [0, 1]) if (table.masks[seat] && !table.battle.ended) table.play(seat, pick(table.masks[seat], stream));
      table.update();
    }
    assert.equal(table.anomalies.length, 0);
    assert.ok(table.tracker.sides.every(side => side.mons.length === 6));
  }
});

for (const [format, teams] of /** @type {[string, any[]][]} */ ([['gen9bssfactory', []], ['gen9bssregi', [{file: 'a', text: MEADOW}]]])) {
  test(`${format} picks three of six, one after the other`, () => {
    const rules = makeRules({format, teams}), stream = new Stream(8);
    for (let number = 0; number < 4; number++) {
      const table = new Table(rules, number, 0);
      const picked = [5, 0, 3];
      for (let round = 0; round < 3; round++) {
        table.update();
        const view = viewOf(table, 0);
        assert.equal(view[TURN.at + TURN.field.request], PREVIEW);
        for (let i = 0; i < 6; i++) assert.equal(!!(flag(view, i) & MARKED), picked.slice(0, round).includes(i));
        for (const seat of [0, 1]) table.play(seat, FIRST_SWITCH + picked[round]);
      }
      table.update();
      assert.equal(table.battle.turn, 1);
      assert.equal(table.side(0).pokemon.length, 3);
      assert.deepEqual(table.decisions, [3, 3]);
      while (table.outcome === OUTCOME.playing) {
        for (const seat of [0, 1]) if (table.masks[seat] && !table.battle.ended) table.play(seat, pick(table.masks[seat], stream));
        table.update();
      }
      assert.equal(table.anomalies.length, 0);
    }
  });
}
