/**
 * A bridge process that plays on real servers: `node server_main.js MODULES INPUT OUTPUT BLOCK`, as main.js.
 *
 * The same commands and the same waves; the battles are elsewhere, so here everything waits for messages.
 */

import {Socket} from 'node:net';

import {ANSWER, Channel, COMMAND, CommandReader} from './channel.js';
import {loadSockets} from './connection.js';
import {Listener} from './listener.js';
import {Pairs} from './pairs.js';
import {Patience, pause} from './patience.js';
import {RemoteLane} from './remote_lane.js';
import {loadSimulator} from './simulator.js';
import {Rules} from './table.js';
import {RulesError} from './teams.js';

/**
 * @typedef {import('./channel.js').Command} Command
 * @typedef {import('./remote.js').RemoteTable} RemoteTable
 * @typedef {import('./table.js').Config & {servers: import('./pairs.js').ServerConfig[], name: string, battles: number,
 *   patience: number}} Config
 */

const ALIVE_MS = 10_000; // between signs of life: servers and people may be slow, and have clocks of their own
const GOODBYE_MS = 8_000, AGAIN_MS = 700, LOOK_MS = 20;

/** The process's state: its rules, where it plays and its lanes. */
class ServerBridge {
  /** @param {Channel} channel @param {string} modules */
  constructor(channel, modules) {
    this.channel = channel;
    this.modules = modules;
    this.simulator = loadSimulator(modules);
    /** @type {Map<number, RemoteLane>} */
    this.lanes = new Map();
    /** @type {Rules | null} */
    this.rules = null;
    /** @type {Pairs | Listener | null} */
    this.venue = null;
    this.tables = 0;
    this.leaving = false;
  }

  /** @param {Command} command */
  async obey({kind, lane, epoch, body}) {
    if (kind === COMMAND.configure) await this.configure(JSON.parse(body.toString()).rules);
    else if (kind === COMMAND.assign) this.assign(lane, JSON.parse(body.toString()));
    else if (kind === COMMAND.act) this.act(lane, epoch, body);
    else if (kind === COMMAND.stop) await this.leave();
  }

  /** Give up the battles under way and those that are about to begin, wait for the servers to say so, and end. */
  async leave() {
    if (this.leaving) return;
    this.leaving = this.channel.muted = true; // what was planned to be told goes nowhere
    this.venue?.close();
    const until = Date.now() + GOODBYE_MS;
    /** @type {Map<RemoteTable, number>} when each was last given up */
    const told = new Map();
    while (Date.now() < until) {
      const open = [...this.lanes.values()].flatMap(({tables}) => tables).filter(table => table.open);
      if (!open.length && !this.venue?.expects) break;
      for (const table of open) {
        if (Date.now() - (told.get(table) ?? 0) < AGAIN_MS) continue; // one that has only just begun may not listen yet
        table.tell(0, '/forfeit');
        told.set(table, Date.now());
      }
      await pause(LOOK_MS);
    }
    process.exit(0);
  }

  /** @param {Config} config */
  async configure(config) {
    const rules = new Rules(this.simulator, config), Sockets = loadSockets(this.modules);
    const {name, servers, battles} = config, patience = new Patience(config.patience);
    const owner = {
      moved: (/** @type {RemoteTable} */ table) => {
        if (!this.leaving) this.lanes.forEach(lane => lane.moved(table));
      },
      lost: (/** @type {RemoteTable} */ table, /** @type {string} */ reason) => {
        if (this.leaving) return;
        // Several may notice; a battle is lost once.
        if (![...this.lanes.values()].some(lane => lane.lost(table))) return;
        this.channel.tell(ANSWER.note, {kind: 'dropped', table: table.number, game: table.game, reason});
      },
      fatal: (/** @type {RulesError} */ error) => this.fail(error),
    };
    this.venue = name
      ? new Listener(Sockets, rules, servers[0], name, battles, patience, owner) : new Pairs(Sockets, rules, servers, patience, owner);
    this.rules = rules;
    setInterval(() => this.channel.tell(ANSWER.alive, {}), ALIVE_MS);
    await this.venue.open();
    this.channel.tell(ANSWER.ready, rules.introduction());
  }

  /** @param {number} number @param {{tables: number[], games: number[], at: number}} task */
  assign(number, {tables, games, at}) {
    const {rules, venue} = this;
    if (!rules || !venue) throw new Error('tables were assigned before the rules');
    this.tables += tables.length;
    if (this.tables > venue.capacity) {
      const kind = venue instanceof Pairs ? 'capacity' : 'hosting';
      throw new RulesError({kind, tables: this.tables, capacity: venue.capacity});
    }
    /** @type {RemoteLane} */
    const lane = new RemoteLane(rules, tables, games, venue, venue instanceof Pairs, () => {
      for (const anomaly of lane.anomalies.splice(0)) this.channel.tell(ANSWER.note, anomaly);
      this.channel.wave(number, lane, at, 0);
    });
    this.lanes.set(number, lane);
  }

  /** @param {number} number @param {number} epoch @param {Buffer} body an action of two bytes for each row */
  act(number, epoch, body) {
    const lane = this.lanes.get(number);
    if (!lane || epoch !== lane.epoch || body.length !== 2 * lane.rows) throw new Error(`actions for wave ${epoch} of lane ${number}`);
    lane.play(row => body.readInt16LE(2 * row));
  }

  /** @param {unknown} error */
  fail(error) {
    if (this.leaving) return; // it ends anyway, once the servers know
    const crashed = {kind: 'crashed', message: error instanceof Error ? error.stack : String(error)};
    this.channel.tell(ANSWER.failed, error instanceof RulesError ? error.content : crashed);
    process.exit(1);
  }
}

function main() {
  const [modules, input, output, block] = process.argv.slice(2);
  const bridge = new ServerBridge(new Channel(Number(input), Number(output), Number(block)), modules ?? '');
  const reader = new CommandReader(), source = new Socket({fd: Number(input), readable: true, writable: false});
  let turn = Promise.resolve();
  source.on('data', chunk => {
    for (const command of reader.read(chunk)) turn = turn.then(() => bridge.obey(command)).catch(error => bridge.fail(error));
  });
  source.on('close', () => { void bridge.leave(); }); // the owner is gone
}

main();
