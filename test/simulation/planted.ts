/** Faults that are planted in the hub, one at a time: the simulation is worth as much as it finds of them. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Engine } from './run.ts'
import type { StoredEngine } from './stored/run.ts'

export interface Planted {
  readonly what: string
  /** In src; left out: `primary/events`, or `primary/event-store` for the event store. */
  readonly folder?: string
  readonly file: string
  readonly text: string
  readonly instead: string
}

export const PLANTED: readonly Planted[] = [
  {
    what: 'events that a lane died with are dropped while all lanes start anew',
    file: 'quarantine.ts',
    text: 'if (delivery.consumer.isGone) this',
    instead:
      'if (delivery.consumer.isGone || (this.#lacksQuarantine(delivery.consumer) && delivery.consumer.instances.length === 0)) this',
  },
  {
    what: 'the backlog behind a dead letter of a departed subscriber stays',
    file: 'key-order.ts',
    text: 'if (delivery.consumer.isGone) return this.#options.drop(delivery)',
    instead: '',
  },
  {
    what: 'an event that only a quarantine lane has heard of stays',
    file: 'topology.ts',
    text: '    const { isQuarantine } = instance.thread\n',
    instead: '    const { isQuarantine } = instance.thread\n    this.topic(event)\n',
  },
  {
    what: 'keys are not looked at',
    file: 'key-order.ts',
    text: 'if (key !== null) {',
    instead: 'if (key === "none") {',
  },
  {
    what: 'the next of a key is forgotten',
    file: 'key-order.ts',
    text: 'else this.#advance(next)',
    instead: '',
  },
  {
    what: 'a key is left behind',
    file: 'key-order.ts',
    text: 'if (next === undefined) keyed.delete(key)\n    else this.#advance(next)',
    instead: 'if (next !== undefined) this.#advance(next)',
  },
  {
    what: 'dead letters block no key',
    file: 'key-order.ts',
    text: 'if (this.blocked.isEmpty || delivery.queue.instance !== null) return undefined',
    instead: 'if (delivery !== null) return undefined',
  },
  {
    what: 'unblocked deliveries are not counted down',
    file: 'key-order.ts',
    text: 'this.#count(next, -1)',
    instead: '',
  },
  {
    what: 'a replay waits behind its own dead letter',
    file: 'key-order.ts',
    text: 'if (blocked !== undefined && !isReplay(delivery, blocked.replay)) return',
    instead: 'if (blocked !== undefined) return',
  },
  {
    what: 'a replay unblocks its key as it begins',
    file: 'key-order.ts',
    text: 'blocked.deadLetters.delete(deadLetter)\n    blocked.replay = replay',
    instead:
      'blocked.replay = replay\n    this.deadLetterGone(place, deadLetter)\n    blocked.replay = null\n    this.#unblockIfDone(place, blocked)',
  },
  {
    what: 'a deleted dead letter still blocks its key',
    file: 'dead-letters.ts',
    text: 'if (deadLetter.parks) this.#parts.blockedKeys.deadLetterGone(placeOf(deadLetter), id)\n    return',
    instead: 'return',
  },
  {
    what: 'a dead letter dropped for a new one still blocks its key',
    file: 'dead-letters.ts',
    text: 'for (const old of dropped) if (old.parks) blockedKeys.deadLetterGone(placeOf(old), old.id)',
    instead: '',
  },
  {
    what: 'a dead letter is not kept',
    file: 'dead-letters.ts',
    text: 'this.#deadLetters.size > DEAD_LETTERS_MAX',
    instead: 'this.#deadLetters.size > 3',
  },
  {
    what: 'an edited dead letter keeps its payload',
    file: 'dead-letters.ts',
    text: 'const edited = { ...event, payload, payloadKeys: keys }',
    instead: 'const edited = { ...event, payloadKeys: keys }',
  },
  {
    what: 'one attempt too many',
    file: 'hub.ts',
    text: "failure === 'once' && attempt <= consumer.retries",
    instead: "failure === 'once' && attempt <= consumer.retries + 1",
  },
  {
    what: 'what no attempt can help is tried again',
    file: 'hub.ts',
    text: "this.#fail(delivery, error.message, error.unrecoverable ? 'unrecoverable' : 'once')",
    instead: "this.#fail(delivery, error.message, 'once')",
  },
  {
    what: 'an attempt counts that failed since a tool is away',
    file: 'hub.ts',
    text: 'if (error.away) this.#awaitTool',
    instead: 'if (error.away && error.code) this.#awaitTool',
  },
  {
    what: 'a delivery whose tool was away is forgotten',
    file: 'hub.ts',
    text: 'this.#quarantine.add(delivery)\n    else this.#waiting.unshift(delivery)',
    instead: 'this.#quarantine.add(delivery)',
  },
  {
    what: 'nobody looks whether a tool is back',
    file: 'hub.ts',
    text: 'this.#outages.look()',
    instead: '',
  },
  { what: 'attempts are not counted', file: 'hub.ts', text: 'delivery.attempt++', instead: '' },
  {
    what: 'a death is an attempt',
    file: 'hub.ts',
    text: 'delivery.deaths++',
    instead: 'delivery.deaths++\n        delivery.attempt++',
  },
  {
    what: 'what a dead lane never read is a suspect',
    file: 'hub.ts',
    text: 'if (unread.has(delivery.id)) this.#notBegun(delivery)\n      else if',
    instead: 'if',
  },
  {
    what: 'a lane that was told to end has killed nothing, and yet its events are suspects',
    file: 'hub.ts',
    text: 'else if (blackBox !== null && delivery',
    instead: 'else if (delivery',
  },
  {
    what: 'what a lane had is forgotten when it dies',
    file: 'hub.ts',
    text: 'else again.push(delivery)',
    instead: '',
  },
  {
    what: 'what a dead lane had goes behind those that wait',
    file: 'hub.ts',
    text: 'false)\n      else this.#waiting.unshift(delivery)',
    instead: 'false)\n      else this.#keys.finished(delivery)',
  },
  {
    what: 'a suspect goes to any lane',
    file: 'hub.ts',
    text: 'return mustBegin(delivery) ?',
    instead: 'if (mustBegin(delivery)) return mustBegin(delivery) ?',
  },
  {
    what: 'poison is tried a fourth time',
    file: 'quarantine.ts',
    text: 'POISON_DEATHS = 3',
    instead: 'POISON_DEATHS = 4',
  },
  {
    what: 'poison is given up after two deaths',
    file: 'quarantine.ts',
    text: 'POISON_DEATHS = 3',
    instead: 'POISON_DEATHS = 2',
  },
  {
    what: 'two suspects at a time',
    file: 'quarantine.ts',
    text: 'left > 0 && this.#current === null;',
    instead: 'left > 0;',
  },
  {
    what: 'a suspect that has ended goes on holding its place',
    file: 'quarantine.ts',
    text: 'this.#current = null\n    this.#isDue = true',
    instead: 'this.#isDue = true',
  },
  {
    what: 'nobody sees that the quarantine lane lacks a subscriber',
    file: 'quarantine.ts',
    text: 'this.#threads.add(thread)\n    this.#isDue = true',
    instead: 'this.#isDue = true',
  },
  {
    what: 'the quarantine lane goes on being wanted',
    file: 'quarantine.ts',
    text: 'if (isWanted === this.#isWanted) return',
    instead: 'if (isWanted === this.#isWanted || !isWanted) return',
  },
  {
    what: 'a quarantine lane gets what is no suspect',
    file: 'topology.ts',
    text: 'if (isQuarantine) consumer.quarantineInstances.push(instance)\n    else consumer',
    instead: 'if (isQuarantine) consumer.quarantineInstances.push(instance)\n    consumer',
  },
  {
    what: 'the time limit of an attempt is not kept',
    file: 'hub.ts',
    text: 'this.#unanswered.late(this.clock.steadyMs())',
    instead: 'this.#unanswered.late(0)',
  },
  {
    what: 'an attempt is given up too early',
    file: 'queues.ts',
    text: '+ delivery.consumer.timeoutMs',
    instead: '+ delivery.consumer.timeoutMs / 4',
  },
  {
    what: 'what a debugger holds counts as late',
    file: 'queues.ts',
    text: 'deadlineMs + heldMs + STILL_SEEN_MS <= nowMs',
    instead: 'deadlineMs + STILL_SEEN_MS <= nowMs',
  },
  {
    what: 'a late answer ends the attempt that follows',
    file: 'queues.ts',
    text: 'this.#nextId = (id + 1) & LAST_ID',
    instead: 'this.#nextId = ((id + 1) % 8) + 1',
  },
  {
    what: 'the places of a subscriber are not counted',
    file: 'consumer.ts',
    text: 'return this.inFlight < concurrency && (outage === null || outage.isDue)',
    instead: 'return this.inFlight <= concurrency && (outage === null || outage.isDue)',
  },
  {
    what: 'a place is lost with each answer',
    file: 'queues.ts',
    text: 'delivery.queue.inFlight--\n    this.#ended',
    instead: 'this.#ended',
  },
  {
    what: 'a paused plugin gets events in a new lane',
    file: 'topology.ts',
    text: 'instance.isPaused = this.#paused.has(instance.plugin)',
    instead: '',
  },
  {
    what: 'an event expires between two attempts',
    file: 'hub.ts',
    text: 'event.expiresMs !== 0 && !delivery.isBegun &&',
    instead: 'event.expiresMs !== 0 &&',
  },
  {
    what: 'an event never expires',
    file: 'hub.ts',
    text: 'return ttlMs === 0 ? 0 : this.clock.nowMs()',
    instead: 'return ttlMs === 0 ? 0 : 2 * this.clock.nowMs()',
  },
  {
    what: 'a delay is forgotten',
    file: 'hub.ts',
    text: 'if (source === null && delayMs > 0) this',
    instead: 'if (delayMs > 100) this.#budget.release(delivery)\n    else if (delayMs > 0) this',
  },
  {
    what: 'the budget is not given back',
    file: 'queue-budget.ts',
    text: 'consumer.pending--',
    instead: '',
  },
  {
    what: 'what a full ring refused is taken for sent',
    file: 'hub.ts',
    text: 'if (!instance.thread.send(id, event)) {',
    instead: 'if (!instance.thread.send(id, event) && isLimited) {',
  },
  {
    what: 'what waits for a subscriber that has left is kept',
    file: 'hub.ts',
    text: 'this.groups?.changed?.(consumer.event)\n    this.#dropWaiting(consumer)',
    instead: '',
  },
  {
    what: 'the instances of a thread that is gone stay',
    file: 'hub.ts',
    text: 'this.#topology.removeThread(thread)',
    instead: '',
  },
  {
    what: 'consumers that no lane has stay',
    file: 'hub.ts',
    text: 'this.#topology.drop(consumer)\n      this.#groupGone(consumer)',
    instead: '',
  },
  // Rare: found in the 3,820th seed.
  {
    what: 'the dead letter of a departed subscriber blocks its key',
    file: 'hub.ts',
    text: 'parks: consumer.parks && !consumer.isGone &&',
    instead: 'parks: consumer.parks &&',
  },
]

const SRC = fileURLToPath(new URL('../../src', import.meta.url))
/** They import each other: a copy must not meet the original. */
const COPIED = ['primary/events', 'primary/event-store', 'runtime/event-store']
const HUB = ['primary/events/hub', 'primary/events/lane-subscribers']
const STORED = [
  ...HUB,
  'primary/event-store/durable',
  'primary/event-store/shared-limits',
  'primary/event-store/shared-permits',
  'primary/event-store/stored-dead-letters',
  'runtime/event-store/following',
  'runtime/event-store/report',
  'runtime/event-store/write-changes',
]
const DATA = fileURLToPath(new URL('../../data', import.meta.url))

/** Copies of the hub and the log with faults planted in them. */
export class Nursery {
  readonly #folder: string
  #count = 0

  constructor() {
    mkdirSync(DATA, { recursive: true })
    this.#folder = mkdtempSync(join(DATA, 'simulation-'))
  }

  /** In the hub. */
  async plant(planted: Planted): Promise<Engine> {
    return { ...(await this.#load(planted, 'primary/events', HUB)) } as unknown as Engine
  }

  /** In the event store. */
  async plantInLog(planted: Planted): Promise<StoredEngine> {
    return { ...(await this.#load(planted, 'primary/event-store', STORED)) } as unknown as StoredEngine
  }

  /** @param folder where the file is unless it says so. @param names the modules that are wanted */
  async #load(planted: Planted, folder: string, names: readonly string[]): Promise<object> {
    const { file, text, instead } = planted
    const src = join(this.#folder, String(++this.#count), 'src')
    link('', src)
    const path = join(src, planted.folder ?? folder, file)
    const before = readFileSync(path, 'utf8')
    const parts = before.split(text)
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${text}`)
    writeFileSync(path, parts.join(instead))
    const modules = await Promise.all(names.map((name) => import(pathToFileURL(join(src, `${name}.ts`)).href)))
    return Object.assign({}, ...modules)
  }

  end(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Copies the folders that are to be copied, and names the others where they are. @param within a folder in src */
function link(within: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(join(SRC, within))) {
    const path = within === '' ? name : `${within}/${name}`
    if (COPIED.includes(path)) cpSync(join(SRC, path), join(to, name), { recursive: true })
    else if (COPIED.some((copied) => copied.startsWith(`${path}/`))) link(path, join(to, name))
    else symlinkSync(join(SRC, path), join(to, name))
  }
}
