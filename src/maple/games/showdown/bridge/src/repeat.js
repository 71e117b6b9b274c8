/** An anomaly once more, from what was kept of it. */

import {accelerate} from './accelerator.js';
import {SEATS} from './account.js';
import {openActions} from './actions.js';
import {DamageModel} from './damage.js';
import {SeatEncoder} from './encode.js';
import {Lexicon} from './lexicon.js';
import {VIEW_BYTES} from './schema.js';
import {Tracker} from './tracker.js';

/**
 * What is kept of an anomaly: everything that the simulator was told up to it, and then the choice that it refused.
 * @typedef {{kind: string, format: string, simulator: string, accelerated: boolean, table: number, game: number, seat: number,
 *   choice: string, error: string, input: string[]}} Anomaly
 * @typedef {import('./simulator.js').Battle} Battle
 * @typedef {import('./simulator.js').Simulator} Simulator
 */

/** A battle that is told again what it was told before, and what its seats see of it. */
class Rerun {
  /** @param {Simulator} simulator @param {Anomaly} anomaly */
  constructor(simulator, {format, accelerated}) {
    const {Dex} = simulator, lexicon = new Lexicon(Dex, Dex.forFormat(Dex.formats.get(format))), model = new DamageModel(lexicon);
    this.Battle = accelerated ? accelerate(simulator, format).Battle : simulator.Battle;
    /** @type {Battle | null} */
    this.battle = null;
    this.tracker = new Tracker(lexicon);
    this.encoders = [new SeatEncoder(lexicon, model, this.tracker, 0), new SeatEncoder(lexicon, model, this.tracker, 1)];
    this.u8 = new Uint8Array(VIEW_BYTES);
  }

  /** @param {string} line of an input log */
  tell(line) {
    const [, kind, rest] = /** @type {string[]} */ (/^>(\S+) ?(.*)$/.exec(line));
    if (kind === 'start') this.battle = new this.Battle(JSON.parse(rest));
    else if (kind === 'player') /** @type {any} */ (this.battle).setPlayer(rest.slice(0, 2), JSON.parse(rest.slice(3)));
    else if (kind === 'p1' || kind === 'p2') this.choose(kind, rest);
  }

  /** Whether the simulator takes a choice, in sight of both seats. @param {string} side @param {string} choice */
  choose(side, choice) {
    this.look();
    return /** @type {Battle} */ (this.battle).choose(side, choice);
  }

  /** Write what the seats see: that may be what failed. */
  look() {
    const battle = /** @type {Battle} */ (this.battle);
    this.tracker.read(battle.log);
    for (let seat = 0; seat < SEATS; seat++) {
      const request = battle.sides[seat].activeRequest, mask = openActions(request, []);
      if (request && mask) this.encoders[seat].encode(request, mask, this.u8, 0);
    }
  }
}

/**
 * Let it happen again. Says what went wrong this time, '' for nothing, and whether that is what was kept.
 * @param {Simulator} simulator @param {Anomaly} anomaly @returns {{error: string, repeats: boolean}}
 */
export function repeat(simulator, anomaly) {
  const rerun = new Rerun(simulator, anomaly), {kind, seat, choice} = anomaly;
  try {
    for (const line of anomaly.input) rerun.tell(line);
    if (kind === 'refused') {
      const side = /** @type {Battle} */ (rerun.battle).sides[seat], taken = rerun.choose(side.id, choice);
      const error = taken ? '' : side.choice.error;
      return {error, repeats: error === anomaly.error};
    }
    rerun.look();
    return {error: '', repeats: false};
  } catch (error) {
    const found = error instanceof Error ? error.stack ?? error.message : String(error);
    return {error: found, repeats: kind === 'crashed' && firstLine(found) === firstLine(anomaly.error)};
  }
}

/** @param {string} text */
function firstLine(text) {
  return text.split('\n', 1)[0];
}
