/** `node repeat_main.js MODULES`: anomalies from the standard input, a line each, and what became of them on the output. */

import {readFileSync} from 'node:fs';

import {repeat} from './repeat.js';
import {loadSimulator} from './simulator.js';

const simulator = loadSimulator(process.argv[2] ?? '');
for (const line of readFileSync(0, 'utf8').split('\n')) {
  if (line) console.log(JSON.stringify({simulator: simulator.version, ...repeat(simulator, JSON.parse(line))}));
}
