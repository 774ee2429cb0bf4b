import { execFileSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'

const DOMAINS = [SYSTEM_ROUTES, fixtureDomains('durable')]
export const LIMIT_MS = 500
export const ENDLESS = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)'

export const start = (t: TestContext, env: Record<string, string> = {}): Promise<Heddle> =>
  startHeddle(t, { domains: DOMAINS, lanes: 2, env: { RDB_STATEMENT_TIMEOUT_MS: String(LIMIT_MS), ...env } })

export const run = (heddle: Heddle, sql: string, rest: object = {}) => heddle.post('/sql', { sql, ...rest })

/** Processes that the service has started for statements. */
export function children({ process: { pid } }: Heddle): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,stat=,args=']).toString().split('\n')
  return lines.flatMap((line) => {
    const [child, parent, state, ...args] = line.trim().split(/\s+/)
    const counts = Number(parent) === pid && !state!.startsWith('Z') && args.join(' ').includes('statement-child')
    return counts ? [Number(child)] : []
  })
}
