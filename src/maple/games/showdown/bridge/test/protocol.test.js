/** A player's own lines against the simulator beside it: the same views, decision for decision. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {OUTCOME} from '../src/account.js';
import {pick, Stream} from '../src/random.js';
import {ProtocolSeat} from '../src/protocol.js';
import {RemoteTable} from '../src/remote.js';
import {RemoteLane} from '../src/remote_lane.js';
import {place, schema, VIEW_BYTES} from '../src/schema.js';
import {Table} from '../src/table.js';
import {makeRules, simulator} from './simulator.js';
import {MEADOW, SHORE} from './squads.js';

const BATTLES = Number(process.env.MAPLE_BATTLES ?? 3);

/** What a server sends to a player of the lines that were added. @param {string[]} log @param {number} from @param {number} seat */
function linesFor(log, from, seat) {
  const lines = [];
  for (let at = from; at < log.length; at++) {
    if (log[at].startsWith('|split|')) {
      lines.push(log[at].endsWith(`p${seat + 1}`) ? log[at + 1] : log[at + 2]);
      at += 2;
    } else {
      lines.push(log[at]);
    }
  }
  return lines.filter(line => line);
}

/** Where two views differ, by the schema's names. @param {Uint8Array} a @param {Uint8Array} b */
function differences(a, b) {
  const found = [];
  for (const {name, repeat, fields} of schema.groups) {
    const {at, stride, field} = place(name);
    for (let i = 0; i < repeat; i++) {
      for (const {name: inner, type, count} of fields) {
        const first = at + i * stride + field[inner], length = (count ?? 1) * (type === 'u16' ? 2 : 1);
        if (a.subarray(first, first + length).some((value, k) => value !== b[first + k])) found.push(`${name}[${i}].${inner}`);
      }
    }
  }
  return found;
}

/** @param {(u8: Uint8Array, at: number) => void} write */
function viewBy(write) {
  const u8 = new Uint8Array(VIEW_BYTES);
  write(u8, 0);
  return u8;
}

/** @param {string} format @param {boolean} requestFirst @param {number} number @returns {number} decisions compared */
function compare(format, requestFirst, number) {
  const teams = simulator.Dex.formats.get(format).team ? [] : [{file: 'meadow', text: MEADOW}, {file: 'shore', text: SHORE}];
  const table = new Table(makeRules({format, teams, seed: '29'}), number, 0), stream = new Stream(number + 1);
  const seats = [new ProtocolSeat(table.rules), new ProtocolSeat(table.rules)], told = [0, 0];
  /** @type {(object | null)[]} */
  const requested = [null, null];
  let compared = 0;
  for (table.update(); table.outcome === OUTCOME.playing; table.update()) {
    for (const seat of [0, 1]) {
      const request = table.side(seat).activeRequest, lines = linesFor(table.battle.log, told[seat], seat);
      const fresh = request && request !== requested[seat] ? [`|request|${JSON.stringify(request)}`] : [];
      const [first, second] = requestFirst ? [fresh, lines] : [lines, fresh];
      for (const line of first) seats[seat].hear(line);
      if (second.length && !request?.update) assert.equal(seats[seat].asked, false, `asked with half of what there is to know: ${first[0]}`);
      for (const line of second) seats[seat].hear(line);
      told[seat] = table.battle.log.length;
      requested[seat] = request;
      if (!table.masks[seat]) continue;
      const expected = viewBy((u8, at) => table.write(seat, u8, at));
      const seen = viewBy((u8, at) => seats[seat].write(u8, at));
      assert.deepEqual(differences(expected, seen), [], `${format}, battle ${number}, turn ${table.battle.turn}, seat ${seat}`);
      assert.equal(seats[seat].mask, table.masks[seat]);
      compared++;
    }
    const masks = [...table.masks];
    for (const seat of [0, 1]) {
      if (!masks[seat] || table.battle.ended) continue;
      const action = pick(masks[seat], stream), before = table.refusals;
      seats[seat].answer(action);
      table.play(seat, action);
      if (table.refusals > before) {
        const {activeRequest, choice} = table.side(seat);
        seats[seat].hear(`|error|[${activeRequest?.update ? 'Unavailable' : 'Invalid'} choice] ${choice.error}`);
        requested[seat] = null;
      }
    }
  }
  for (const seat of [0, 1]) {
    for (const line of linesFor(table.battle.log, told[seat], seat)) seats[seat].hear(line);
    const winner = table.winner();
    if (table.outcome === OUTCOME.terminated) assert.equal(seats[seat].result, winner < 0 ? '' : ['First', 'Second'][winner]);
    const [mine, theirs] = seats[seat].standing();
    for (const [side, standing] of [[seat, mine], [1 - seat, theirs]]) {
      const all = table.side(/** @type {number} */ (side)).pokemon;
      assert.equal(/** @type {any} */ (standing).fainted, all.filter(pokemon => pokemon.fainted).length);
    }
  }
  return compared;
}

for (const format of ['gen9randombattle', 'gen9ou', 'gen9bssfactory', 'gen8randombattle', 'gen7randombattle', 'gen4randombattle', 'gen1randombattle']) {
  for (const requestFirst of [false, true]) {
    test(`${format}: views from a player's lines are the simulator's${requestFirst ? ', whatever comes first' : ''}`, () => {
      let compared = 0;
      for (let number = 0; number < BATTLES; number++) compared += compare(format, requestFirst, number);
      assert.ok(compared > 20 * BATTLES);
    });
  }
}

test('a server has its time to answer from our answer on, however long that took', () => {
  const table = new RemoteTable(makeRules({}), 0, 0, true), [seat] = table.seats;
  table.heard = 0;
  seat.answer = () => '';
  table.play(0, 0);
  assert.ok(Date.now() - table.heard < 60_000);
});

test('after a refusal that nobody could foresee nothing is asked until the corrected request is there', () => {
  const table = new Table(makeRules({}), 0, 0), seat = new ProtocolSeat(table.rules);
  table.update();
  const request = JSON.parse(JSON.stringify(table.side(0).activeRequest));
  for (const line of [`|request|${JSON.stringify(request)}`, ...linesFor(table.battle.log, 0, 0)]) seat.hear(line);
  assert.ok(seat.asked && seat.mask >> 9);
  seat.answer(9);
  seat.hear("|error|[Unavailable choice] Can't switch: The active Pokémon is trapped");
  assert.equal(seat.asked, false);
  const active = [{...request.active[0], trapped: true}];
  seat.hear(`|request|${JSON.stringify({...request, active, update: true})}`);
  assert.ok(seat.asked);
  assert.equal(seat.mask >> 8, 0);
  assert.deepEqual([seat.refusals, seat.errors], [1, []]);
  seat.answer(0);
  seat.hear("|error|[Invalid choice] Can't move: something that the mask should have known");
  assert.ok(seat.asked && !(seat.mask & 1));
  assert.equal(seat.errors.length, 1);
});

/** A venue where battles never begin by themselves. */
function venue() {
  return {seat() {}, free() {}};
}

/** A table of a lane that has heard the first lines of a battle. @param {RemoteLane} lane @param {number} at */
function inBattle(lane, at) {
  const table = lane.tables[at], real = new Table(lane.rules, at, 0);
  real.update();
  table.room = `battle-${at}`;
  table.users = /** @type {any} */ ([{name: 'p1', send() {}}, {name: 'p2', send() {}}]);
  for (const seat of [0, 1]) {
    table.hear(seat, linesFor(real.battle.log, 0, seat));
    table.hear(seat, [`|request|${JSON.stringify(real.battle.sides[seat].activeRequest)}`]);
  }
  return table;
}

test('a remote battle that cannot be read or seen is lost alone', () => {
  let waves = 0;
  const lane = new RemoteLane(makeRules(), [0, 1, 2], [0, 0, 0], /** @type {any} */ (venue()), true, () => { waves++; });
  const [deaf, blind, whole] = [0, 1, 2].map(at => inBattle(lane, at));
  deaf.seats[0].hear = () => { throw new RangeError('no such line'); };
  deaf.hear(0, ['|turn|2']);
  lane.moved(deaf);
  blind.seats[1].write = () => { throw new RangeError('no view'); };
  lane.flush();
  assert.equal(waves, 1);
  assert.deepEqual(lane.waiting, [[2, 0], [2, 1]]);
  assert.deepEqual(lane.asked, whole.seats);
  assert.deepEqual([deaf, blind].map(({outcome}) => outcome), [OUTCOME.lost, OUTCOME.lost]);
  assert.deepEqual(lane.tables.map(({game}) => game), [1, 1, 0]);
  assert.equal(lane.endedRows, 1); // the one that could not be seen is told of with the next wave
  lane.out = false;
  lane.flush();
  assert.equal(lane.endedRows, 1);
  const kinds = lane.anomalies.map(anomaly => /** @type {any} */ (anomaly)).map(({kind, error}) => [kind, error.includes('RangeError')]);
  assert.deepEqual(kinds, [['crashed', true], ['crashed', true]]);
});
