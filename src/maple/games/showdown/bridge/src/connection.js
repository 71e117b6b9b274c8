/** One user's line to a Showdown server. */

import {createRequire} from 'node:module';
import {join} from 'node:path';

import {toKey} from './lexicon.js';

/**
 * @typedef {{on(event: string, listen: (event: any) => void): void, send(text: string): void, close(): void,
 *   ping(text: string, pong: () => void): void}} Socket
 * @typedef {new (url: string, protocols?: string[], options?: object) => Socket} SocketKind
 */

/** @param {string} modules the folder that holds node_modules @returns {SocketKind} */
export function loadSockets(modules) {
  return createRequire(join(modules, 'package.json'))('faye-websocket').Client;
}

/** Talks to a server as one user. What it hears comes by rooms; the room '' is the server itself. */
export class Connection {
  /**
   * @param {SocketKind} Socket @param {string} url @param {string} name @param {import('./patience.js').Patience} patience
   * @param {(room: string, lines: string[]) => void} hear @param {(reason: string) => void} gone told once, after a successful login
   */
  constructor(Socket, url, name, patience, hear, gone) {
    this.name = name;
    this.patience = patience;
    this.hear = hear;
    this.gone = gone;
    this.open = true;
    this.named = false;
    this.heard = Date.now();
    /** @type {(reason: string) => void} */
    this.fail = () => {};
    this.socket = new Socket(url);
    this.socket.on('message', ({data}) => this.receive(String(data)));
    this.socket.on('error', ({message}) => this.end(message || 'the connection failed'));
    this.socket.on('close', ({reason}) => this.end(reason || 'the connection was closed'));
    this.pings = setInterval(() => this.ping(), patience.ping);
  }

  /** Wait until the server has taken the name. @returns {Promise<void>} */
  login() {
    return new Promise((resolve, reject) => {
      const {word} = this.patience;
      const limit = setTimeout(() => this.end(`it did not take the name ${this.name} within ${word / 1000} s`), word);
      this.welcome = () => {
        clearTimeout(limit);
        resolve();
      };
      this.fail = reason => {
        clearTimeout(limit);
        reject(new Error(reason));
      };
    });
  }

  /** @param {string} text a message, after its room's id where it is for a room */
  receive(text) {
    this.heard = Date.now();
    const lines = text.split('\n');
    const room = lines[0]?.startsWith('>') ? (lines.shift() ?? '').slice(1) : '';
    if (room === '') for (const line of lines) this.greet(line);
    this.hear(room, lines);
  }

  /** The server's side of a login. @param {string} line */
  greet(line) {
    const [, kind, name, detail] = line.split('|');
    if (kind === 'challstr') {
      this.send('', `/trn ${this.name},0,`);
    } else if (kind === 'nametaken') {
      this.end(`it did not take the name ${this.name}: ${detail}`);
    } else if (kind === 'updateuser' && !this.named && detail === '1' && toKey(name ?? '') === toKey(this.name)) {
      this.named = true;
      this.welcome?.();
    }
  }

  /** @param {string} room @param {string} text */
  send(room, text) {
    if (this.open) this.socket.send(`${room}|${text}`);
  }

  ping() {
    const {silent} = this.patience;
    if (Date.now() - this.heard > silent) this.end(`it said nothing for ${Math.round(silent / 1000)} s`);
    else this.socket.ping('', () => { this.heard = Date.now(); });
  }

  /** @param {string} reason */
  end(reason) {
    if (!this.open) return;
    this.open = false;
    clearInterval(this.pings);
    this.socket.close();
    if (this.named) this.gone(reason);
    else this.fail(reason);
  }
}
