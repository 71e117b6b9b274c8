/** A group of tables that is played in waves: all actions in, every battle on to its next decisions, all rows out. */

import {OUTCOME, SEATS} from './account.js';
import {Frame} from './frame.js';
import {Table} from './table.js';
import {publicLines} from './tracker.js';

/** @typedef {import('./table.js').Rules} Rules */

/** Tables that wait for each other. */
export class Lane extends Frame {
  /** @param {Rules} rules @param {number[]} numbers @param {number[]} games the first game of each table */
  constructor(rules, numbers, games) {
    super(numbers.length);
    this.rules = rules;
    this.tables = numbers.map((number, i) => new Table(rules, number, games[i] ?? 0));
    this.open = this.tables.map(() => true);
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

  /** The simulator failed in the middle of a battle: it is lost, the others go on. @param {Table} table @param {number} seat @param {unknown} error */
  lose(table, seat, error) {
    table.remember('crashed', seat, '', error instanceof Error ? error.stack ?? error.message : String(error));
    table.outcome = OUTCOME.lost;
  }

  /** Bring every battle to its next decisions and write them. */
  advance() {
    let unseen = 0;
    this.begin();
    for (let at = 0; at < this.tables.length; at++) {
      if (!this.open[at]) continue;
      const table = this.tables[at];
      this.settle(table);
      if (table.outcome !== OUTCOME.playing) this.finish(table, at);
      if (this.open[at] && !this.show(at)) unseen++;
    }
    if (unseen === this.tables.length) throw new Error('no view of any battle can be written');
  }

  /** The rows of a table; one that cannot be written costs its battle, which ends with the next wave. @param {number} at */
  show(at) {
    const table = this.tables[at], {rows} = this;
    try {
      for (let seat = 0; seat < SEATS; seat++) if (table.masks[seat]) this.addRow(table, at, seat);
      return true;
    } catch (error) {
      this.rows = this.waiting.length = rows;
      this.lose(table, 0, error);
      return false;
    }
  }

  /** @param {Table} table */
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
    this.addEnded(table);
    if (this.rules.config.record) {
      this.records.push({kind: 'record', table: table.number, game: table.game, lines: publicLines(table.battle.log)});
    }
    table.end();
    if (this.retiring) {
      this.open[at] = false;
      return;
    }
    this.tables[at] = new Table(this.rules, table.number, table.game + 1);
    this.tables[at].update();
  }
}
