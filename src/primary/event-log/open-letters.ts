// Dead letters that events wait for, and those that are being replayed, as the log has them.
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Hub } from '../events/hub.ts'
import type { SetAside } from './set-aside.ts'
import type { OpenLetter, SqlLog, StoredRow } from './sql-log.ts'
import type { StoredEvents } from './stored-events.ts'

/** How often other processes' letters are looked at while keys wait here, milliseconds. */
const LOOK_MS = 1000

interface OpenLettersParts {
  hub: Hub
  log: SqlLog
  events: StoredEvents
  setAside: SetAside
  /** True for the position of an event that this process has, or is about to read. */
  isAtHand: (seq: number) => boolean
}

/** What the log knows of keys that wait behind dead letters: the hub's parked keys as they are stored. */
export class OpenLetters {
  readonly #hub: Hub
  readonly #log: SqlLog
  readonly #events: StoredEvents
  readonly #setAside: SetAside
  readonly #isAtHand: (seq: number) => boolean
  /** Replays that had not ended when they were read of, by the positions of their events. */
  readonly #openReplays = new Map<number, OpenLetter>()
  #lookedMs = 0
  /** The ended process whose letters are known here. */
  #learnedOf = 0

  constructor({ hub, log, events, setAside, isAtHand }: OpenLettersParts) {
    this.#hub = hub
    this.#log = log
    this.#events = events
    this.#setAside = setAside
    this.#isAtHand = isAtHand
  }

  #readOpenLetters(): Promise<OpenLetter[]> {
    return this.#log.openLetters((id, why) => this.#setAside.tell('heddle_dead', id, why))
  }

  /** Reads what waits behind letters, and which are being replayed. */
  async learn(): Promise<void> {
    const open = await this.#readOpenLetters()
    this.#openReplays.clear()
    for (const letter of open) if (letter.seq > 0) this.#openReplays.set(letter.seq, letter)
    this.#hold(open)
  }

  /** Their keys wait, but for those whose replay is this process's own. */
  #hold(open: readonly OpenLetter[]): void {
    const { parked } = this.#hub
    for (const { id, place, isParked, seq } of open)
      if (isParked && (seq === 0 || parked.find(place)?.replay !== seq)) parked.hold(place, id)
  }

  /** Several processes share the letters: what another one has replayed or deleted goes on here. */
  async look(nowMs: number): Promise<void> {
    const { parked, deadLetters } = this.#hub
    if (parked.isEmpty || nowMs - this.#lookedMs < LOOK_MS) return
    this.#lookedMs = nowMs
    const known = parked.letters().filter(({ id }) => !this.#events.isStoring(id) && !deadLetters.has(id))
    const open = await this.#readOpenLetters()
    const ids = new Set(open.map(({ id }) => id))
    this.#findReplays(open)
    // A replay that has failed again elsewhere has left a new letter.
    this.#hold(open)
    for (const { id, place } of known) if (!ids.has(id)) parked.letterGone(place, id)
  }

  /** A replay that this process had begun may be another one's with its slot. */
  #findReplays(open: readonly OpenLetter[]): void {
    const { parked } = this.#hub
    for (const { place, position } of parked.replays()) {
      if (this.#isAtHand(position)) continue
      if (open.some(({ seq }) => seq === position)) parked.replayLeft(place)
      else parked.replayed(place)
    }
  }

  /** What an ended process had parked is parked here. @param epoch its number */
  async learnOf(epoch: number): Promise<void> {
    if (epoch === this.#learnedOf) return
    await this.learn()
    this.#learnedOf = epoch
  }

  /** An ended process may have begun to replay a letter with this event: it goes on here, before what waits for it. */
  learnReplay(seq: number): void {
    const letter = this.#openReplays.get(seq)
    if (letter === undefined) return
    this.#openReplays.delete(seq)
    this.#events.replaying(seq, letter.replayedMs)
    if (letter.isParked) this.#hub.parked.replaying(letter.place, letter.id, seq)
  }

  /** True when the event waits behind dead letters, for all its subscribers: no process has died of it. */
  isHeld({ event, key, seq }: EventFrame, left: StoredRow['left']): boolean {
    const { parked } = this.#hub
    if (key === null || parked.isEmpty) return false
    const groups = left?.map(({ group }) => group) ?? this.#hub.groupsOf(event)
    return groups.every((group) => {
      const found = parked.find({ event, group, key })
      return found !== undefined && found.replay !== seq
    })
  }
}
