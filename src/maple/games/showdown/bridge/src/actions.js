/**
 * The fixed set of actions: 0-3 moves, 4-7 the same with the generation's gimmick, 8-13 a switch to that place of the
 * team (in team preview, the next Pokémon to bring). What is open is read from the request alone.
 */

import {numbered} from './schema.js';

/** @typedef {import('./simulator.js').Request} Request */
/** @typedef {import('./simulator.js').ActiveRequest} ActiveRequest */

export const MOVES = 4, FIRST_SWITCH = 8, ACTIONS = 14;
const TEAM = ACTIONS - FIRST_SWITCH;
const GIMMICKS = numbered('gimmick');
const gimmickNumber = (/** @type {string} */ name) => GIMMICKS.get(name) ?? 0;
const TERA = gimmickNumber('terastallize'), DYNAMAX = gimmickNumber('dynamax'), MEGA = gimmickNumber('mega');
const Z_MOVE = gimmickNumber('zmove'), ULTRA = gimmickNumber('ultra');
const WORDS = [...GIMMICKS.keys()].map(name => (name === 'none' ? '' : ` ${name}`));

/** The gimmick that actions 4-7 would use. @param {ActiveRequest | undefined} active */
export function gimmickOf(active) {
  if (!active) return 0;
  if (active.canTerastallize) return TERA;
  if (active.canDynamax) return DYNAMAX;
  if (active.canMegaEvo) return MEGA;
  if (active.canUltraBurst) return ULTRA;
  return active.canZMove ? Z_MOVE : 0;
}

/** @param {ActiveRequest} active */
function openMoves(active) {
  const gimmick = gimmickOf(active);
  let open = 0;
  for (let i = 0; i < active.moves.length && i < MOVES; i++) {
    const usable = !active.moves[i]?.disabled;
    if (usable) open |= 1 << i;
    const special = gimmick === Z_MOVE ? active.canZMove?.[i] : gimmick !== 0;
    if (usable && special) open |= 1 << (MOVES + i);
  }
  return open;
}

/** @param {Request} request */
function openSwitches(request) {
  const team = request.side.pokemon, reviving = !!team[0]?.reviving;
  let open = 0;
  for (let i = 0; i < team.length && i < TEAM; i++) {
    const member = team[i];
    if (!member || member.active) continue;
    if (member.condition.endsWith(' fnt') === reviving) open |= 1 << (FIRST_SWITCH + i);
  }
  return open;
}

/**
 * A bit for each action that is open; 0 where the seat has nothing to decide.
 * @param {Request | null} request @param {number[]} picked what was already picked in team preview
 */
export function openActions(request, picked) {
  if (!request || request.wait) return 0;
  if (request.teamPreview) {
    let open = 0;
    for (let i = 0; i < request.side.pokemon.length && i < TEAM; i++) if (!picked.includes(i)) open |= 1 << (FIRST_SWITCH + i);
    return open;
  }
  if (request.forceSwitch) return openSwitches(request);
  const active = request.active?.[0];
  if (!active) return 0;
  return openMoves(active) | (active.trapped ? 0 : openSwitches(request));
}

/**
 * The simulator's words for a move or a switch.
 * @param {Request} request @param {number} action
 */
export function choiceText(request, action) {
  if (action >= FIRST_SWITCH) return `switch ${action - FIRST_SWITCH + 1}`;
  const plain = `move ${action % MOVES + 1}`;
  return action < MOVES ? plain : plain + WORDS[gimmickOf(request.active?.[0])];
}

/** How many Pokémon team preview asks for. @param {Request} request */
function previewSize(request) {
  return Math.min(request.maxChosenTeamSize ?? 1, request.side.pokemon.length);
}

/**
 * What to tell the simulator for an action; nothing as long as a team preview wants more picks.
 * @param {Request} request @param {number[]} picked what was picked so far; an action of team preview is added
 * @param {number} action
 */
export function choose(request, picked, action) {
  if (!request.teamPreview) return choiceText(request, action);
  picked.push(action - FIRST_SWITCH);
  if (picked.length < previewSize(request)) return '';
  const rest = request.side.pokemon.map((_, i) => i).filter(i => !picked.includes(i));
  return `team ${[...picked, ...rest].map(i => i + 1).join('')}`;
}
