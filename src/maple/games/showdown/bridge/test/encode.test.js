/** What a seat sees: nothing hidden, the same for the same knowledge, and right where it can be checked. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {ACTIONS, choiceText, FIRST_SWITCH, openActions} from '../src/actions.js';
import {Lane} from '../src/lane.js';
import {Lexicon} from '../src/lexicon.js';
import {pick, Stream} from '../src/random.js';
import {place, VIEW_BYTES} from '../src/schema.js';
import {OUTCOME} from '../src/account.js';
import {Table} from '../src/table.js';
import {Tracker} from '../src/tracker.js';
import {makeRules, simulator} from './simulator.js';

const POKEMON = place('pokemon'), TURN = place('turn');

/** @param {Table} table @param {number} seat */
function viewOf(table, seat) {
  const u8 = new Uint8Array(VIEW_BYTES);
  table.write(seat, u8, 0);
  return u8;
}

/** Play some decisions. @param {Table} table @param {number} count @param {Stream} stream */
function playOn(table, count, stream) {
  for (let i = 0; i < count && table.outcome === OUTCOME.playing; i++) {
    table.update();
    for (let seat = 0; seat < 2; seat++) {
      if (table.masks[seat] && !table.battle.ended) table.play(seat, pick(table.masks[seat], stream));
    }
  }
  table.update();
}

/** Change every fact of a side's Pokémon that the other side cannot know yet. @param {any} side */
function disturb(side) {
  for (const pokemon of side.pokemon) {
    const bench = !pokemon.isActive && !pokemon.previouslySwitchedIn;
    pokemon.item = 'leftovers';
    pokemon.teraType = 'Water';
    for (const stat of ['atk', 'def', 'spa', 'spd', 'spe']) pokemon.baseStoredStats[stat] = pokemon.storedStats[stat] += 17;
    for (const slot of pokemon.moveSlots) slot.pp = 1;
    if (bench) {
      pokemon.hp = 1;
      pokemon.status = 'par';
      pokemon.level = 1;
      pokemon.set.species = 'Ditto';
    }
  }
}

test('hidden facts of the other side change no byte', () => {
  const rules = makeRules();
  for (let number = 0; number < 6; number++) {
    const table = new Table(rules, number, 0);
    playOn(table, 5 + number, new Stream(number + 1));
    for (let seat = 0; seat < 2; seat++) {
      if (table.outcome !== OUTCOME.playing || !table.masks[seat]) continue;
      const before = viewOf(table, seat);
      disturb(table.battle.sides[1 - seat]);
      assert.deepEqual(viewOf(table, seat), before);
    }
  }
});

test('a view written again is the same, and differs after a turn', () => {
  const table = new Table(makeRules(), 0, 0), stream = new Stream(2);
  playOn(table, 3, stream);
  const seat = table.masks[0] ? 0 : 1, before = viewOf(table, seat);
  assert.deepEqual(viewOf(table, seat), before);
  playOn(table, 2, stream);
  assert.notDeepEqual(viewOf(table, table.masks[0] ? 0 : 1), before);
});

test('the cached damage figures are those of a fresh encoder', async () => {
  const {SeatEncoder} = await import('../src/encode.js');
  const rules = makeRules();
  for (let number = 0; number < 4; number++) {
    const table = new Table(rules, number, 0), stream = new Stream(number + 5);
    for (let turn = 0; turn < 25 && table.outcome === OUTCOME.playing; turn++) {
      playOn(table, 1, stream);
      for (const seat of /** @type {const} */ ([0, 1])) {
        const request = table.side(seat).activeRequest;
        if (!table.masks[seat] || !request || table.outcome !== OUTCOME.playing) continue;
        const seen = viewOf(table, seat), fresh = new Uint8Array(VIEW_BYTES);
        const encoder = new SeatEncoder(rules.lexicon, rules.model, table.tracker, seat);
        encoder.encode(request, table.masks[seat], fresh, 0);
        const {at, stride} = place('damage');
        assert.deepEqual(seen.subarray(at, at + stride), fresh.subarray(at, at + stride));
      }
    }
  }
});

test('what is kept of a view is what would be written anew', async () => {
  const {SeatEncoder} = await import('../src/encode.js');
  let compared = 0;
  for (const format of ['gen9randombattle', 'gen9bssfactory', 'gen5randombattle', 'gen4randombattle', 'gen2randombattle', 'gen1randombattle']) {
    const rules = makeRules({format, teams: []});
    for (let number = 0; number < 8; number++) {
      const table = new Table(rules, number, 0), stream = new Stream(number + 11);
      const others = /** @type {const} */ ([0, 1]).map(seat => new SeatEncoder(rules.lexicon, rules.model, table.tracker, seat));
      while (table.outcome === OUTCOME.playing) {
        playOn(table, 1, stream);
        for (let seat = 0; seat < 2; seat++) {
          const request = table.side(seat).activeRequest;
          if (!table.masks[seat] || !request || table.outcome !== OUTCOME.playing) continue;
          const seen = viewOf(table, seat), anew = new Uint8Array(VIEW_BYTES);
          for (const own of others[seat].known.byIdent.values()) own.condition = 'not read yet';
          others[seat].forget();
          others[seat].encode(request, table.masks[seat], anew, 0);
          assert.deepEqual(seen, anew);
          compared++;
        }
      }
    }
  }
  assert.ok(compared > 2000);
});

test('own HP and the public HP of the other side are what the simulator says', () => {
  const table = new Table(makeRules(), 3, 0), stream = new Stream(9);
  for (let turn = 0; turn < 30 && table.outcome === OUTCOME.playing; turn++) {
    playOn(table, 1, stream);
    if (!table.masks[0] || table.outcome !== OUTCOME.playing) continue;
    const seen = viewOf(table, 0), [mine, theirs] = table.battle.sides;
    const hp = (/** @type {number} */ number) => seen[POKEMON.at + number * POKEMON.stride + POKEMON.field.hp] / 255;
    mine.pokemon.forEach((/** @type {any} */ pokemon, /** @type {number} */ i) => {
      assert.ok(Math.abs(hp(i) - pokemon.hp / pokemon.maxhp) < 0.005);
    });
    const foe = /** @type {any} */ (theirs.active[0]);
    if (!foe.illusion) assert.ok(Math.abs(hp(6) - foe.hp / foe.maxhp) < 0.013); // told in percent, kept in a byte
  }
});

test('the mask is in the view, and every open action has words that the simulator takes', () => {
  const table = new Table(makeRules(), 1, 0);
  table.update();
  const seen = viewOf(table, 0), at = TURN.at + TURN.field.mask;
  assert.equal(seen[at] + 256 * seen[at + 1], table.masks[0]);
  for (let action = 0; action < ACTIONS; action++) {
    if (!(table.masks[0] >> action & 1)) continue;
    const copy = new Table(makeRules(), 1, 0);
    copy.update();
    const {activeRequest, id} = copy.side(0);
    assert.ok(activeRequest && copy.battle.choose(id, choiceText(activeRequest, action)), `action ${action}`);
  }
});

test('a trapped Pokémon cannot switch, a reviving one picks from the fainted', () => {
  const member = (/** @type {string} */ condition, active = false, reviving = false) => (
    {ident: 'p1: A', details: 'A', condition, active, stats: {}, moves: [], baseAbility: '', item: '', reviving});
  const team = [member('10/10', true), member('10/10'), member('0 fnt')];
  const moves = [{move: 'A', id: 'a'}, {move: 'B', id: 'b', disabled: true}];
  assert.equal(openActions({active: [{moves, trapped: true}], side: {pokemon: team}}, []), 1);
  assert.equal(openActions({active: [{moves}], side: {pokemon: team}}, []), 1 | 1 << (FIRST_SWITCH + 1));
  const reviving = [member('0 fnt', true, true), member('10/10'), member('0 fnt')];
  assert.equal(openActions({forceSwitch: [true], side: {pokemon: reviving}}, []), 1 << (FIRST_SWITCH + 2));
  assert.equal(openActions({wait: true, side: {pokemon: team}}, []), 0);
});

test('the tracker skips what only one side is told', () => {
  const tracker = new Tracker(new Lexicon(simulator.Dex, simulator.Dex));
  tracker.read(['|split|p1', '|switch|p1a: X|Ditto, L50|77/150', '|switch|p1a: X|Ditto, L50|51/100', '|turn|4']);
  assert.equal(tracker.sides[0].active?.hp, 0.51);
  assert.equal(tracker.turn, 4);
  tracker.read(['|split|p1', '|switch|p1a: X|Ditto, L50|77/150', '|switch|p1a: X|Ditto, L50|51/100', '|turn|4',
    '|-boost|p1a: X|atk|2', '|-damage|p1a: X|20/100 brn|[from] item: Life Orb']);
  assert.equal(tracker.sides[0].active?.boosts[0], 2);
  assert.equal(tracker.sides[0].active?.hp, 0.2);
  assert.ok((tracker.sides[0].active?.item ?? 0) > 1);
});

test('of every part of the reward, what one side gains the other loses', () => {
  const lane = new Lane(makeRules(), [0, 1], [0, 0]), stream = new Stream(4), sums = new Map();
  lane.advance();
  for (let wave = 0; wave < 400 && lane.battles < 2; wave++) {
    lane.play(row => pick(lane.tables[lane.waiting[row][0]].masks[lane.waiting[row][1]], stream));
    for (const table of lane.tables) sums.set(`${table.number}/${table.game}`, table);
    lane.advance();
  }
  const ended = [...sums.values()].filter(table => table.outcome === OUTCOME.terminated);
  assert.ok(ended.length > 0);
  for (const {accounts} of ended) {
    for (let part = 0; part < 4; part++) {
      assert.ok(Math.abs(accounts[0].told[part] + accounts[1].told[part]) < 1e-9);
    }
    assert.equal(Math.abs(accounts[0].told[0]), 1);
  }
});
