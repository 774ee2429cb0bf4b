import { execFileSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'

/** Plugins that await native calls, that await nothing, and that end their lane. */
export const NATIVE = [fixtureDomains('native'), SYSTEM_ROUTES]

/** How many processes sleep for so long. */
export function sleeping(seconds: number): number {
  const list = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  return list.split('\n').filter((args) => args === `sleep ${seconds}`).length
}

/** A time that no other test sleeps for. Whoever sleeps for it after the test is ended. */
export function someSeconds(t: TestContext): number {
  const seconds = 100_000 + Math.floor(Math.random() * 100_000)
  t.after(() => execFileSync('sh', ['-c', `pkill -f '^sleep ${seconds}$' || true`]))
  return seconds
}
