/** The contract of what keeps events: the rules that hold on each log, over processes that publish, are asked, and die. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Owner } from '../support/heddle.ts'
import { suiteOwner } from '../support/shared-service.ts'
import { AWAY } from './log-away.ts'
import { benchOn, type Place } from './log-bench.ts'
import { DELIVERY } from './log-delivery.ts'
import { GROUPS } from './log-groups.ts'
import { KEYS } from './log-keys.ts'
import { LANES } from './log-lanes.ts'
import { LETTERS } from './log-letters.ts'
import { OUTLIVES } from './log-outlives.ts'
import { PARKING } from './log-parking.ts'
import { PROCESSES } from './log-processes.ts'
import { isEmpty } from './log-rule.ts'
import type { Rules } from './log-store.ts'

interface Part {
  rules: Rules
  /** Each rule has a log of its own, because it ends processes. In the end nothing may be left in it. */
  isOwn?: boolean
  hasOwnServer?: boolean
}

const PARTS = {
  delivery: { rules: DELIVERY },
  keys: { rules: KEYS },
  letters: { rules: LETTERS },
  parking: { rules: PARKING },
  'one process': { rules: LANES, isOwn: true },
  'outlives its process': { rules: OUTLIVES, isOwn: true },
  'absent groups': { rules: GROUPS, isOwn: true },
  'a server that is away': { rules: AWAY, isOwn: true, hasOwnServer: true },
  'several processes': { rules: PROCESSES, isOwn: true },
} satisfies Record<string, Part>

export type LogPart = keyof typeof PARTS
export type LogRule =
  | keyof typeof DELIVERY
  | keyof typeof KEYS
  | keyof typeof LETTERS
  | keyof typeof PARKING
  | keyof typeof LANES
  | keyof typeof OUTLIVES
  | keyof typeof GROUPS
  | keyof typeof AWAY
  | keyof typeof PROCESSES

/** What a log does not do: the rule runs all the same, and has to fail. */
export interface Lack {
  reason: string
  failsWith: RegExp
}

/** Rules that run at a time: most of them wait most of the time. */
const CONCURRENCY = 3
/** The last resort. Each wait of a rule has a limit of its own, which names what it waits for, and is longer where the cores are contended. */
const TIMEOUT_MS = 1_200_000
/** What a log does not do is not waited for as long. */
const LACK_PATIENCE_MS = 3000
const PATIENCE_MS = 60_000

export interface LogKind {
  name: string
  /** Makes an empty one; null where there is no such server. It ends with its owner. */
  place(owner: Owner, hasOwnServer: boolean): Promise<Place | null>
  /** Rules, or parts of them: of a part its first rule has to fail, and the others do not run. */
  lacks?: Partial<Record<LogRule | LogPart, Lack>>
}

/** @param which the rules that are asked of one process with several lanes, those that have logs of their own, or some by name */
export function logContract({ name, place, lacks = {} }: LogKind, which: 'shared' | 'own' | readonly LogRule[]): void {
  const isKnown = (lack: string): boolean =>
    lack in PARTS || Object.values<Part>(PARTS).some(({ rules }) => lack in rules)
  assert.deepEqual(
    Object.keys(lacks).filter((lack) => !isKnown(lack)),
    [],
  )
  describe(`the contract of logs: ${name}`, { concurrency: CONCURRENCY }, () => {
    const made = benchOn(suiteOwner(), place)
    for (const [part, { rules, isOwn = false, hasOwnServer = false }] of Object.entries<Part>(PARTS)) {
      if (typeof which === 'string' && isOwn !== (which === 'own')) continue
      const partLack = lacks[part as LogPart]
      for (const [index, [rule, run]] of Object.entries(rules).entries()) {
        if (partLack !== undefined && index > 0) break
        if (typeof which !== 'string' && !which.includes(rule as LogRule)) continue
        const lack = partLack ?? lacks[rule as LogRule]
        const title = lack === undefined ? rule : `not: ${partLack ? part : rule} (${lack.reason})`
        void test(title, { timeout: TIMEOUT_MS }, async (t) => {
          const store = isOwn ? await made.own(t, hasOwnServer) : await made.shared()
          if (store === null) return t.skip('there is no such server')
          // The shared one is given to rules that have to fail, and to others.
          const log = { ...store, patienceMs: lack === undefined ? PATIENCE_MS : LACK_PATIENCE_MS }
          if (lack !== undefined) return assert.rejects(run(log, rule), lack.failsWith)
          await run(log, rule)
          if (isOwn) await isEmpty(log)
        })
      }
    }
  })
}
