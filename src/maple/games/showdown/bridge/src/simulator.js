/** The simulator's package, loaded from where it is installed, and the parts of it that the bridge relies on. */

import {createRequire} from 'node:module';
import {join} from 'node:path';

/**
 * @typedef {{move: string, id: string, pp?: number, maxpp?: number, disabled?: boolean | string}} RequestMove
 * @typedef {{moves: RequestMove[], trapped?: boolean, maybeTrapped?: boolean, canTerastallize?: string, canDynamax?: boolean,
 *   canMegaEvo?: boolean, canUltraBurst?: boolean, canZMove?: ({move: string} | null)[], maxMoves?: {maxMoves: {move: string}[]}}} ActiveRequest
 * @typedef {{ident: string, details: string, condition: string, active: boolean, stats: Record<string, number>, moves: string[],
 *   baseAbility: string, ability?: string, item: string, teraType?: string, terastallized?: string, reviving?: boolean}} RequestMember
 * @typedef {{wait?: boolean, update?: boolean, teamPreview?: boolean, maxChosenTeamSize?: number, forceSwitch?: boolean[], active?: ActiveRequest[],
 *   side: {pokemon: RequestMember[]}}} Request
 * @typedef {Record<string, any> & {id: string, effectType: string, flags?: Record<string, unknown>}} Effect
 * @typedef {{all(): any[], get(name: string): any, getByID(id: string): any}} DexTable
 * @typedef {{gen: number, currentMod: string, species: DexTable, moves: DexTable, items: DexTable, abilities: DexTable,
 *   conditions: DexTable, types: DexTable, formats: DexTable, data: Record<string, Record<string, any>>,
 *   forFormat(format: any): Dex}} Dex
 * @typedef {{hp: number, maxhp: number, fainted: boolean, status: string, isActive: boolean, side: Side, ability: string,
 *   item: string, baseSpecies: Effect, volatiles: Record<string, any>, position: number, statusState: any, abilityState: any,
 *   itemState: any, speciesState: any, getStatus(): Effect, getAbility(): Effect, getItem(): Effect, clearStatus: Function,
 *   removeVolatile: Function, clearAbility: Function, clearItem: Function}} Pokemon
 * @typedef {{id: string, n: number, active: Pokemon[], pokemon: Pokemon[], pokemonLeft: number, allySide: Side | null,
 *   activeRequest: Request | null, choice: {error: string}, slotConditions: Record<string, any>[], allies(): Pokemon[],
 *   foes(): Pokemon[], isChoiceDone(): boolean}} Side
 * @typedef {{log: string[], sides: Side[], field: any, turn: number, ended: boolean, winner: string, eventDepth: number,
 *   sentLogPos: number, format: Effect, formatData: any, events: any, dex: Dex, gen: number, inputLog: string[],
 *   choose(side: string, choice: string): boolean, destroy(): void}} Battle
 * @typedef {{version: string, Battle: new (options: object) => Battle, Pokemon: Function, Side: Function, Dex: Dex,
 *   Teams: {generate(format: any, options: object): object[], pack(team: object[]): string, import(text: string): object[] | null},
 *   TeamValidator: {get(format: any): {validateTeam(team: object[]): string[] | null}}}} Simulator
 */

/**
 * @param {string} modules the folder that holds node_modules
 * @returns {Simulator}
 */
export function loadSimulator(modules) {
  const load = createRequire(join(modules, 'package.json'));
  const {version} = load('pokemon-showdown/package.json');
  return {...load('pokemon-showdown'), version};
}
