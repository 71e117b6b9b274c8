/** Battles against ourselves on real servers: pairs of users who challenge each other. */

import {OUTCOME} from './account.js';
import {Connection} from './connection.js';
import {toKey} from './lexicon.js';
import {RulesError} from './teams.js';

/**
 * @typedef {import('./connection.js').SocketKind} SocketKind
 * @typedef {import('./patience.js').Patience} Patience
 * @typedef {import('./remote.js').RemoteTable} RemoteTable
 * @typedef {import('./table.js').Rules} Rules
 * @typedef {{url: string, place: string, capacity: number}} ServerConfig
 * @typedef {{moved(table: RemoteTable): void, lost(table: RemoteTable, reason: string): void, fatal(error: RulesError): void}} Owner
 */

const MOST_REFUSALS = 3; // of a server that has not had a single battle

/** @param {ServerConfig} server @param {string} reason */
export function unreachable({place}, reason) {
  return new RulesError({kind: 'server', server: place, reason});
}

/** The challenge in a private message: who, and what format. @param {string} line @returns {{from: string, format: string} | null} */
export function challengeIn(line) {
  const [, kind, from, , text, ...rest] = line.split('|');
  if (kind !== 'pm' || !text?.startsWith('/challenge')) return null;
  return {from: (from ?? '').slice(1), format: toKey((text.slice(10) || rest[0]) ?? '')};
}

/** The words in which a server refuses, '' for any other line. @param {string} line */
export function refusalIn(line) {
  if (line.startsWith('|popup|')) return line.slice(7).replaceAll('||', ' ').trim() || 'it does not say why';
  const [, kind, , , text] = line.split('|');
  return kind === 'pm' && text?.startsWith('/error ') ? text.slice(7).trim() : '';
}

/** One server, how many battles it is to take and how many it has. */
class Server {
  /** @param {ServerConfig} config */
  constructor(config) {
    this.config = config;
    this.load = 0;
    this.played = false; // whether it ever had a battle
    this.refusals = 0; // in a row
    this.refusedSince = 0; // 0 while it takes battles
    this.downSince = 0; // 0 while its battles go on
    this.retryAt = 0;
    /** @type {Pair[]} without a battle */
    this.free = [];
  }

  get share() {
    return this.load / this.config.capacity;
  }

  /** A battle began. */
  agree() {
    this.played = true;
    this.refusals = this.refusedSince = 0;
  }

  /** Whether it has refused for so long that there is no more hope. @param {Patience} patience */
  refuses({gone}) {
    return this.played ? this.refusedSince > 0 && Date.now() - this.refusedSince > gone : this.refusals >= MOST_REFUSALS;
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
  /** @param {SocketKind} Socket @param {Rules} rules @param {ServerConfig[]} servers @param {Patience} patience @param {Owner} owner */
  constructor(Socket, rules, servers, patience, owner) {
    this.Socket = Socket;
    this.rules = rules;
    this.servers = servers.map(config => new Server(config));
    this.patience = patience;
    this.owner = owner;
    this.tag = Math.floor(Math.random() * 36 ** 6).toString(36);
    this.made = 0;
    /** @type {RemoteTable[]} */
    this.queue = [];
    this.watch = setInterval(() => this.look(), patience.retry);
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

  /** Whether battles may begin by themselves: those of ours were called off. */
  get expects() {
    return false;
  }

  /** Begin no more battles; the challenges that are open are taken back. */
  close() {
    clearInterval(this.watch);
    this.queue.length = 0;
    for (const {table, users} of this.busy) if (table?.room === '') users[0].send('', '/cancelchallenge');
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
      this.queue.unshift(table);
      this.down(server, error instanceof RulesError ? String(error.content.reason) : String(error));
      return;
    }
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
      const user = new Connection(this.Socket, server.config.url, name, this.patience,
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
    const {table} = pair, begins = lines[0] === '|init|battle';
    if (room === '') {
      for (const line of lines) this.hearServer(pair, seat, line);
    } else if (table && (table.room === room || (table.room === '' && begins))) {
      if (table.room === '') {
        table.room = room;
        pair.server.agree();
      }
      table.hear(seat, lines);
      if (table.waits) pair.server.downSince = 0;
      this.owner.moved(table);
    } else if (begins) {
      pair.users[seat].send(room, '/forfeit'); // of a challenge that was given up before
    }
  }

  /** @param {Pair} pair @param {number} seat @param {string} line */
  hearServer(pair, seat, line) {
    const challenge = challengeIn(line), refusal = refusalIn(line);
    if (challenge && seat === 1 && challenge.format === this.rules.format && toKey(challenge.from) === toKey(pair.users[0].name)) {
      this.bring(pair, 1);
      pair.users[1].send('', `/accept ${pair.users[0].name}`);
    } else if (refusal && pair.table && pair.table.room === '') {
      this.refuse(pair, `it refuses battles: ${refusal}`);
    }
  }

  /** The server will not have the battle. @param {Pair} pair @param {string} reason */
  refuse(pair, reason) {
    const {server, table} = pair;
    server.refusals++;
    server.refusedSince ||= Date.now();
    server.retryAt = Date.now() + this.patience.retry;
    if (this.servers.every(each => each.refuses(this.patience))) {
      this.owner.fatal(unreachable(server.config, reason));
      return;
    }
    pair.users[0].send('', '/cancelchallenge');
    this.release(pair);
    if (table) this.queue.unshift(table);
  }

  /** A user was cut off, or its battle stands still: the battle is lost. @param {Pair} pair @param {string} reason */
  drop(pair, reason) {
    const {table} = pair;
    for (const user of pair.users) {
      if (table?.room && table.outcome === OUTCOME.playing) user.send(table.room, '/forfeit');
      user.end(reason);
    }
    if (!table) return;
    this.release(pair);
    this.down(pair.server, reason);
    this.owner.lost(table, `${pair.server.config.place}: ${reason}`);
  }

  /** @param {Server} server @param {string} reason */
  down(server, reason) {
    const now = Date.now();
    server.downSince ||= now;
    server.retryAt = now + this.patience.retry;
    if (this.servers.every(({downSince}) => downSince && now - downSince > this.patience.gone)) {
      this.owner.fatal(unreachable(server.config, `no battle goes on there any more: ${reason}`));
    }
  }

  /** Try again what waits; give up challenges that become no battle, and battles that stand still. */
  look() {
    const now = Date.now(), {word, still} = this.patience;
    for (const pair of [...this.busy]) {
      const {table} = pair;
      if (!table || table.waits) continue;
      const silence = now - table.heard;
      if (table.room === '' && silence > word) this.refuse(pair, `it began no battle within ${word / 1000} s`);
      else if (silence > still) this.drop(pair, `a battle stood still for ${still / 1000} s`);
    }
    this.place();
  }
}
