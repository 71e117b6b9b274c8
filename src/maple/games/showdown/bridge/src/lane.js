/**
 * A group of tables that is played in waves: all actions in, every battle on to its next decisions, all rows out.
 *
 * A row is a header and a view; a record of a finished game is a header, its figures and, for a game that was cut off,
 * what each seat was left with. Both carry the wave's epoch.
 */

import {OUTCOME, REWARD_PARTS, SEATS, Table} from './table.js';
import {VIEW_BYTES} from './schema.js';

/** @typedef {import('./table.js').Rules} Rules */

export const ROW_HEADER = 32, ROW_BYTES = ROW_HEADER + VIEW_BYTES;
const PARTS = REWARD_PARTS.length;
const ENDED_HEADER = 40 + SEATS * PARTS * 4;
export const ENDED_BYTES = Math.ceil(ENDED_HEADER / 8) * 8 + SEATS * VIEW_BYTES;
const ENDED_VIEWS = ENDED_BYTES - SEATS * VIEW_BYTES;

/** Tables that wait for each other. */
export class Lane {
  /** @param {Rules} rules @param {number[]} numbers @param {number[]} games the first game of each table */
  constructor(rules, numbers, games) {
    this.rules = rules;
    this.tables = numbers.map((number, i) => new Table(rules, number, games[i] ?? 0));
    this.open = this.tables.map(() => true);
    this.retiring = false;
    this.epoch = 0;
    this.rows = 0;
    this.endedRows = 0;
    this.battles = 0;
    /** @type {[number, number][]} table and seat of each row */
    this.waiting = [];
    /** @type {object[]} */
    this.anomalies = [];
    this.refusals = 0;
    this.rowBuffer = Buffer.alloc(numbers.length * SEATS * ROW_BYTES);
    this.endedBuffer = Buffer.alloc(numbers.length * ENDED_BYTES);
    this.u8 = new Uint8Array(this.rowBuffer.buffer, this.rowBuffer.byteOffset, this.rowBuffer.length);
    this.u16 = new Uint16Array(this.rowBuffer.buffer, this.rowBuffer.byteOffset, this.rowBuffer.length >> 1);
    this.lastU8 = new Uint8Array(this.endedBuffer.buffer, this.endedBuffer.byteOffset, this.endedBuffer.length);
    this.lastU16 = new Uint16Array(this.endedBuffer.buffer, this.endedBuffer.byteOffset, this.endedBuffer.length >> 1);
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
    this.epoch++;
    this.rows = this.endedRows = 0;
    this.waiting.length = 0;
    for (let at = 0; at < this.tables.length; at++) {
      if (!this.open[at]) continue;
      const table = this.tables[at];
      this.settle(table);
      if (table.outcome !== OUTCOME.playing) this.finish(table, at);
      if (this.open[at]) this.writeRows(this.tables[at], at);
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
    this.writeEnded(table);
    this.anomalies.push(...table.anomalies);
    this.refusals += table.refusals;
    this.battles++;
    table.end();
    if (this.retiring) {
      this.open[at] = false;
      return;
    }
    this.tables[at] = new Table(this.rules, table.number, table.game + 1);
    this.tables[at].update();
  }

  /** @param {Table} table @param {number} at */
  writeRows(table, at) {
    for (let seat = 0; seat < SEATS; seat++) {
      if (!table.masks[seat]) continue;
      const base = this.rows * ROW_BYTES, buffer = this.rowBuffer;
      buffer.writeUInt32LE(this.epoch, base);
      buffer.writeInt32LE(table.number, base + 4);
      buffer.writeUInt32LE(table.game, base + 8);
      buffer.writeUInt32LE(table.decisions[seat], base + 12);
      buffer.writeFloatLE(table.reward(seat), base + 16);
      buffer.writeUInt32LE(seat, base + 20);
      table.write(seat, this.u8, this.u16, base + ROW_HEADER);
      this.waiting.push([at, seat]);
      this.rows++;
    }
  }

  /** @param {Table} table */
  writeEnded(table) {
    const base = this.endedRows * ENDED_BYTES, buffer = this.endedBuffer;
    buffer.fill(0, base, base + ENDED_BYTES);
    buffer.writeUInt32LE(this.epoch, base);
    buffer.writeInt32LE(table.number, base + 4);
    buffer.writeUInt32LE(table.game, base + 8);
    buffer.writeInt16LE(table.outcome, base + 12);
    buffer.writeInt16LE(table.winner(), base + 14);
    buffer.writeUInt16LE(Math.min(65535, table.battle.turn), base + 16);
    buffer.writeUInt16LE(table.refusals, base + 18);
    for (let seat = 0; seat < SEATS; seat++) {
      buffer.writeFloatLE(table.reward(seat), base + 20 + 4 * seat);
      buffer.writeUInt32LE(table.decisions[seat], base + 28 + 4 * seat);
      for (let part = 0; part < PARTS; part++) {
        const earned = table.accounts[seat].paid[part] * this.rules.weights[part];
        buffer.writeFloatLE(earned, base + 40 + 4 * (seat * PARTS + part));
      }
      if (table.outcome === OUTCOME.truncated && table.masks[seat]) {
        table.write(seat, this.lastU8, this.lastU16, base + ENDED_VIEWS + seat * VIEW_BYTES);
      }
    }
    this.endedRows++;
  }
}
