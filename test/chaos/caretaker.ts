/** Looks after the dead letters of bad checks: edits and replays one, deletes another. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './faults.ts'
import type { Poster } from './orders.ts'

const LOOK_MS = 250
const ANSWER_MS = 5000
/** What the handler of a bad check says. */
const BAD = 'bad check'

interface Letter {
  id: string
  event_id: string
  error: string
  request_id: string
}

export class Caretaker {
  /** Events whose dead letters it has asked to be deleted. */
  readonly deleted = new Set<string>()
  readonly healed = { edited: 0, deleted: 0 }
  readonly #service: Poster
  readonly #random: Random
  /** Dead letter → what is to become of it: one that is to be edited is not deleted, since it may be an event again. */
  readonly #plans = new Map<string, 'edit' | 'delete'>()

  constructor(service: Poster, random: Random) {
    this.#service = service
    this.#random = random
  }

  async work(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.look()
      await sleep(LOOK_MS)
    }
  }

  /** @returns how many of them were there; below 0: nobody has said so */
  async look(): Promise<number> {
    try {
      const bad = (await this.letters()).filter(({ error }) => error.includes(BAD))
      for (const letter of bad) await this.#heal(letter)
      return bad.length
    } catch {
      return -1
    }
  }

  async #heal({ id, event_id: event, request_id: request }: Letter): Promise<void> {
    const plan = this.#plans.get(event) ?? (this.#random(2) === 0 ? 'edit' : 'delete')
    this.#plans.set(event, plan)
    if (plan === 'delete') {
      this.deleted.add(event)
      if (await this.#ask('DELETE', `/${id}`)) this.healed.deleted++
      return
    }
    const [, key, number] = /^kill-(key-\d+)-(\d+)$/.exec(request)!
    const payload = { number: Number(number), key, is_bad: false }
    if (!(await this.#ask('PUT', `/${id}`, { payload }))) return
    if (await this.#ask('POST', `/${id}/replay`)) this.healed.edited++
  }

  /** All that are there. @throws when nobody answers */
  async letters(): Promise<Letter[]> {
    const answer = await this.#service.fetch('/system/dead-letters', { signal: AbortSignal.timeout(ANSWER_MS) })
    if (!answer.ok) throw new Error(`the dead letters cannot be listed: ${answer.status}`)
    return (await answer.json()) as Letter[]
  }

  async #ask(method: string, path: string, body?: object): Promise<boolean> {
    const answer = await this.#service.fetch(`/system/dead-letters${path}`, {
      method,
      signal: AbortSignal.timeout(ANSWER_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    return answer.ok
  }
}
