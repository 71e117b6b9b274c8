/** Where battles get their teams: from the format's own generator, or from the user's files, judged by its validator. */

import {BANK, DEAL, key, simulatorSeed} from './random.js';

/**
 * @typedef {import('./simulator.js').Simulator} Simulator
 * @typedef {{file: string, text: string}} TeamFile
 */

export const REFRESH = 512; // games of a table for which a generated team stays in the pool

/** A format or a team that cannot be played; `content` says what is wrong in the parts of a sentence. */
export class RulesError extends Error {
  /** @param {{kind: string} & Record<string, unknown>} content */
  constructor(content) {
    super(content.kind);
    this.content = content;
  }
}

/** The format of a name, if it is one for singles. @param {Simulator} simulator @param {string} name */
export function findFormat({Dex}, name) {
  const format = Dex.formats.get(name);
  if (!format.exists || format.effectType !== 'Format' || format.gameType !== 'singles') {
    const known = Dex.formats.all().filter(each => each.effectType === 'Format' && each.gameType === 'singles').map(each => each.id);
    throw new RulesError({kind: 'format', format: name, known});
  }
  return format;
}

/**
 * The teams in a file: packed, one a line, or exported, each under a `===` line of its own, which names it.
 * @param {string} text @returns {{title: string, text: string}[]} without a title where there is only one
 */
function split(text) {
  const lines = text.split(/\r?\n/).map(line => line.trim());
  const filled = lines.filter(line => line && !line.startsWith('==='));
  if (filled.length && filled.every(line => line.split('|').length > 8)) {
    return filled.map((line, i) => ({title: filled.length > 1 ? `team ${i + 1}` : '', text: line}));
  }
  const found = [{title: '', text: ''}];
  for (const line of lines) {
    if (line.startsWith('===')) found.push({title: line.replace(/^=+\s*|\s*=+$/g, ''), text: ''});
    else found[found.length - 1].text += `${line}\n`;
  }
  const teams = found.filter(each => each.text.trim());
  return teams.map(({title, text: own}, i) => ({title: teams.length > 1 ? title || `team ${i + 1}` : '', text: own}));
}

/**
 * The teams of the user's files, packed as the format's validator leaves them.
 * @param {Simulator} simulator @param {any} format @param {TeamFile[]} files
 */
export function readTeams({Teams, TeamValidator}, format, files) {
  if (format.team && files.length) throw new RulesError({kind: 'generated', format: format.id, file: files[0].file});
  if (!format.team && !files.length) throw new RulesError({kind: 'teamless', format: format.id});
  const validator = files.length ? TeamValidator.get(format) : null, teams = [];
  for (const {file, text} of files) {
    const found = split(text);
    if (!found.length) throw new RulesError({kind: 'team', format: format.id, file, title: '', problems: ['there is no Pokémon in it.']});
    for (const {title, text: own} of found) {
      const team = Teams.import(own.trim());
      const problems = team?.length ? validator?.validateTeam(team) : ['it cannot be read as a team.'];
      if (problems?.length) throw new RulesError({kind: 'team', format: format.id, file, title, problems});
      teams.push(Teams.pack(team ?? []));
    }
  }
  return teams;
}

/** The teams that battles are drawn from. */
export class TeamBank {
  /** @param {Simulator} simulator @param {any} format @param {TeamFile[]} files @param {bigint} seed @param {number} size of the pool, where teams are generated */
  constructor(simulator, format, files, seed, size) {
    this.simulator = simulator;
    this.format = format.id;
    this.seed = seed;
    this.given = readTeams(simulator, format, files);
    this.size = this.given.length || size;
    /** @type {Map<number, {age: number, team: string}>} the newest of each number */
    this.made = new Map();
  }

  /** A seat's team, the same in every process. @param {number} deal @param {number} game @param {number} seat */
  draw(deal, game, seat) {
    const number = Number(key(this.seed, [DEAL, deal, game, seat, 0, 1]) % BigInt(this.size));
    return this.given.length ? this.given[number] : this.team(number, game);
  }

  /**
   * A generated team, made when it is first wanted. Each number stands for another team every REFRESH games, some numbers with every game,
   * so that making them costs the same at any time. @param {number} number @param {number} game
   */
  team(number, game) {
    const age = Math.floor((game + number % REFRESH) / REFRESH), known = this.made.get(number);
    if (known?.age === age) return known.team;
    const {Teams} = this.simulator, seed = simulatorSeed(key(this.seed, [BANK, number, age, 0, 0, 0]));
    const team = Teams.pack(Teams.generate(this.format, {seed}));
    if (!known || known.age < age) this.made.set(number, {age, team}); // a table that is behind does not bring back old ones
    return team;
  }
}
