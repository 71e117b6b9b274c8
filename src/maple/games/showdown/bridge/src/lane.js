/** A group of tables that is played in waves: all actions in, every battle on to its next decisions, all rows out. */

import {OUTCOME, SEATS} from './account.js';
import {Frame} from './frame.js';
import {Table} from './table.js';
import {publicLines} from './tracker.js';

/** @typedef {import('./table.js').Rules} Rules */

const MOST_BARREN = 8; // battles that a table loses one after the other before anybody could decide anything

/** Tables that wait for each other. */
export class Lane extends Frame {
  /** @param {Rules} rules @param {number[]} numbers @param {number[]} games the first game of each table */
  constructor(rules, numbers, games) {
    super(numbers.length);
    this.rules = rules;
    this.tables = numbers.map((number, i) => new Table(rules, number, games[i] ?? 0));
    this.open = this.tables.map(() => true);
    this.barren = this.tables.map(() => 0); // battles in a row that were lost before their first decision
    this.failure = ''; // what a battle was last lost to
    this.retiring = false;
    /** @type {object[]} logs of finished battles, where they are wanted */
    this.records = [];
  }

  /** Play an action for each row of the last wave. @param {(row: number) => number} action */
  play(action) {
    for (let row = 0; row < this.waiting.length; row++) {
      const [at, seat] = this.waiting[row];
      const table = this.tables[at];
      if (table.outcome !== OUTCOME.playing) continue;
      try {
        table.play(seat, action(row));
      } catch (error) {
        this.lose(table, seat, error);
      }
    }
  }

  /** Something failed in a battle: it is lost, the others go on. @param {Table} table @param {number} seat @param {unknown} error */
  lose(table, seat, error) {
    this.failure = error instanceof Error ? error.stack ?? error.message : String(error);
    table.remember('crashed', seat, '', this.failure);
    table.outcome = OUTCOME.lost;
  }

  /** Bring every battle to its next decisions and write them. */
  advance() {
    let open = 0, unseen = 0;
    this.begin();
    for (let at = 0; at < this.tables.length; at++) {
      if (!this.open[at]) continue;
      const table = this.tables[at];
      this.settle(table);
      if (table.outcome !== OUTCOME.playing) this.finish(table, at);
      if (!this.open[at]) continue;
      open++;
      if (!this.show(at)) unseen++;
    }
    if (unseen && unseen === open) throw new Error(`no view of any battle can be written: ${this.failure}`);
  }

  /** The rows of a table; one that cannot be written costs its battle, which ends with the next wave. @param {number} at */
  show(at) {
    const table = this.tables[at], {rows} = this;
    if (table.outcome === OUTCOME.lost) return false;
    try {
      for (let seat = 0; seat < SEATS; seat++) if (table.masks[seat]) this.addRow(table, at, seat);
      return true;
    } catch (error) {
      this.rows = this.waiting.length = rows;
      this.lose(table, 0, error);
      return false;
    }
  }

  /** Begin it if it is new, and find out what it waits for. @param {Table} table */
  settle(table) {
    if (table.outcome === OUTCOME.lost) return;
    try {
      table.update();
    } catch (error) {
      this.lose(table, 0, error);
    }
  }

  /** Record a finished game and begin the next. @param {Table} table @param {number} at */
  finish(table, at) {
    this.tell(table);
    if (this.rules.config.record) {
      this.records.push({kind: 'record', table: table.number, game: table.game, lines: publicLines(table.battle.log)});
    }
    table.end();
    if (this.retiring) {
      this.open[at] = false;
      return;
    }
    this.barren[at] = table.outcome === OUTCOME.lost && !table.decisions.some(count => count) ? this.barren[at] + 1 : 0;
    if (this.barren[at] === MOST_BARREN) {
      throw new Error(`${MOST_BARREN} battles in a row failed at table ${table.number} before their first decision: ${this.failure}`);
    }
    this.tables[at] = new Table(this.rules, table.number, table.game + 1);
    this.settle(this.tables[at]);
  }

  /** Write the record of a finished game; one whose last view cannot be written is lost. @param {Table} table */
  tell(table) {
    try {
      this.addEnded(table);
    } catch (error) {
      this.lose(table, 0, error);
      this.addEnded(table);
    }
  }
}
