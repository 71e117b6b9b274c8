/**
 * How a bridge process talks to its owner: blocking reads of commands from one descriptor, answers on another.
 *
 * Rows go into a block of memory that the owner shares by descriptor, one write a wave; the answer is then only a
 * doorbell. Where there is no such block, they follow the answer through the pipe.
 */

import {read, readSync, writeSync} from 'node:fs';

import {ENDED_BYTES, ROW_BYTES} from './frame.js';

export const COMMAND = {configure: 0, assign: 1, act: 2, retire: 3, stop: 4, play: 5};
export const ANSWER = {ready: 0, wave: 2, note: 3, failed: 4, played: 5, alive: 6};
const COMMAND_BYTES = 16, ANSWER_BYTES = 48;

/** @typedef {{kind: number, lane: number, epoch: number, body: Buffer}} Command */

/** Both directions of the pipe, and the shared block. */
export class Channel {
  /** @param {number} input @param {number} output @param {number} block a descriptor, or -1 for none */
  constructor(input, output, block) {
    this.input = input;
    this.output = output;
    this.block = block;
    this.muted = false; // once nobody listens any more
    this.head = Buffer.alloc(COMMAND_BYTES);
    this.answer = Buffer.alloc(ANSWER_BYTES);
  }

  /** Wait for the next command; null once the owner is gone. @returns {Command | null} */
  next() {
    return this.fill(this.head) ? this.rest() : null;
  }

  /** The same, and meanwhile do some work again and again, until it answers false. @param {() => boolean} work @returns {Promise<Command | null>} */
  async nextDuring(work) {
    let count = -1;
    const arrival = this.begin().then(found => { count = found; });
    while (count < 0 && work()) await new Promise(resolve => { setImmediate(resolve); });
    await arrival;
    return count > 0 && this.fill(this.head, count) ? this.rest() : null;
  }

  /** The first bytes of the next command, read by another thread. @returns {Promise<number>} */
  begin() {
    return new Promise((resolve, reject) => {
      read(this.input, this.head, 0, COMMAND_BYTES, null, (error, count) => {
        if (error) reject(error);
        else resolve(count);
      });
    });
  }

  /** The command whose head was read; null where the owner went in the middle of it. @returns {Command | null} */
  rest() {
    const [kind, lane, epoch, length] = [0, 4, 8, 12].map(at => this.head.readUInt32LE(at));
    const body = Buffer.alloc(length ?? 0);
    if (length && !this.fill(body)) return null;
    return {kind: kind ?? 0, lane: lane ?? 0, epoch: epoch ?? 0, body};
  }

  /** Whether it was filled to its end. @param {Buffer} buffer @param {number} at where to begin */
  fill(buffer, at = 0) {
    while (at < buffer.length) {
      const count = readSync(this.input, buffer, at, buffer.length - at, null);
      if (count === 0) return false;
      at += count;
    }
    return true;
  }

  /** Send it; an owner that is gone ends the commands too, so there is time to leave in order. @param {Buffer} buffer @param {number} length */
  send(buffer, length) {
    let at = 0;
    try {
      while (at < length && !this.muted) at += writeSync(this.output, buffer, at, length - at, null);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPIPE') throw error;
      this.muted = true;
    }
  }

  /** @param {number} kind @param {object} content */
  tell(kind, content) {
    const body = Buffer.from(JSON.stringify(content));
    this.answer.fill(0);
    this.answer.writeUInt32LE(kind, 0);
    this.answer.writeUInt32LE(body.length, 4);
    this.send(this.answer, ANSWER_BYTES);
    this.send(body, body.length);
  }

  /**
   * One wave: rows and finished games, then the doorbell.
   * @param {number} number the lane's @param {import('./frame.js').Frame} lane @param {number} at where its area of the block begins
   * @param {number} memory in MiB
   */
  wave(number, lane, at, memory) {
    const rows = lane.rows * ROW_BYTES, ended = lane.endedRows * ENDED_BYTES, {answer} = this;
    if (this.block >= 0) {
      if (rows) writeAll(this.block, lane.rowBuffer, rows, at);
      if (ended) writeAll(this.block, lane.endedBuffer, ended, at + lane.rowBuffer.length);
    }
    answer.writeUInt32LE(ANSWER.wave, 0);
    answer.writeUInt32LE(this.block >= 0 ? 0 : rows + ended, 4);
    [number, lane.epoch, lane.rows, lane.endedRows, lane.battles, lane.refusals, memory].forEach((value, i) => {
      answer.writeUInt32LE(value, 8 + 4 * i);
    });
    this.send(answer, ANSWER_BYTES);
    if (this.block < 0) {
      if (rows) this.send(lane.rowBuffer, rows);
      if (ended) this.send(lane.endedBuffer, ended);
    }
  }
}

/** Commands from a stream that comes in pieces. */
export class CommandReader {
  constructor() {
    this.kept = Buffer.alloc(0);
  }

  /** The commands that are complete with this piece. @param {Buffer} piece @returns {Command[]} */
  read(piece) {
    this.kept = Buffer.concat([this.kept, piece]);
    const found = [];
    while (this.kept.length >= COMMAND_BYTES) {
      const [kind, lane, epoch, length] = [0, 4, 8, 12].map(at => this.kept.readUInt32LE(at));
      if (this.kept.length < COMMAND_BYTES + length) break;
      found.push({kind, lane, epoch, body: this.kept.subarray(COMMAND_BYTES, COMMAND_BYTES + length)});
      this.kept = this.kept.subarray(COMMAND_BYTES + length);
    }
    return found;
  }
}

/** @param {number} file @param {Buffer} buffer @param {number} length @param {number} position */
function writeAll(file, buffer, length, position) {
  let at = 0;
  while (at < length) at += writeSync(file, buffer, at, length - at, position + at);
}
