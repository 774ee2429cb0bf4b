import { nearestName } from '../../core/config/nearest-name.ts'

/** Names that are remembered; a plugin may invent any number of them. */
const NAMES_MAX = 1000

export interface UndeclaredEvent {
  event: string
  /** The plugin that publishes it, or subscribes to it; undefined when it is not known. */
  plugin: string | undefined
  /** Where in its code: `domains/shop/plugins/buy.ts:12`. */
  place: string
  /** Names of all events that have a contract. */
  declared: readonly string[]
}

/** Warns of events that no contract declares, in development: once per name. */
export class UndeclaredEvents {
  readonly #names = new Set<string>()

  /** True when the name has not been seen before. */
  isNew(event: string): boolean {
    if (this.#names.has(event) || this.#names.size >= NAMES_MAX) return false
    this.#names.add(event)
    return true
  }
}

/** The warning of an event that is published. */
export function undeclared({ event, plugin, place, declared }: UndeclaredEvent): string {
  const folder = plugin === undefined ? '<domain>' : plugin.split('.', 1)[0]
  const write = `write '${event}': z.object({ … }) into domains/${folder}/events.ts`
  const who = plugin === undefined ? '' : ` by ${plugin}`
  return `The event '${event}' is published${who} at ${place}, and no contract declares it: its payload is not checked. Fix: ${meant(event, declared)}${write}`
}

/** The warning of a subscription whose event is probably misspelt; undefined where no contract has a similar name. */
export function misspelt({ event, plugin, place, declared }: UndeclaredEvent): string | undefined {
  const hint = meant(event, declared)
  if (hint === '') return undefined
  return `${plugin ?? 'A plugin'} subscribes to '${event}' at ${place}, and no contract declares it. Fix: ${hint}correct the name, or declare the event in an events.ts`
}

function meant(event: string, declared: readonly string[]): string {
  const name = nearestName(event, declared)
  return name === undefined ? '' : `did you mean '${name}'? Else `
}
