import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

/** A plugin that starts processes in many ways, and ends its lane in some; and one of the primary that starts another. */
export const TREES = [fixtureDomains('children'), SYSTEM_ROUTES]

/** Trees at most, and one place for the primary's process. */
const PLACES = 100

export interface Trees {
  /** Process id of the runtime. */
  runtime: number
  /** The names of those that live. */
  left(): string[]
  /** True while the primary's own process lives. */
  hasOwn(): boolean
}

/** Starts all of them, and one of the primary. Whatever is left of them ends with the test. */
export async function startTrees(t: TestContext, heddle: Heddle): Promise<Trees> {
  const first = 100_000 + PLACES * Math.floor(Math.random() * 100_000)
  const own = first + PLACES - 1
  t.after(() => {
    for (const [pid] of sleepers(first)) process.kill(pid, 'SIGKILL')
  })
  const { runtime } = (await heddle.json(`/own?seconds=${own}`)).body.data
  const names: string[] = (await heddle.json(`/trees?seconds=${first}`)).body.data
  const left = (): string[] => sleepers(first).flatMap(([, seconds]) => names[seconds - first] ?? [])
  const hasOwn = (): boolean => sleepers(first).some(([, seconds]) => seconds === own)
  await until(() => left().length === names.length && hasOwn(), 'all run')
  assert.ok(names.length > 10)
  return { runtime, left, hasOwn }
}

function sleepers(first: number): [pid: number, seconds: number][] {
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap((line) => {
    const [, pid, seconds] = /^ *(\d+) sleep (\d+)$/.exec(line) ?? []
    const isOurs = Number(seconds) >= first && Number(seconds) < first + PLACES
    return isOurs ? [[Number(pid), Number(seconds)]] : []
  })
}

/** Processes that have ended, of which their parent does not know. */
export function unheardOf(parent: number): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const stat = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : ''
      return stat.includes(`) Z ${parent} `) ? stat.split(' ').slice(0, 2).join(' ') : []
    } catch {
      return []
    }
  })
}
