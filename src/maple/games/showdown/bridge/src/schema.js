/** What one seat sees, as bytes: the layout that schema.json declares and the Python side reads too. */

import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';

/**
 * @typedef {{name: string, type: 'u8' | 'u16', count?: number, scale?: number, source: string, about: string}} Field
 * @typedef {{name: string, repeat: number, about?: string, fields: Field[]}} Group
 * @typedef {{at: number, stride: number, repeat: number, field: Record<string, number>}} Place
 */

const text = readFileSync(new URL('../schema.json', import.meta.url));

/** @type {{actions: number, limits: Record<string, number>, lists: Record<string, string[]>, groups: Group[]}} */
export const schema = JSON.parse(text.toString('utf8'));

/** Both sides compare this before they talk. */
export const schemaHash = createHash('sha256').update(text).digest('hex').slice(0, 16);

/** Where each group and field begins. */
function layOut() {
  /** @type {Record<string, Place>} */
  const places = {};
  let at = 0;
  for (const group of schema.groups) {
    /** @type {Record<string, number>} */
    const field = {};
    let offset = 0;
    for (const {name, type, count} of group.fields) {
      const size = type === 'u16' ? 2 : 1;
      if (offset % size) throw new Error(`schema.json: ${group.name}.${name} is not aligned`);
      field[name] = offset;
      offset += size * (count ?? 1);
    }
    const stride = Math.ceil(offset / 8) * 8;
    places[group.name] = {at, stride, repeat: group.repeat, field};
    at += stride * group.repeat;
  }
  return {places, bytes: at};
}

const {places, bytes} = layOut();

/** Bytes of one view. */
export const VIEW_BYTES = bytes;

/**
 * @param {string} group
 * @returns {Place}
 */
export function place(group) {
  const found = places[group];
  if (!found) throw new Error(`schema.json has no group ${group}`);
  return found;
}

/**
 * A list of the schema as a map from name to place in it.
 * @param {string} name
 * @returns {Map<string, number>}
 */
export function numbered(name) {
  const list = schema.lists[name];
  if (!list) throw new Error(`schema.json has no list ${name}`);
  return new Map(list.map((entry, i) => [entry, i]));
}
