/** Anomalies happen again from what is kept of them. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {OUTCOME} from '../src/account.js';
import {Lane} from '../src/lane.js';
import {pick, Stream} from '../src/random.js';
import {repeat} from '../src/repeat.js';
import {makeRules, simulator} from './simulator.js';

/** @typedef {import('../src/repeat.js').Anomaly} Anomaly */

/** A lane that has played some waves. @param {number} waves @param {string} [format] */
function played(waves, format = 'gen9randombattle') {
  const lane = new Lane(makeRules({format}), [0, 1], [0, 0]), stream = new Stream(5);
  lane.advance();
  for (let wave = 0; wave < waves; wave++) {
    lane.play(row => pick(lane.tables[lane.waiting[row][0]].masks[lane.waiting[row][1]], stream));
    lane.advance();
  }
  return lane;
}

for (const format of ['gen9randombattle', 'gen1randombattle', 'gen9monotyperandombattle']) {
  test(`${format}: a choice that the mask should not have offered is refused again, in the same words`, () => {
    const table = played(9, format).tables[1], seat = table.masks.findIndex(mask => mask);
    const closed = [...Array(14).keys()].find(action => action >= 8 && !(table.masks[seat] >> action & 1)) ?? 8;
    table.play(seat, closed);
    const [kept] = table.anomalies;
    assert.equal(kept.accelerated, format !== 'gen9monotyperandombattle');
    assert.match(kept.error, /Can't switch/);
    assert.deepEqual(repeat(simulator, JSON.parse(JSON.stringify(kept))), {error: kept.error, repeats: true});
    const {repeats, error} = repeat(simulator, {...kept, choice: 'default'});
    assert.deepEqual([repeats, error], [false, '']);
  });
}

test('a battle in which the simulator fails, fails again at the same place', () => {
  class Fragile extends simulator.Battle {
    turnLoop() {
      if (this.turn === 4) throw new RangeError(`it broke in turn ${this.turn}`);
      /** @type {any} */ (simulator.Battle.prototype).turnLoop.call(this);
    }
  }
  const fragile = {...simulator, Battle: Fragile};
  const rules = makeRules({accelerate: false}, fragile), lane = new Lane(rules, [0, 1], [0, 0]), stream = new Stream(5);
  lane.advance();
  while (!lane.anomalies.length) {
    lane.play(row => pick(lane.tables[lane.waiting[row][0]].masks[lane.waiting[row][1]], stream));
    lane.advance();
  }
  const kept = /** @type {Anomaly} */ (lane.anomalies[0]);
  assert.equal(repeat(fragile, kept).repeats, true);
  assert.deepEqual(repeat(simulator, kept), {error: '', repeats: false});
});

test('a view that cannot be written costs its battle alone, and what is kept of it leads there', () => {
  const lane = played(12), [broken, whole] = lane.tables;
  broken.encoders.forEach(encoder => { encoder.encode = () => { throw new RangeError('no such view'); }; });
  lane.play(row => pick(lane.tables[lane.waiting[row][0]].masks[lane.waiting[row][1]], new Stream(2)));
  lane.advance();
  assert.equal(broken.outcome, OUTCOME.lost);
  assert.ok(lane.waiting.length && lane.waiting.every(([at]) => at === 1));
  assert.equal(lane.rows, lane.waiting.length);
  const kept = /** @type {Anomaly} */ (broken.anomalies[0]);
  assert.match(kept.error, /no such view/);
  assert.deepEqual(repeat(simulator, kept), {error: '', repeats: false}); // the fault was ours, and it is gone
  lane.play(row => pick(lane.tables[lane.waiting[row][0]].masks[lane.waiting[row][1]], new Stream(2)));
  lane.advance();
  assert.deepEqual([lane.tables[0].game, lane.tables[1], lane.endedRows], [1, whole, 1]);
});

test('a lane that can show nothing at all fails as a whole', () => {
  const lane = played(3);
  for (const table of lane.tables) for (const encoder of table.encoders) encoder.encode = () => { throw new Error('none'); };
  assert.throws(() => lane.advance(), /no view of any battle/);
});
