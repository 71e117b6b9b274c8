/** Battles against ourselves on real servers: pairs of users who challenge each other. */

import {Connection} from './connection.js';
import {toKey} from './lexicon.js';
import {RulesError} from './teams.js';

/**
 * @typedef {import('./connection.js').SocketKind} SocketKind
 * @typedef {import('./remote.js').RemoteTable} RemoteTable
 * @typedef {import('./table.js').Rules} Rules
 * @typedef {{url: string, place: string, capacity: number}} ServerConfig
 * @typedef {{began(table: RemoteTable): void, moved(table: RemoteTable): void, lost(table: RemoteTable, reason: string): void,
 *   fatal(error: RulesError): void}} Owner
 */

const RETRY_MS = 2_000, GIVE_UP_MS = 60_000, MOST_REFUSALS = 3, STALLED_MS = 90_000;

/** @param {ServerConfig} server @param {string} reason */
function unreachable({place}, reason) {
  return new RulesError({kind: 'server', server: place, reason});
}

/** The challenge in a private message: who, and what format. @param {string} line @returns {{from: string, format: string} | null} */
export function challengeIn(line) {
  const [, kind, from, , text, ...rest] = line.split('|');
  if (kind !== 'pm' || !text?.startsWith('/challenge')) return null;
  return {from: (from ?? '').slice(1), format: toKey((text.slice(10) || rest[0]) ?? '')};
}

/** One server, how many battles it is to take and how many it has. */
class Server {
  /** @param {ServerConfig} config */
  constructor(config) {
    this.config = config;
    this.load = 0;
    this.refusals = 0; // in a row
    this.downSince = 0; // 0 while it is up
    this.retryAt = 0;
    /** @type {Pair[]} without a battle */
    this.free = [];
  }

  get share() {
    return this.load / this.config.capacity;
  }
}

/** Two users of one server, for one battle at a time. */
class Pair {
  /** @param {Server} server */
  constructor(server) {
    this.server = server;
    /** @type {Connection[]} */
    this.users = [];
    /** @type {RemoteTable | null} */
    this.table = null;
  }

  get open() {
    return this.users.every(user => user.open);
  }
}

/** Pairs of users on several servers, the least loaded first. */
export class Pairs {
  /** @param {SocketKind} Socket @param {Rules} rules @param {ServerConfig[]} servers @param {Owner} owner */
  constructor(Socket, rules, servers, owner) {
    this.Socket = Socket;
    this.rules = rules;
    this.servers = servers.map(config => new Server(config));
    this.owner = owner;
    this.tag = Math.floor(Math.random() * 36 ** 6).toString(36);
    this.made = 0;
    /** @type {RemoteTable[]} */
    this.queue = [];
    this.watch = setInterval(() => this.look(), RETRY_MS);
    /** @type {Set<Pair>} */
    this.busy = new Set();
  }

  get capacity() {
    return this.servers.reduce((sum, {config}) => sum + config.capacity, 0);
  }

  /** Every server has to answer before anything starts. */
  async open() {
    for (const server of this.servers) server.free.push(await this.meet(server));
  }

  /** Find a battle for a table. @param {RemoteTable} table */
  seat(table) {
    this.queue.push(table);
    this.place();
  }

  /** The table is done with its battle. @param {RemoteTable} table */
  free(table) {
    for (const pair of this.busy) if (pair.table === table) this.release(pair);
    this.place();
  }

  /** @param {Pair} pair */
  release(pair) {
    pair.table = null;
    this.busy.delete(pair);
    pair.server.load--;
    if (pair.open) pair.server.free.push(pair);
  }

  /** Give waiting tables to servers. */
  place() {
    const now = Date.now();
    while (this.queue.length) {
      const able = this.servers.filter(({load, config, retryAt}) => load < config.capacity && retryAt <= now);
      const server = able.sort((a, b) => a.share - b.share)[0];
      if (!server) return;
      server.load++;
      void this.begin(server, /** @type {RemoteTable} */ (this.queue.shift()));
    }
  }

  /** @param {Server} server @param {RemoteTable} table */
  async begin(server, table) {
    server.free = server.free.filter(pair => pair.open);
    let pair = server.free.pop();
    try {
      pair ??= await this.meet(server);
    } catch (error) {
      server.load--;
      this.down(server, error instanceof Error ? error.message : String(error));
      this.queue.unshift(table);
      return;
    }
    server.downSince = 0;
    pair.table = table;
    this.busy.add(pair);
    table.users = pair.users;
    table.heard = Date.now();
    this.bring(pair, 0);
    pair.users[0].send('', `/challenge ${pair.users[1].name}, ${this.rules.format}`);
  }

  /** Choose a team, where the format wants one. @param {Pair} pair @param {number} seat */
  bring(pair, seat) {
    const {table} = pair, {teams} = this.rules;
    if (table) pair.users[seat].send('', `/utm ${teams.given.length ? teams.draw(table.number, table.game, seat) : 'null'}`);
  }

  /** Two new users. @param {Server} server @returns {Promise<Pair>} */
  async meet(server) {
    const pair = new Pair(server), number = this.made++;
    for (const seat of [0, 1]) {
      const name = `mpl${this.tag}${number.toString(36)}${'ab'[seat]}`;
      const user = new Connection(this.Socket, server.config.url, name,
        (room, lines) => this.hear(pair, seat, room, lines), reason => this.drop(pair, reason));
      pair.users.push(user);
      try {
        await user.login();
      } catch (error) {
        for (const each of pair.users) each.end('');
        throw unreachable(server.config, error instanceof Error ? error.message : String(error));
      }
    }
    return pair;
  }

  /** @param {Pair} pair @param {number} seat @param {string} room @param {string[]} lines */
  hear(pair, seat, room, lines) {
    const {table} = pair;
    if (room === '') {
      for (const line of lines) this.hearServer(pair, seat, line);
    } else if (table && (table.room === room || (table.room === '' && lines[0] === '|init|battle'))) {
      if (table.room === '') {
        table.room = room;
        pair.server.refusals = 0;
        this.owner.began(table);
      }
      table.hear(seat, lines);
      this.owner.moved(table);
    }
  }

  /** @param {Pair} pair @param {number} seat @param {string} line */
  hearServer(pair, seat, line) {
    const challenge = challengeIn(line);
    if (challenge && seat === 1 && challenge.format === this.rules.format && toKey(challenge.from) === toKey(pair.users[0].name)) {
      this.bring(pair, 1);
      pair.users[1].send('', `/accept ${pair.users[0].name}`);
    } else if (line.startsWith('|popup|') && pair.table && pair.table.room === '') {
      this.refuse(pair, line.slice(7).replaceAll('||', ' ').trim());
    }
  }

  /** The server will not have the battle. @param {Pair} pair @param {string} words */
  refuse(pair, words) {
    const {server, table} = pair;
    if (++server.refusals >= MOST_REFUSALS && this.servers.every(each => each.refusals > 0)) {
      this.owner.fatal(unreachable(server.config, `it refuses battles: ${words}`));
      return;
    }
    server.retryAt = Date.now() + RETRY_MS;
    pair.users[0].send('', '/cancelchallenge');
    this.release(pair);
    if (table) this.queue.unshift(table);
  }

  /** A user was cut off: its battle is lost. @param {Pair} pair @param {string} reason */
  drop(pair, reason) {
    for (const user of pair.users) user.end(reason);
    const {table} = pair;
    if (!table) return;
    this.release(pair);
    this.down(pair.server, reason);
    this.owner.lost(table, `${pair.server.config.place}: ${reason}`);
  }

  /** @param {Server} server @param {string} reason */
  down(server, reason) {
    const now = Date.now();
    server.downSince ||= now;
    server.retryAt = now + RETRY_MS;
    if (this.servers.every(({downSince}) => downSince && now - downSince > GIVE_UP_MS)) {
      this.owner.fatal(unreachable(server.config, `it cannot be reached any more: ${reason}`));
    }
  }

  /** Try again what waits, and give up battles that stand still. */
  look() {
    for (const pair of this.busy) {
      if (pair.table && Date.now() - pair.table.heard > STALLED_MS && !pair.table.masks.some(mask => mask)) {
        this.drop(pair, 'the battle stood still');
      }
    }
    this.place();
  }
}
