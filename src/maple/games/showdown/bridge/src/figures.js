/** What every move of two teams should do to everybody of the other, kept from decision to decision. */

import {place} from './schema.js';

/**
 * @typedef {import('./damage.js').DamageModel} DamageModel
 * @typedef {import('./damage.js').Fighter} Fighter
 * @typedef {import('./mon.js').Mon} Mon
 * @typedef {import('./own.js').Own} Own
 * @typedef {import('./tracker.js').Tracker} Tracker
 */

const DAMAGE = place('damage');
const TEAM = 6, MOVES = 4, PAIRS = TEAM * TEAM;
const DEALT = DAMAGE.field.dealt + DAMAGE.at, TAKEN = DAMAGE.field.taken + DAMAGE.at;

/** @param {number} share @param {number} scale */
export function byte(share, scale) {
  return Math.min(255, Math.round(share * scale));
}

/** Expected shares of full HP, by the ids of both. */
export class Figures {
  /** @param {DamageModel} model @param {Tracker} tracker @param {0 | 1} seat */
  constructor(model, tracker, seat) {
    this.model = model;
    this.tracker = tracker;
    this.seat = seat;
    this.dealt = new Float32Array(PAIRS * MOVES); // own × move × foe
    this.taken = new Float32Array(PAIRS * MOVES); // foe × move × own
    this.dealtBytes = new Uint8Array(PAIRS * MOVES); // the same as they are written
    this.takenBytes = new Uint8Array(PAIRS * MOVES);
    this.byOwn = new Int32Array(PAIRS).fill(-1); // what a pair's figures were made of
    this.byFoe = new Int32Array(PAIRS).fill(-1);
    this.byField = new Int32Array(PAIRS).fill(-1);
  }

  /** Bring a pair up to date; whether it was not. @param {Own} own @param {Mon} foe @param {Fighter} fighter the foe as far as is known */
  update(own, foe, fighter) {
    const pair = own.id * TEAM + foe.id, {model, tracker} = this, field = tracker.revision;
    if (this.byOwn[pair] === own.revision && this.byFoe[pair] === foe.revision && this.byField[pair] === field) return false;
    const mine = tracker.sides[this.seat], theirs = tracker.sides[this.seat === 0 ? 1 : 0];
    for (let m = 0; m < own.moves.length; m++) {
      const at = (own.id * MOVES + m) * TEAM + foe.id;
      this.dealt[at] = model.share(own.fighter, fighter, own.moves[m], tracker, theirs);
      this.dealtBytes[at] = byte(this.dealt[at], 128);
    }
    for (let m = 0; m < foe.moves.length; m++) {
      const at = (foe.id * MOVES + m) * TEAM + own.id;
      this.taken[at] = model.share(fighter, own.fighter, foe.moves[m], tracker, mine);
      this.takenBytes[at] = byte(this.taken[at], 128);
    }
    this.byOwn[pair] = own.revision;
    this.byFoe[pair] = foe.revision;
    this.byField[pair] = field;
    return true;
  }

  /** A pair's figures in a view, by their places in it. @param {Uint8Array} u8 @param {Own} own @param {number} i @param {Mon} foe @param {number} j */
  write(u8, own, i, foe, j) {
    for (let m = 0; m < MOVES; m++) {
      u8[DEALT + (i * MOVES + m) * TEAM + j] = this.dealtBytes[(own.id * MOVES + m) * TEAM + foe.id];
      u8[TAKEN + (j * MOVES + m) * TEAM + i] = this.takenBytes[(foe.id * MOVES + m) * TEAM + own.id];
    }
  }

  /** The most that a move of one's own should do. @param {Own} own @param {Mon} foe */
  best(own, foe) {
    return most(this.dealt, own.id, foe.id);
  }

  /** The most that a known move of theirs should do. @param {Own} own @param {Mon} foe */
  worst(own, foe) {
    return most(this.taken, foe.id, own.id);
  }
}

/** @param {Float32Array} shares @param {number} from @param {number} to */
function most(shares, from, to) {
  let found = 0;
  for (let m = 0; m < MOVES; m++) found = Math.max(found, shares[(from * MOVES + m) * TEAM + to]);
  return found;
}
