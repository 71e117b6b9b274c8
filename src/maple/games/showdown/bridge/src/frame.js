/**
 * What a wave carries: a row for each waiting decision, a record for each finished game.
 *
 * A row is a header and a view; a record of a finished game is a header, its figures and, for a game that was cut off,
 * what each seat was left with. Both carry the wave's epoch.
 */

import {OUTCOME, REWARD_PARTS, SEATS} from './account.js';
import {VIEW_BYTES} from './schema.js';

/**
 * A table as a frame reads it, wherever its battle is played.
 * @typedef {{number: number, game: number, outcome: number, refusals: number, turns: number, masks: number[], decisions: number[],
 *   anomalies: object[], winner(): number, account(seat: number): import('./account.js').Account,
 *   write(seat: number, u8: Uint8Array, at: number): void}} Seen
 */

const PARTS = REWARD_PARTS.length;
const ROW_EARNED = 20, ROW_HEADER = ROW_EARNED + PARTS * 4;
const ENDED_EARNED = 32, ENDED_HEADER = ENDED_EARNED + SEATS * PARTS * 4;
export const ROW_BYTES = ROW_HEADER + VIEW_BYTES, ENDED_BYTES = ENDED_HEADER + SEATS * VIEW_BYTES;
if (ROW_HEADER % 8 || ENDED_HEADER % 8) throw new Error('views have to begin at whole words');

/** The buffers of a lane's waves, and what they count. */
export class Frame {
  /** @param {number} tables */
  constructor(tables) {
    this.epoch = 0;
    this.rows = 0;
    this.endedRows = 0;
    this.battles = 0;
    this.refusals = 0;
    /** @type {[number, number][]} table and seat of each row */
    this.waiting = [];
    /** @type {object[]} */
    this.anomalies = [];
    this.rowBuffer = Buffer.alloc(tables * SEATS * ROW_BYTES);
    this.endedBuffer = Buffer.alloc(tables * ENDED_BYTES);
    this.u8 = new Uint8Array(this.rowBuffer.buffer, this.rowBuffer.byteOffset, this.rowBuffer.length);
    this.f32 = new Float32Array(this.rowBuffer.buffer, this.rowBuffer.byteOffset, this.rowBuffer.length >> 2);
    this.lastF32 = new Float32Array(this.endedBuffer.buffer, this.endedBuffer.byteOffset, this.endedBuffer.length >> 2);
    this.lastU8 = new Uint8Array(this.endedBuffer.buffer, this.endedBuffer.byteOffset, this.endedBuffer.length);
  }

  /** Begin the next wave. */
  begin() {
    this.epoch++;
    this.rows = this.endedRows = 0;
    this.waiting.length = 0;
  }

  /** The waiting decision of a seat. @param {Seen} table @param {number} at its place in the lane @param {number} seat */
  addRow(table, at, seat) {
    const base = this.rows * ROW_BYTES, buffer = this.rowBuffer;
    buffer.writeUInt32LE(this.epoch, base);
    buffer.writeInt32LE(table.number, base + 4);
    buffer.writeUInt32LE(table.game, base + 8);
    buffer.writeUInt32LE(table.decisions[seat], base + 12);
    buffer.writeUInt32LE(seat, base + 16);
    table.account(seat).tell(this.f32, (base + ROW_EARNED) >> 2);
    table.write(seat, this.u8, base + ROW_HEADER);
    this.waiting.push([at, seat]);
    this.rows++;
  }

  /** A finished game. If its last view cannot be written, nothing has happened. @param {Seen} table */
  addEnded(table) {
    const base = this.endedRows * ENDED_BYTES, buffer = this.endedBuffer;
    buffer.fill(0, base, base + ENDED_BYTES);
    for (let seat = 0; seat < SEATS; seat++) {
      if (table.outcome === OUTCOME.truncated && table.masks[seat]) {
        table.write(seat, this.lastU8, base + ENDED_HEADER + seat * VIEW_BYTES);
      }
    }
    buffer.writeUInt32LE(this.epoch, base);
    buffer.writeInt32LE(table.number, base + 4);
    buffer.writeUInt32LE(table.game, base + 8);
    buffer.writeInt16LE(table.outcome, base + 12);
    buffer.writeInt16LE(table.winner(), base + 14);
    buffer.writeUInt16LE(Math.min(65535, table.turns), base + 16);
    buffer.writeUInt16LE(Math.min(65535, table.refusals), base + 18);
    for (let seat = 0; seat < SEATS; seat++) {
      buffer.writeUInt32LE(table.decisions[seat], base + 20 + 4 * seat);
      table.account(seat).tell(this.lastF32, (base + ENDED_EARNED >> 2) + seat * PARTS);
    }
    this.endedRows++;
    this.battles++;
    this.refusals += table.refusals;
    this.anomalies.push(...table.anomalies);
  }
}
