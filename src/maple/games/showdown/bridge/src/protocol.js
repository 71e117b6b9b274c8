/** One seat of a battle as its player hears of it: the lines that a server sends, requests among them. */

import {choose, openActions} from './actions.js';
import {SeatEncoder} from './encode.js';
import {Tracker} from './tracker.js';

/**
 * @typedef {import('./simulator.js').Request & {rqid?: number, side: {id: string}}} Request
 * @typedef {import('./account.js').Standing} Standing
 */

/** Follows a battle for one player, and says what to answer. */
export class ProtocolSeat {
  /** @param {import('./table.js').Rules} rules */
  constructor(rules) {
    this.rules = rules;
    this.tracker = new Tracker(rules.lexicon);
    /** @type {SeatEncoder | null} */
    this.encoder = null;
    this.side = 0;
    /** @type {Request | null} */
    this.request = null;
    this.answered = true;
    this.moved = false; // whether the battle has moved since the last answer, or the last request to wait
    this.ahead = false; // whether the last request was only to wait, and came before the lines that led up to it
    this.refused = 0;
    this.refusals = 0;
    this.decisions = 0;
    this.lastAction = -1;
    /** @type {number[]} */
    this.picked = [];
    /** @type {string | null} who won, '' for a tie, null as long as it goes on */
    this.result = null;
    /** @type {string[]} refusals that the mask should have foreseen */
    this.errors = [];
  }

  /** @param {string} line */
  hear(line) {
    if (line.startsWith('|request|')) this.ask(line.slice(9));
    else if (line.startsWith('|error|')) this.refuse(line.slice(7));
    else if (line.startsWith('|sentchoice|')) this.answered = true; // before the line was cut
    else if (line.startsWith('|win|')) this.result = line.slice(5);
    else if (line === '|tie' || line.startsWith('|tie|')) this.result = '';
    else if (this.tracker.line(line)) this.moved = true;
  }

  /** @param {string} json */
  ask(json) {
    /** @type {Request | null} */
    const request = json ? JSON.parse(json) : null;
    this.request = request;
    this.answered = request === null;
    if (!request) return;
    if (this.ahead) this.moved = false; // what came since then belonged to that request
    this.ahead = !!request.wait && !this.moved;
    if (request.wait) this.moved = false;
    if (!request.update) this.refused = 0;
    if (request.update) this.moved = true; // a correction: nothing else has to come first
    if (!request.teamPreview || request.update) this.picked.length = 0;
    if (!this.encoder) {
      this.side = request.side.id === 'p2' ? 1 : 0;
      this.encoder = new SeatEncoder(this.rules.lexicon, this.rules.model, this.tracker, /** @type {0 | 1} */ (this.side));
    }
  }

  /** The server did not take a choice. @param {string} error */
  refuse(error) {
    if (!error.startsWith('[Invalid choice]') && !error.startsWith('[Unavailable choice]')) return;
    this.refusals++;
    if (this.lastAction >= 0) this.refused |= 1 << this.lastAction;
    this.picked.length = 0;
    // A refusal for a reason that could not be known is followed by a corrected request, which asks again; until then
    // nothing is asked: every other switch of one that is trapped would be refused too. Others are a mask that was wrong.
    if (error.startsWith('[Unavailable')) return;
    this.answered = false;
    this.moved = true;
    this.errors.push(error);
  }

  /** Whether it is this seat's turn to know what it wants. */
  get asked() {
    // Some servers send a request before the lines that lead up to it, some after them.
    return this.request !== null && !this.request.wait && !this.answered && this.moved;
  }

  /** A bit for each open action, 0 where there is nothing to decide. */
  get mask() {
    return this.asked ? openActions(this.request, this.picked) & ~this.refused : 0;
  }

  /** Whether it has to answer but has nothing to choose from. */
  get idle() {
    return this.asked && this.mask === 0;
  }

  /** What to tell the server for an action, '' for nothing yet. @param {number} action -1 for whatever there is */
  answer(action) {
    const request = /** @type {Request} */ (this.request);
    let choice = 'default';
    if (action >= 0) {
      this.decisions++;
      choice = choose(request, this.picked, action);
    }
    if (choice === '') return '';
    this.lastAction = request.teamPreview ? -1 : action;
    this.answered = true;
    this.moved = false;
    return `/choose ${choice}${request.rqid === undefined ? '' : `|${request.rqid}`}`;
  }

  /** Write the view. @param {Uint8Array} u8 @param {number} at */
  write(u8, at) {
    if (!this.request || !this.encoder) return;
    this.encoder.encode(this.request, this.mask, u8, at);
  }

  /** How both sides stand as far as this seat knows, its own first; what was not seen yet is whole. @returns {Standing[]} */
  standing() {
    const sides = [this.tracker.sides[this.side], this.tracker.sides[1 - this.side]];
    return sides.map(({mons, size, appeared, fainted}) => {
      let hp = size - appeared, ill = 0;
      for (const mon of mons) {
        if (mon.name === '' || mon.fainted) continue;
        hp += mon.hp;
        if (mon.status) ill++;
      }
      return {hp, fainted, ill};
    });
  }
}
