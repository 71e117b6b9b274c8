/** The accelerator against the simulator as it is: the same battles, line by line, in every generation. */

import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {test} from 'node:test';

import {accelerate, VERIFIED_FORMATS} from '../src/accelerator.js';
import {pick, Stream} from '../src/random.js';
import {OUTCOME} from '../src/account.js';
import {Table} from '../src/table.js';
import {makeRules, simulator} from './simulator.js';
import {MEADOW, SHORE} from './squads.js';

const BATTLES = Number(process.env.MAPLE_BATTLES ?? 2);

/** The hash of a battle's log, without the hour at which it was played. @param {string} format @param {boolean} fast @param {number} number */
function logHash(format, fast, number) {
  const teams = simulator.Dex.formats.get(format).team ? [] : [{file: 'meadow', text: MEADOW}, {file: 'shore', text: SHORE}];
  const rules = makeRules({format, teams, accelerate: fast, maxTurns: 1000, seed: '11'}), stream = new Stream(number + 1);
  assert.equal(rules.notAccelerated === '', fast, rules.notAccelerated);
  const table = new Table(rules, number, 0);
  for (table.update(); table.outcome === OUTCOME.playing; table.update()) {
    for (let seat = 0; seat < 2; seat++) {
      if (table.masks[seat] && !table.battle.ended) table.play(seat, pick(table.masks[seat], stream));
    }
  }
  const lines = table.battle.log.filter((/** @type {string} */ line) => !line.startsWith('|t:|'));
  assert.ok(lines.length > 20);
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

for (const format of VERIFIED_FORMATS) {
  test(`${format} plays the same battles with and without the accelerator`, () => {
    for (let number = 0; number < BATTLES; number++) {
      assert.equal(logHash(format, true, number), logHash(format, false, number), `battle ${number}`);
    }
  });
}

test('the accelerator stays off, and says why, where it was not verified', () => {
  assert.equal(accelerate(simulator, 'gen9randomdoublesbattle').Battle, simulator.Battle);
  assert.match(accelerate(simulator, 'gen9randomdoublesbattle').reason, /not verified on gen9randomdoublesbattle/);
  const other = {...simulator, version: '0.0.1'};
  assert.equal(accelerate(other, 'gen9randombattle').Battle, simulator.Battle);
  assert.match(accelerate(other, 'gen9randombattle').reason, /pokemon-showdown 0.0.1/);
});

test('an accelerated battle has no more properties than any other', () => {
  const {Battle} = accelerate(simulator, 'gen9randombattle');
  const keys = [Battle, simulator.Battle].map(kind => Object.keys(new kind({formatid: 'gen9randombattle', seed: '1,2,3,4'})));
  assert.deepEqual(keys[0], keys[1]);
});
