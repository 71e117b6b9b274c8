/** Battles on real servers, as tables: one or both seats are ours. */

import {Account, OUTCOME, SEATS} from './account.js';
import {toKey} from './lexicon.js';
import {ProtocolSeat} from './protocol.js';

/**
 * @typedef {import('./connection.js').Connection} Connection
 * @typedef {import('./table.js').Rules} Rules
 */

/** A battle that a server plays. */
export class RemoteTable {
  /** @param {Rules} rules @param {number} number @param {number} game @param {boolean} both whether both seats are ours */
  constructor(rules, number, game, both) {
    this.rules = rules;
    this.number = number;
    this.game = game;
    this.seats = both ? [new ProtocolSeat(rules), new ProtocolSeat(rules)] : [new ProtocolSeat(rules)];
    /** @type {Connection[]} of our seats, once they are on their way to a battle */
    this.users = [];
    this.room = '';
    this.outcome = OUTCOME.playing;
    this.heard = Date.now();
    this.timed = false; // whether the server's clock was asked for
    this.accounts = Array.from({length: SEATS}, () => new Account());
    /** @type {object[]} */
    this.anomalies = [];
    /** @type {string[][]} what each of our seats was told, to repeat an anomaly with */
    this.told = this.seats.map(() => []);
  }

  /** Follow the battle from its beginning once more, after the line was cut. @param {number} seat */
  again(seat) {
    const {decisions, refusals, errors} = this.seats[seat];
    this.seats[seat] = Object.assign(new ProtocolSeat(this.rules), {decisions, refusals, errors});
    this.told[seat].length = 0;
  }

  /** What a seat's user hears in the battle's room. @param {number} seat @param {string[]} lines */
  hear(seat, lines) {
    this.heard = Date.now();
    this.told[seat].push(...lines);
    try {
      this.take(seat, lines);
    } catch (error) {
      this.lose(seat, error);
    }
  }

  /** @param {number} seat @param {string[]} lines */
  take(seat, lines) {
    for (const line of lines) this.seats[seat].hear(line);
    const {result, idle} = this.seats[seat];
    if (result !== null) this.outcome = OUTCOME.terminated;
    else if (idle) this.tell(seat, this.seats[seat].answer(-1));
    else if (this.tooLong) this.outcome = OUTCOME.truncated;
  }

  /** Something failed on our side: the battle is lost, the others go on. @param {number} seat @param {unknown} error */
  lose(seat, error) {
    const {number: table, game, room, rules: {format}} = this;
    const text = error instanceof Error ? error.stack ?? error.message : String(error);
    this.anomalies.push({kind: 'crashed', format, table, game, seat, room, error: text, heard: this.told[seat]});
    this.outcome = OUTCOME.lost;
  }

  /** Whether a seat has played for too long; against others that is theirs to say. @param {ProtocolSeat} seat */
  spent({tracker}) {
    return this.seats.length === SEATS && tracker.turn > this.rules.config.maxTurns;
  }

  /** Whether both seats have, and know where they stand. */
  get tooLong() {
    return this.seats.every(seat => seat.asked && this.spent(seat));
  }

  /** @param {number} seat @param {number} action */
  play(seat, action) {
    this.heard = Date.now(); // however long we took, the server's time to answer begins now
    this.tell(seat, this.seats[seat].answer(action));
  }

  /** @param {number} seat @param {string} text */
  tell(seat, text) {
    if (text) this.users[seat].send(this.room, text);
  }

  /** Whether a battle is under way here, as far as we know. */
  get open() {
    return this.room !== '' && this.seats.every(({result}) => result === null);
  }

  /** Leave the battle; one that goes on is given up. */
  leave() {
    if (!this.room) return;
    if (this.outcome !== OUTCOME.terminated) this.tell(0, '/forfeit');
    for (let seat = 0; seat < this.seats.length; seat++) this.tell(seat, '/noreply /leave');
    const {number: table, game, room, rules: {format}} = this;
    this.seats.forEach(({errors}, seat) => {
      for (const error of errors) this.anomalies.push({kind: 'refused', format, table, game, seat, room, error, heard: this.told[seat]});
    });
  }

  get turns() {
    return this.seats[0].tracker.turn;
  }

  get masks() {
    if (this.outcome === OUTCOME.lost) return [0, 0];
    // A seat whose time is up waits for the other to hear of it too.
    return this.of(seat => (this.outcome === OUTCOME.playing && this.spent(seat) ? 0 : seat.mask));
  }

  /** Whether a seat of ours has something to decide. */
  get waits() {
    return this.masks.some(mask => mask);
  }

  get decisions() {
    return this.of(seat => seat.decisions);
  }

  get refusals() {
    return this.seats.reduce((sum, {refusals}) => sum + refusals, 0);
  }

  /** A figure of each seat, 0 for one that is not ours. @param {(seat: ProtocolSeat) => number} figure */
  of(figure) {
    return [0, 1].map(seat => (seat < this.seats.length ? figure(this.seats[seat]) : 0));
  }

  /** The seat that won, -1 for none. */
  winner() {
    const {result} = this.seats.find(({result: each}) => each !== null) ?? {result: null};
    if (!result) return -1;
    const won = this.users.findIndex(({name}) => toKey(name) === toKey(result));
    return won < 0 && this.users.length < SEATS ? 1 : won;
  }

  /** @param {number} seat its account, up to date */
  account(seat) {
    if (seat < this.seats.length) {
      const [mine, theirs] = this.seats[seat].standing(), winner = this.winner();
      this.accounts[seat].update(mine, theirs, this.turns, winner < 0 ? 0 : winner === seat ? 1 : -1);
    }
    return this.accounts[seat];
  }

  /** @param {number} seat @param {Uint8Array} u8 @param {number} at */
  write(seat, u8, at) {
    this.seats[seat].write(u8, at);
  }
}
