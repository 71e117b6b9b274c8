/** What the tests share: the simulator from where it is installed, and rules to play by. */

import {loadSimulator} from '../src/simulator.js';
import {Rules} from '../src/table.js';

export const modules = process.env.MAPLE_SHOWDOWN_MODULES ?? '.';
export const simulator = loadSimulator(modules);

/** @param {Partial<import('../src/table.js').Config>} [changes] @param {import('../src/simulator.js').Simulator} [played] */
export function makeRules(changes = {}, played = simulator) {
  return new Rules(played, {
    format: 'gen9randombattle', seed: '3', tablesPerDeal: 1, maxTurns: 300, teamPool: 64, teams: [], accelerate: true,
    ...changes,
  });
}
