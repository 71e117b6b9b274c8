/** Battles against others: one user of one server, who takes challenges. */

import {Connection} from './connection.js';
import {toKey} from './lexicon.js';
import {challengeIn, refusalIn, unreachable} from './pairs.js';
import {pause} from './patience.js';
import {RulesError} from './teams.js';

/**
 * @typedef {import('./connection.js').SocketKind} SocketKind
 * @typedef {import('./patience.js').Patience} Patience
 * @typedef {import('./remote.js').RemoteTable} RemoteTable
 * @typedef {import('./table.js').Rules} Rules
 * @typedef {import('./pairs.js').Owner} Owner
 * @typedef {import('./pairs.js').ServerConfig} ServerConfig
 * @typedef {{table: RemoteTable, from: string, at: number}} Call a challenge that was taken and whose room is not open yet
 */

const ABSENT = 3; // times the patience with a battle that stands still, before the server's clock has not helped either

/** Takes challenges in its format for as many tables as wait for one. */
export class Listener {
  /**
   * @param {SocketKind} Socket @param {Rules} rules @param {ServerConfig} server @param {string} name
   * @param {number} battles how many to play in all, 0 for any number @param {Patience} patience @param {Owner} owner
   */
  constructor(Socket, rules, server, name, battles, patience, owner) {
    this.Socket = Socket;
    this.rules = rules;
    this.server = server;
    this.name = name;
    this.left = battles || Infinity; // battles that may still begin
    this.closed = false;
    this.patience = patience;
    this.owner = owner;
    /** @type {Connection | null} */
    this.user = null;
    /** @type {RemoteTable[]} without a battle */
    this.idle = [];
    /** @type {Call[]} */
    this.called = [];
    /** @type {Map<string, RemoteTable>} */
    this.rooms = new Map();
    /** @type {string[]} who waits for a table */
    this.waiting = [];
    this.watch = setInterval(() => this.look(), patience.retry);
  }

  get capacity() {
    return this.server.capacity;
  }

  async open() {
    const user = new Connection(this.Socket, this.server.url, this.name, this.patience,
      (room, lines) => this.hear(room, lines), reason => this.drop(reason));
    try {
      await user.login();
    } catch (error) {
      throw unreachable(this.server, error instanceof Error ? error.message : String(error));
    }
    this.user = user;
    for (const [room, table] of this.rooms) {
      table.users = [user];
      user.send('', `/join ${room}`);
    }
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

  /** Whether a challenge was taken that has yet to become a battle. */
  get expects() {
    return this.called.length > 0;
  }

  /** Take no more challenges. */
  close() {
    clearInterval(this.watch);
    this.closed = true;
    this.take();
  }

  /** Take challenges as long as there are tables for them, and battles left to play. */
  take() {
    const {user} = this, {teams} = this.rules;
    for (;;) {
      const full = this.closed || this.left < 1;
      if (!user?.open || !this.waiting.length || (!full && !this.idle.length)) break;
      const from = /** @type {string} */ (this.waiting.shift());
      if (full) {
        user.send('', `/reject ${from}`);
        continue;
      }
      const table = /** @type {RemoteTable} */ (this.idle.shift());
      table.users = [user];
      this.left--;
      this.called.push({table, from, at: Date.now()});
      user.send('', `/utm ${teams.given.length ? teams.draw(table.number, table.game, 0) : 'null'}`);
      user.send('', `/accept ${from}`);
    }
  }

  /** A challenge that was taken became no battle. @param {Call} call */
  release(call) {
    this.called = this.called.filter(each => each !== call);
    this.left++;
    this.idle.push(call.table);
  }

  /** @param {string} room @param {string[]} lines */
  hear(room, lines) {
    if (room === '') {
      for (const line of lines) this.hearServer(line);
      return;
    }
    const table = this.rooms.get(room) ?? this.begin(room, lines[0]);
    if (!table) return;
    if (lines[0].startsWith('|noinit|')) {
      this.owner.lost(table, `${this.server.place}: the battle is gone`);
      return;
    }
    if (lines[0] === '|init|battle') table.again(0);
    table.hear(0, lines);
    // Whoever left may never come back: from then on the server's clock decides.
    if (lines.some(line => line.startsWith('|l|') && !line.endsWith(this.name))) this.user?.send(room, '/timer on');
    this.owner.moved(table);
  }

  /** The table that a new room is for. @param {string} room @param {string} line its first */
  begin(room, line) {
    if (line !== '|init|battle') return undefined;
    const table = this.called.shift()?.table;
    if (table) {
      table.room = room;
      this.rooms.set(room, table);
    } else {
      this.user?.send(room, '/forfeit'); // of a challenge that was given up before
    }
    return table;
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
    } else if (this.called.length && refusalIn(line)) {
      this.release(this.called[0]); // the challenge was withdrawn, or refused
      this.take();
    }
  }

  /** Cut off: come back and go on with the battles. @param {string} reason */
  drop(reason) {
    for (const call of this.called) this.release(call);
    this.waiting.length = 0;
    for (const table of this.rooms.values()) table.again(0);
    void this.comeBack(Date.now() + this.patience.gone, reason);
  }

  /** @param {number} until @param {string} reason */
  async comeBack(until, reason) {
    for (;;) {
      await pause(this.patience.retry);
      try {
        await this.open();
        return;
      } catch (error) {
        if (Date.now() > until && error instanceof RulesError) {
          this.owner.fatal(unreachable(this.server, `${reason}, and it cannot be reached any more: ${error.content.reason}`));
          return;
        }
      }
    }
  }

  /** Give up challenges that become no battle, and battles that stand still although the server's clock runs. */
  look() {
    const now = Date.now(), {word, still} = this.patience;
    for (const call of this.called) if (now - call.at > word) this.release(call);
    for (const [room, table] of [...this.rooms]) {
      if (table.waits) continue;
      const silence = now - table.heard;
      if (silence > ABSENT * still) {
        this.owner.lost(table, `${this.server.place}: the battle stood still`);
      } else if (silence > still && !table.timed) {
        table.timed = true;
        this.user?.send(room, '/timer on');
      }
    }
    this.take();
  }
}
