/** One user's line to a Showdown server. */

import {createRequire} from 'node:module';
import {join} from 'node:path';

import {toKey} from './lexicon.js';

/**
 * @typedef {{on(event: string, listen: (event: any) => void): void, send(text: string): void, close(): void,
 *   ping(text: string, pong: () => void): void}} Socket
 * @typedef {new (url: string, protocols?: string[], options?: object) => Socket} SocketKind
 */

const LOGIN_MS = 15_000, PING_MS = 5_000, SILENT_MS = 20_000;

/** @param {string} modules the folder that holds node_modules @returns {SocketKind} */
export function loadSockets(modules) {
  return createRequire(join(modules, 'package.json'))('faye-websocket').Client;
}

/** Talks to a server as one user. What it hears comes by rooms; the room '' is the server itself. */
export class Connection {
  /**
   * @param {SocketKind} Socket @param {string} url @param {string} name
   * @param {(room: string, lines: string[]) => void} hear @param {(reason: string) => void} gone told once, after a successful login
   */
  constructor(Socket, url, name, hear, gone) {
    this.name = name;
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
    this.pings = setInterval(() => this.ping(), PING_MS);
  }

  /** Wait until the server has taken the name. @returns {Promise<void>} */
  login() {
    return new Promise((resolve, reject) => {
      const limit = setTimeout(() => this.end(`it did not take the name ${this.name} within ${LOGIN_MS / 1000} s`), LOGIN_MS);
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
    if (Date.now() - this.heard > SILENT_MS) this.end(`it said nothing for ${SILENT_MS / 1000} s`);
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
