/** What a lane keeps of battles that are over, and what it loses to those that fail at their beginning or their end. */

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';

import {OUTCOME} from '../src/account.js';
import {ENDED_BYTES} from '../src/frame.js';
import {Lane} from '../src/lane.js';
import {pick, Stream} from '../src/random.js';
import {repeat} from '../src/repeat.js';
import {makeRules, simulator} from './simulator.js';

const BATTLES = 30;

/** One wave, at random. @param {Lane} lane @param {Stream} stream */
function wave(lane, stream) {
  lane.play(row => {
    const [at, seat] = lane.waiting[row];
    return pick(lane.tables[at].masks[seat], stream);
  });
  lane.advance();
}

/** The games that ended with the last wave: table, game and outcome. @param {Lane} lane */
function ended(lane) {
  return [...Array(lane.endedRows).keys()].map(row => {
    const {endedBuffer} = lane, base = row * ENDED_BYTES;
    return [endedBuffer.readInt32LE(base + 4), endedBuffer.readUInt32LE(base + 8), endedBuffer.readInt16LE(base + 12)];
  });
}

/** Rules by which some battles cannot begin. @param {(deal: number, game: number) => boolean} fails */
function fragile(fails) {
  const rules = makeRules({maxTurns: 2}), {teams} = rules, draw = teams.draw.bind(teams);
  let broken = false;
  teams.draw = (deal, game, seat) => {
    broken = fails(deal, game);
    return draw(deal, game, seat);
  };
  rules.Battle = class extends rules.Battle {
    /** @param {object} options */
    constructor(options) {
      if (broken) throw new RangeError('it cannot begin');
      super(options);
    }
  };
  return rules;
}

test('finished battles are let go', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const lane = new Lane(makeRules({maxTurns: 6}), [0, 1], [0, 0]), stream = new Stream(3);
  /** @type {Set<WeakRef<object>>} */
  const seen = new Set();
  let last = lane.tables.map(table => table.game);
  lane.advance();
  for (const table of lane.tables) seen.add(new WeakRef(table.battle));
  while (lane.battles < BATTLES) {
    wave(lane, stream);
    lane.tables.forEach((table, at) => {
      if (table.game !== last[at]) seen.add(new WeakRef(table.battle));
    });
    last = lane.tables.map(table => table.game);
  }
  await new Promise(resolve => { setTimeout(resolve, 0); }); // a WeakRef holds what it pointed to until the turn is over
  collect();
  assert.ok(seen.size > BATTLES);
  const left = [...seen].filter(battle => battle.deref()).length;
  assert.ok(left <= lane.tables.length + 1, `${left} are left`); // those under way, and whichever the simulator looked at last
  assert.equal(lane.records.length + lane.anomalies.length, 0);
});

test('a last view that cannot be written costs its battle alone', () => {
  const lane = new Lane(makeRules({maxTurns: 6}), [0, 1], [0, 0]), stream = new Stream(3), [broken, whole] = lane.tables;
  lane.advance();
  for (const encoder of broken.encoders) {
    const encode = encoder.encode.bind(encoder);
    encoder.encode = (...given) => {
      if (broken.outcome === OUTCOME.truncated) throw new RangeError('no last view');
      encode(...given);
    };
  }
  /** @type {Map<number, number[]>} */
  const found = new Map();
  while (found.size < 2) {
    wave(lane, stream);
    for (const [table, ...end] of ended(lane)) if (!found.has(table)) found.set(table, end);
  }
  assert.deepEqual([...found].sort(), [[0, [0, OUTCOME.lost]], [1, [0, OUTCOME.truncated]]]);
  assert.ok(whole.turns > 6);
  const [kept, ...others] = /** @type {import('../src/repeat.js').Anomaly[]} */ (lane.anomalies);
  assert.deepEqual([kept.kind, kept.table, kept.game, others], ['crashed', 0, 0, []]);
  assert.match(kept.error, /no last view/);
  assert.ok(kept.input.length > 3);
});

test('battles that cannot begin are lost one by one, and the others go on', () => {
  const lane = new Lane(fragile((deal, game) => deal === 0 && [0, 2, 3].includes(game)), [0, 1], [0, 0]), stream = new Stream(3);
  lane.advance();
  assert.deepEqual(ended(lane), [[0, 0, OUTCOME.lost]]);
  assert.deepEqual(lane.tables.map(table => table.game), [1, 0]);
  const seen = [];
  while (lane.tables[0].game < 5) {
    wave(lane, stream);
    assert.ok(lane.rows);
    seen.push(...ended(lane).filter(([table]) => table === 0));
  }
  assert.deepEqual(seen, [[0, 1, OUTCOME.truncated], [0, 2, OUTCOME.lost], [0, 3, OUTCOME.lost], [0, 4, OUTCOME.truncated]]);
  const kept = /** @type {import('../src/repeat.js').Anomaly[]} */ (lane.anomalies);
  assert.deepEqual(kept.map(({kind, table, game}) => [kind, table, game]), [['crashed', 0, 0], ['crashed', 0, 2], ['crashed', 0, 3]]);
  const Broken = class extends simulator.Battle {
    /** @param {object} options */
    constructor(options) {
      super(options);
      throw new RangeError('it cannot begin');
    }
  };
  assert.equal(repeat({...simulator, Battle: Broken}, {...kept[0], accelerated: false}).repeats, true);
  assert.deepEqual(repeat(simulator, kept[0]), {error: '', repeats: false});
});

test('a table whose battles never begin fails in the end, with what they failed of', () => {
  const lane = new Lane(fragile(deal => deal === 0), [0, 1], [0, 0]), stream = new Stream(3);
  lane.advance();
  assert.throws(() => {
    for (let i = 0; i < 30; i++) wave(lane, stream);
  }, /8 battles in a row failed at table 0 before their first decision: RangeError: it cannot begin/);
  assert.throws(() => new Lane(fragile(() => true), [0, 1], [0, 0]).advance(), /it cannot begin/);
});
