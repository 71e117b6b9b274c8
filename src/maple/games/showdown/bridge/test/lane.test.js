/** What a lane keeps of battles that are over: nothing. */

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';

import {Lane} from '../src/lane.js';
import {pick, Stream} from '../src/random.js';
import {makeRules} from './simulator.js';

const BATTLES = 30;

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
    lane.play(row => {
      const [at, seat] = lane.waiting[row];
      return pick(lane.tables[at].masks[seat], stream);
    });
    lane.advance();
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
