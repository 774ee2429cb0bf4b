import assert from 'node:assert/strict'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { LogLine } from './heddle.ts'
import { ask } from './raw-client.ts'
import { shareService } from './shared-service.ts'

export const SERVING = fileURLToPath(new URL('../fixtures/http/serving', import.meta.url))
const ERROR_LEVEL = 50

interface SharedOptions {
  domains?: string
  env?: Record<string, string>
  /** Lines of level ERROR that the tests of this file cause. */
  expectedError?: (line: LogLine) => boolean
}

/** What is meant to be in the log of a service, by all who share it. */
const expectedErrors = new Map<string, ((line: LogLine) => boolean)[]>()

/**
 * One process for all tests of a file, and of others with the same options. After them it must still answer, end with code 0 when told to stop, and have logged
 * no error that is not expected.
 */
export function shareHeddle({ domains = SERVING, env = {}, expectedError }: SharedOptions = {}) {
  const options = { domains: [domains], lanes: 2, env: { LANE_MAX_INFLIGHT: '256', ...env } }
  const key = JSON.stringify(options)
  const expected = expectedErrors.get(key) ?? []
  expectedErrors.set(key, expected)
  if (expectedError !== undefined) expected.push(expectedError)
  if (domains === SERVING) after(() => assertAnswers(service().port))
  const service = shareService(options, ({ logs }) => {
    const errors = logs.filter((line) => line.level >= ERROR_LEVEL && !expected.some((isMeant) => isMeant(line)))
    assert.deepEqual(errors, [], 'errors in the log')
  })
  return {
    get port(): number {
      return service().port
    },
    get logs(): LogLine[] {
      return service().logs
    },
    get pid(): number {
      return service().process.pid!
    },
  }
}

/** The process still does what it is for, in both kinds of thread. */
export async function assertAnswers(port: number): Promise<void> {
  for (const prefix of ['/w', '/p']) {
    const response = await ask(port, 'GET', `${prefix}/echo/still-here`)
    assert.equal(response.status, 200)
    assert.equal(JSON.parse(response.body.toString()).data.data.id, 'still-here')
  }
}
