/**
 * A bridge process: `node main.js MODULES INPUT OUTPUT BLOCK`, the folder of node_modules and three descriptors.
 *
 * It plays lanes of battles for its owner until it is told to stop or its owner is gone.
 */

import {OUTCOME} from './account.js';
import {ANSWER, Channel, COMMAND} from './channel.js';
import {Lane} from './lane.js';
import {pick, Stream} from './random.js';
import {loadSimulator} from './simulator.js';
import {Rules, Table} from './table.js';
import {RulesError} from './teams.js';

/** @typedef {import('./channel.js').Command} Command */

const MEMORY_EVERY = 64; // waves between looks at the memory in use
const WARM_TABLES = 8;

/** Play that nobody asked for, so that the compiler has seen everything before somebody does. */
class Warming {
  /** @param {Rules} rules @param {number} seconds */
  constructor(rules, seconds) {
    this.lane = new Lane(rules, [...Array(WARM_TABLES).keys()], Array(WARM_TABLES).fill(0));
    this.stream = new Stream(1);
    this.until = Date.now() + 1000 * seconds;
    this.lane.advance();
  }

  /** One wave; whether it should go on. */
  wave() {
    this.lane.play(row => randomAction(this.lane, row, this.stream));
    this.lane.advance();
    return Date.now() < this.until;
  }
}

/** The process's state: its rules and its lanes. */
class Bridge {
  /** @param {Channel} channel @param {string} modules */
  constructor(channel, modules) {
    this.channel = channel;
    this.simulator = loadSimulator(modules);
    /** @type {Rules | null} */
    this.rules = null;
    /** @type {Map<number, {lane: Lane, at: number}>} */
    this.lanes = new Map();
    /** @type {Warming | null} until the first command after the rules */
    this.warming = null;
    this.waves = 0;
    this.memory = 0;
    /** @type {Table[]} battles played without an owner, to measure */
    this.alone = [];
    this.stream = new Stream(1);
  }

  /** @param {Command} command whether to go on */
  obey({kind, lane, epoch, body}) {
    switch (kind) {
    case COMMAND.configure:
      this.configure(JSON.parse(body.toString()));
      return true;
    case COMMAND.assign:
      this.assign(lane, JSON.parse(body.toString()));
      return true;
    case COMMAND.act:
      this.act(lane, epoch, body);
      return true;
    case COMMAND.retire:
      for (const {lane: each} of this.lanes.values()) each.retiring = true;
      return true;
    case COMMAND.play:
      this.playAlone(JSON.parse(body.toString()));
      return true;
    default:
      return false;
    }
  }

  /** @param {{warm: number, rules: import('./table.js').Config}} config */
  configure({warm, rules}) {
    try {
      this.rules = new Rules(this.simulator, rules);
    } catch (error) {
      if (!(error instanceof RulesError)) throw error;
      this.channel.tell(ANSWER.failed, error.content);
      return;
    }
    this.channel.tell(ANSWER.ready, this.rules.introduction());
    if (warm > 0) this.warming = new Warming(this.rules, warm);
  }

  /** Play on until the next command comes. @param {Warming} warming */
  warmUp(warming) {
    this.warming = null;
    return this.channel.nextDuring(() => warming.wave());
  }

  /** @param {number} number @param {{tables: number[], games: number[], at: number}} task */
  assign(number, {tables, games, at}) {
    if (!this.rules) throw new Error('tables were assigned before the rules');
    const lane = new Lane(this.rules, tables, games);
    this.lanes.set(number, {lane, at});
    lane.advance();
    this.report(number, lane, at);
  }

  /** @param {number} number @param {number} epoch @param {Buffer} body an action of two bytes for each row */
  act(number, epoch, body) {
    const found = this.lanes.get(number);
    if (!found) throw new Error(`lane ${number} was never assigned`);
    const {lane, at} = found;
    if (epoch !== lane.epoch || body.length !== 2 * lane.rows) {
      throw new Error(`actions for wave ${epoch} of lane ${number}, which is at ${lane.epoch} with ${lane.rows} rows`);
    }
    lane.play(row => body.readInt16LE(2 * row));
    lane.advance();
    this.report(number, lane, at);
  }

  /** @param {number} number @param {Lane} lane @param {number} at */
  report(number, lane, at) {
    for (const note of [...lane.anomalies.splice(0), ...lane.records.splice(0)]) this.channel.tell(ANSWER.note, note);
    if (this.waves++ % MEMORY_EVERY === 0) this.memory = Math.round(process.memoryUsage.rss() / 2 ** 20);
    this.channel.wave(number, lane, at, this.memory);
  }

  /** Random play without encoding, without an owner: what the simulator can do. @param {{tables: number, seconds: number}} task */
  playAlone({tables, seconds}) {
    if (!this.rules) throw new Error('play was asked for before the rules');
    while (this.alone.length < tables) this.alone.push(new Table(this.rules, this.alone.length, 0));
    const began = process.hrtime.bigint(), until = began + BigInt(Math.round(seconds * 1e9));
    let decisions = 0, battles = 0;
    while (process.hrtime.bigint() < until) {
      for (let at = 0; at < tables; at++) {
        let table = this.alone[at];
        table.update();
        if (table.outcome !== OUTCOME.playing) {
          battles++;
          table.end();
          table = this.alone[at] = new Table(this.rules, table.number, table.game + 1);
          table.update();
        }
        const [first, second] = table.masks;
        if (first) table.play(0, pick(first, this.stream));
        if (second && !table.battle.ended) table.play(1, pick(second, this.stream));
        decisions += (first ? 1 : 0) + (second ? 1 : 0);
      }
    }
    this.channel.tell(ANSWER.played, {decisions, battles, seconds: Number(process.hrtime.bigint() - began) / 1e9});
  }
}

/** @param {Lane} lane @param {number} row @param {Stream} stream */
function randomAction(lane, row, stream) {
  const [at, seat] = lane.waiting[row];
  return pick(lane.tables[at].masks[seat], stream);
}

async function main() {
  const [modules, input, output, block] = process.argv.slice(2);
  const channel = new Channel(Number(input), Number(output), Number(block));
  try {
    const bridge = new Bridge(channel, modules ?? '');
    let command = channel.next();
    while (command && bridge.obey(command)) command = bridge.warming ? await bridge.warmUp(bridge.warming) : channel.next();
  } catch (error) {
    channel.tell(ANSWER.failed, {kind: 'crashed', message: error instanceof Error ? error.stack : String(error)});
    process.exitCode = 1;
  }
}

void main();
