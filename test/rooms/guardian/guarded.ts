import { readFile } from 'node:fs/promises'
import type { TestContext } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

export const RISKY = fixtureDomains('guarded')
export const ABORTING_AT_BOOT = fixtureDomains('guarded-boot')
/** A start takes this long at most on a machine that is busy. */
const START_MS = 60_000

export interface Guarded extends Heddle {
  /** The runtime's process id; waits for it to serve, and to be another process than `before`. */
  pid(before?: number): Promise<number>
  /** Sends a request that is not answered, because the process dies of it. */
  die(path: string): Promise<void>
}

/** The service under its guardian, on a port that it keeps. */
export async function startGuarded(
  t: TestContext,
  env: Record<string, string> = {},
  beside: readonly string[] = [],
): Promise<Guarded> {
  const heddle = await startHeddle(t, {
    isGuarded: true,
    lanes: 1,
    domains: [RISKY, SYSTEM_ROUTES, ...beside],
    env: { HTTP_PORT: String(await freePort()), ...env },
  })
  const pid = (before = 0): Promise<number> =>
    until(
      async () => {
        try {
          const { body } = await heddle.json('/pid')
          return body.pid === before ? 0 : (body.pid as number)
        } catch {
          return 0
        }
      },
      'the runtime serves',
      START_MS,
    )
  const die = async (path: string): Promise<void> => {
    await heddle.fetch(path).then(
      (response) => {
        throw new Error(`${path} was answered with ${response.status}`)
      },
      () => {},
    )
  }
  return Object.assign(heddle, { pid, die })
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Resident memory of a process, KiB. */
export async function residentKib(pid: number): Promise<number> {
  return Number(/VmRSS:\s*(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1])
}
