import assert from 'node:assert/strict'
import { after, before, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, type LogLine, startHeddle } from './heddle.ts'
import { ask } from './raw-client.ts'

export const SERVING = fileURLToPath(new URL('../fixtures/http/serving', import.meta.url))
export const COLLIDING = fileURLToPath(new URL('../fixtures/http/colliding', import.meta.url))
const ERROR_LEVEL = 50

interface SharedOptions {
  domains?: string
  env?: Record<string, string>
  /** Lines of level ERROR that the tests of this file cause. */
  expectedError?: (line: LogLine) => boolean
}

/**
 * One process for all tests of a file. After them it must still answer, end with code 0 when told to stop, and have logged no
 * error that is not expected.
 */
export function shareHeddle({ domains = SERVING, env = {}, expectedError = () => false }: SharedOptions = {}) {
  let heddle: Heddle
  const cleanups: (() => unknown)[] = []
  before(async () => {
    const owner = { after: (cleanup: () => unknown) => cleanups.push(cleanup) } as unknown as TestContext
    heddle = await startHeddle(owner, { domains: [domains], lanes: 2, env: { LANE_MAX_INFLIGHT: '256', ...env } })
  })
  after(async () => {
    try {
      if (domains === SERVING) await assertAnswers(heddle.port)
      assert.equal(await heddle.stop(), 0, 'the exit code')
      const unexpected = heddle.logs.filter((line) => line.level >= ERROR_LEVEL && !expectedError(line))
      assert.deepEqual(unexpected, [], 'errors in the log')
    } finally {
      for (const cleanup of cleanups) await cleanup()
    }
  })
  return {
    get port(): number {
      return heddle.port
    },
    get logs(): LogLine[] {
      return heddle.logs
    },
    get pid(): number {
      return heddle.process.pid!
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
