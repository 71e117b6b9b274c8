/** Teams made up for the tests; none is meant to be good. */

export const MEADOW = `Rex (Arcanine) @ Heavy-Duty Boots
Ability: Flash Fire
Tera Type: Normal
EVs: 252 Atk / 4 Def / 252 Spe
Adamant Nature
- Flare Blitz
- Extreme Speed
- Wild Charge
- Morning Sun

Lilligant @ Life Orb
Ability: Own Tempo
Tera Type: Grass
EVs: 252 SpA / 4 SpD / 252 Spe
Timid Nature
IVs: 0 Atk
- Giga Drain
- Leech Seed
- Quiver Dance
- Pollen Puff

Azumarill @ Sitrus Berry
Ability: Huge Power
Tera Type: Water
EVs: 252 HP / 252 Atk / 4 SpD
Adamant Nature
- Aqua Jet
- Play Rough
- Liquidation
- Belly Drum

Magnezone @ Choice Specs
Ability: Sturdy
Tera Type: Electric
EVs: 4 Def / 252 SpA / 252 Spe
Modest Nature
- Thunderbolt
- Flash Cannon
- Volt Switch
- Tri Attack

Zoroark @ Focus Sash
Ability: Illusion
Tera Type: Dark
EVs: 252 SpA / 4 SpD / 252 Spe
Timid Nature
- Dark Pulse
- Flamethrower
- Nasty Plot
- U-turn

Gogoat @ Leftovers
Ability: Sap Sipper
Tera Type: Ground
EVs: 252 HP / 252 Atk / 4 Def
Adamant Nature
- Horn Leech
- Earthquake
- Milk Drink
- Bulk Up
`;

export const SHORE = `Gyarados (F) @ Lum Berry
Ability: Intimidate
Tera Type: Steel
EVs: 252 Atk / 4 Def / 252 Spe
Jolly Nature
- Waterfall
- Crunch
- Dragon Dance
- Earthquake

Toxapex @ Black Sludge
Ability: Regenerator
Tera Type: Poison
EVs: 252 HP / 252 Def / 4 SpD
Bold Nature
IVs: 0 Atk
- Surf
- Toxic Spikes
- Recover
- Haze

Ducky (Pelipper) @ Damp Rock
Ability: Drizzle
Tera Type: Water
EVs: 252 HP / 4 Def / 252 SpA
Modest Nature
- Hurricane
- Weather Ball
- Roost
- U-turn

Rhyperior @ Rocky Helmet
Ability: Solid Rock
Tera Type: Ground
EVs: 252 HP / 252 Atk / 4 SpD
Adamant Nature
- Earthquake
- Stone Edge
- Stealth Rock
- Ice Punch

Dudunsparce-Three-Segment @ Leftovers
Ability: Serene Grace
Tera Type: Ghost
EVs: 252 HP / 252 SpA / 4 SpD
Modest Nature
IVs: 0 Atk
- Boomburst
- Earth Power
- Calm Mind
- Roost

Ditto @ Choice Scarf
Ability: Imposter
Tera Type: Normal
EVs: 252 HP / 4 Def / 252 Spe
Jolly Nature
- Transform
`;
