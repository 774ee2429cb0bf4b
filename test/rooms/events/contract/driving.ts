import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { Heddle, LogLine } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'

export const DOMAINS = [fileURLToPath(new URL('../../../fixtures/events', import.meta.url))]
export const LANES = 3

export interface Seen extends LogLine {
  by: string
  thread: number
  /** When it was logged, milliseconds since the epoch with their fractions. */
  atMs: number
  tag: unknown
  n: number
  // biome-ignore lint/suspicious/noExplicitAny: whatever the test has published
  data: any
  // biome-ignore lint/suspicious/noExplicitAny: the event's meta data
  event: any
}

export async function post(heddle: Heddle, path: string, body: unknown = {}) {
  const answer = await heddle.post(path, body)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

export const seen = (heddle: Heddle, name: string, tag?: string): Seen[] =>
  heddle.logs.filter(({ msg, tag: of }) => msg === name && (tag === undefined || of === tag)) as Seen[]

export const seenOften = (heddle: Heddle, name: string, tag: string | undefined, count: number) =>
  until(() => seen(heddle, name, tag).length >= count, `${count} of ${name} ${tag ?? ''}`)

/** An event of its own that has gone all the way: whatever was published before it would have arrived too. */
export async function settled(heddle: Heddle): Promise<void> {
  await until(async () => (await heddle.json('/history')).status === 200, 'an answer')
  await new Promise((resolve) => setTimeout(resolve, 60))
}
