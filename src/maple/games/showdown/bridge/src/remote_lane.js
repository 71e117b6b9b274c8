/** Remote tables in waves: whatever waits goes out, as soon as the last wave was answered. */

import {OUTCOME, SEATS} from './account.js';
import {Frame} from './frame.js';
import {RemoteTable} from './remote.js';

/**
 * @typedef {import('./pairs.js').Pairs} Pairs
 * @typedef {import('./listener.js').Listener} Listener
 * @typedef {import('./table.js').Rules} Rules
 */

/** Tables that do not wait for each other. */
export class RemoteLane extends Frame {
  /**
   * @param {Rules} rules @param {number[]} numbers @param {number[]} games the first game of each table
   * @param {Pairs | Listener} venue @param {boolean} both whether both seats are ours @param {() => void} send the wave that is ready
   */
  constructor(rules, numbers, games, venue, both, send) {
    super(numbers.length);
    this.rules = rules;
    this.venue = venue;
    this.both = both;
    this.send = send;
    this.out = false; // whether a wave waits for its answer
    this.planned = false;
    this.failure = ''; // what a view could last not be written for
    this.tables = numbers.map((number, i) => new RemoteTable(rules, number, games[i] ?? 0, both));
    /** @type {import('./protocol.js').ProtocolSeat[]} of each row: while the answer is on its way, another may take its place */
    this.asked = [];
    /** @type {number[]} the game of each row */
    this.games = [];
    /** @type {RemoteTable[]} that are to be told of */
    this.ended = [];
    for (const table of this.tables) venue.seat(table);
  }

  /** A table heard something. @param {RemoteTable} table */
  moved(table) {
    if (!this.tables.includes(table)) return;
    if (table.outcome !== OUTCOME.playing) this.replace(table);
    this.plan();
  }

  /** Give a battle up; whether it was one of this lane's that still went on. @param {RemoteTable} table */
  lost(table) {
    if (!this.tables.includes(table)) return false;
    table.outcome = OUTCOME.lost;
    this.replace(table);
    this.plan();
    return true;
  }

  /** A battle is over: another begins at its table. @param {RemoteTable} table */
  replace(table) {
    this.ended.push(table);
    const next = new RemoteTable(this.rules, table.number, table.game + 1, this.both);
    this.tables[this.tables.indexOf(table)] = next;
    table.leave();
    this.venue.free(table);
    this.venue.seat(next);
  }

  /** Send a wave once everything that has arrived is read. */
  plan() {
    if (this.out || this.planned) return;
    this.planned = true;
    setImmediate(() => {
      this.planned = false;
      this.flush();
    });
  }

  /** Send what waits. Against ourselves, an end waits for a decision to go with it. */
  flush() {
    const waits = this.tables.some(table => table.waits);
    if (this.out || !(waits || (this.ended.length && !this.both))) return;
    this.begin();
    this.asked.length = this.games.length = 0;
    for (const table of this.ended.splice(0, this.tables.length)) this.tell(table);
    const failed = this.tables.filter((table, at) => !this.show(table, at));
    if (failed.length && !this.rows) throw new Error(`no view of any battle can be written: ${this.failure}`);
    for (const table of failed) this.replace(table);
    this.out = true;
    this.send();
  }

  /** Write the record of a finished game; one whose last view cannot be written is lost. @param {RemoteTable} table */
  tell(table) {
    try {
      this.addEnded(table);
    } catch (error) {
      table.lose(0, error);
      this.addEnded(table);
    }
  }

  /** The rows of a table; one that cannot be written costs its battle. @param {RemoteTable} table @param {number} at */
  show(table, at) {
    const {masks} = table, {rows} = this;
    let seat = 0;
    try {
      for (; seat < SEATS; seat++) if (masks[seat]) this.addRow(table, at, seat);
    } catch (error) {
      this.rows = this.waiting.length = rows;
      this.failure = String(error);
      table.lose(seat, error);
      return false;
    }
    for (const [, shown] of this.waiting.slice(rows)) {
      this.asked.push(table.seats[shown]);
      this.games.push(table.game);
    }
    return true;
  }

  /** The answer to the last wave. @param {(row: number) => number} action */
  play(action) {
    this.out = false;
    this.waiting.forEach(([at, seat], row) => {
      const table = this.tables[at], now = table.seats[seat];
      if (now === this.asked[row] && table.masks[seat]) table.play(seat, action(row));
      else if (table.game === this.games[row]) now.decisions++; // the line was cut meanwhile: it is asked again
    });
    this.plan();
  }
}
