/** Battles against others: one user of one server, who takes challenges. */

import {Connection} from './connection.js';
import {toKey} from './lexicon.js';
import {RulesError} from './teams.js';
import {challengeIn} from './pairs.js';

/**
 * @typedef {import('./connection.js').SocketKind} SocketKind
 * @typedef {import('./remote.js').RemoteTable} RemoteTable
 * @typedef {import('./table.js').Rules} Rules
 * @typedef {import('./pairs.js').Owner} Owner
 * @typedef {import('./pairs.js').ServerConfig} ServerConfig
 */

const RETRY_MS = 2_000, GIVE_UP_MS = 60_000;

/** Takes challenges in its format for as many tables as wait for one. */
export class Listener {
  /** @param {SocketKind} Socket @param {Rules} rules @param {ServerConfig} server @param {string} name @param {Owner} owner */
  constructor(Socket, rules, server, name, owner) {
    this.Socket = Socket;
    this.rules = rules;
    this.server = server;
    this.name = name;
    this.owner = owner;
    /** @type {Connection | null} */
    this.user = null;
    /** @type {RemoteTable[]} without a battle */
    this.idle = [];
    /** @type {RemoteTable[]} whose challenge was taken and whose room is not open yet */
    this.called = [];
    /** @type {Map<string, RemoteTable>} */
    this.rooms = new Map();
    /** @type {string[]} who waits for a table */
    this.waiting = [];
  }

  get capacity() {
    return this.server.capacity;
  }

  async open() {
    const user = new Connection(this.Socket, this.server.url, this.name, (room, lines) => this.hear(room, lines), reason => this.drop(reason));
    try {
      await user.login();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new RulesError({kind: 'server', server: this.server.place, reason});
    }
    this.user = user;
  }

  /** @param {RemoteTable} table */
  seat(table) {
    this.idle.push(table);
    this.take();
  }

  /** @param {RemoteTable} table */
  free(table) {
    this.rooms.delete(table.room);
  }

  /** Take challenges as long as there are tables for them. */
  take() {
    const {user} = this, {teams} = this.rules;
    while (user?.open && this.idle.length && this.waiting.length) {
      const table = /** @type {RemoteTable} */ (this.idle.shift());
      table.users = [user];
      this.called.push(table);
      user.send('', `/utm ${teams.given.length ? teams.draw(table.number, table.game, 0) : 'null'}`);
      user.send('', `/accept ${this.waiting.shift()}`);
    }
  }

  /** @param {string} room @param {string[]} lines */
  hear(room, lines) {
    if (room === '') {
      for (const line of lines) this.hearServer(line);
      return;
    }
    let table = this.rooms.get(room);
    if (!table && lines[0] === '|init|battle') {
      table = this.called.shift();
      if (!table) return;
      table.room = room;
      this.rooms.set(room, table);
      this.owner.began(table);
    }
    if (!table) return;
    table.hear(0, lines);
    // Whoever left may never come back: from then on the server's clock decides.
    if (lines.some(line => line.startsWith('|l|') && !line.endsWith(this.name))) this.user?.send(room, '/timer on');
    this.owner.moved(table);
  }

  /** @param {string} line */
  hearServer(line) {
    const challenge = challengeIn(line);
    if (challenge && toKey(challenge.from) !== toKey(this.name)) {
      const {from, format} = challenge;
      this.waiting = this.waiting.filter(name => name !== from);
      if (format === this.rules.format) {
        this.waiting.push(from);
      } else if (format) {
        this.user?.send('', `/reject ${from}`);
        this.user?.send('', `/pm ${from}, I play ${this.rules.format}.`);
      }
      this.take();
    } else if (line.startsWith('|popup|') && this.called.length) {
      this.idle.push(/** @type {RemoteTable} */ (this.called.shift())); // the challenge was withdrawn, or refused
      this.take();
    }
  }

  /** All battles are lost; try to come back. @param {string} reason */
  drop(reason) {
    const gone = [...this.called, ...this.rooms.values()];
    this.called.length = 0;
    this.waiting.length = 0;
    this.rooms.clear();
    for (const table of gone) this.owner.lost(table, `${this.server.place}: ${reason}`);
    void this.comeBack(Date.now() + GIVE_UP_MS);
  }

  /** @param {number} until */
  async comeBack(until) {
    for (;;) {
      await new Promise(resolve => { setTimeout(resolve, RETRY_MS); });
      try {
        await this.open();
        return;
      } catch (error) {
        if (Date.now() > until && error instanceof RulesError) {
          this.owner.fatal(error);
          return;
        }
      }
    }
  }
}
