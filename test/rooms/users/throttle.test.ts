import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import type { LaneInfo } from '../../../src/contracts/registry.ts'
import { ON_SQLITE } from '../../support/databases.ts'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { CHEAP_AUTH, PASSWORD, UsersService } from '../../support/users-service.ts'

const THROTTLED = { success: false, error: 'Too many attempts, try again later' }

test('logins of one e-mail are counted once for all lanes', async (t) => {
  const limits = { LOGIN_MAX_ATTEMPTS: '6', LOGIN_WINDOW_MS: '90500' }
  const service = await UsersService.start(t, ON_SQLITE, limits, { tools: [CHEAP_AUTH] })
  const attempt = (email: string, password = 'wrong password') => service.post('/login', { email, password })

  const burstOf = async (email: string) => {
    await service.createUser(email)
    let pending = true
    const burst = Promise.all(Array.from({ length: 10 }, () => attempt(email))).finally(() => {
      pending = false
    })
    const busiest = new Map<number, number>()
    while (pending) {
      for (const { index, requests_in_flight } of (await service.heddle.json('/probe/lanes')).body as LaneInfo[]) {
        busiest.set(index, Math.max(busiest.get(index) ?? 0, requests_in_flight))
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const answers = await burst
    const statuses = answers.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 401, 429, 429, 429, 429])
    assert.equal(busiest.size, 2)
    return { answers, bothTookPart: Math.min(...busiest.values()) > 0 }
  }
  let { answers, bothTookPart } = await burstOf('ada@example.com')
  // On a busy machine one lane may be late for the whole burst: then another one tells.
  for (let more = 1; more <= 5 && !bothTookPart; more++) {
    ;({ answers, bothTookPart } = await burstOf(`ada${more}@example.com`))
  }
  assert.ok(bothTookPart, 'both lanes took part')
  for (const { status, headers, body } of answers) {
    if (status === 429) assert.deepEqual([headers.get('retry-after'), body], ['91', THROTTLED])
    else assert.equal(headers.get('retry-after'), null)
  }

  const right = await attempt('ADA@example.com', PASSWORD)
  assert.deepEqual([right.status, right.body], [429, THROTTLED], 'the right password and another case do not help')
  assert.equal((await attempt('nobody@example.com')).status, 401, 'another e-mail is not throttled')
})

/** A request from one of the machine's own addresses: all of 127.0.0.0/8 on Linux. @returns the status */
function postFrom(localAddress: string, port: number, path: string, body: object): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', localAddress, headers }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode!))
    })
    sent.on('error', reject).end(JSON.stringify(body))
  })
}

describe('addresses', { skip: process.platform !== 'linux' && 'other systems have one loopback address' }, () => {
  const STRANGER = '127.0.0.2'
  const OWNER = '127.0.0.3'
  const heddle = shareService(async (owner) => {
    const env = { TOOLS_DIR: await toolsDirWith(owner, CHEAP_AUTH), AUTH_HASH_QUEUE: '1000' }
    return startHeddle(owner, { lanes: 2, env })
  })
  const logIn = (from: string, email: string, password: string) =>
    postFrom(from, heddle().port, '/login', { email, password })
  const signUp = (from: string, email: string) =>
    postFrom(from, heddle().port, '/users', { name: 'Ada', email, password: PASSWORD })
  /**
   * Sends all at once. On a busy machine some are too many, and come again: until one is refused it counts as tried, and another may be throttled
   * for it.
   * @param most that are tried; the others are throttled
   */
  const onlySoMany = async (status: number, most: number, sends: readonly (() => Promise<number>)[]): Promise<void> => {
    let refused = 0
    const again = (send: () => Promise<number>): Promise<number> =>
      until(async () => {
        const answer = await send()
        if (answer !== 503) return answer
        refused++
        return null
      }, 'an answer to each')
    const { [status]: tried = 0, 429: throttled = 0, ...others } = counts(await Promise.all(sends.map(again)))
    assert.deepEqual([others, tried + throttled], [{}, sends.length])
    assert.ok(tried <= most && tried >= most - refused, `${tried} of ${most} were tried, ${refused} were refused`)
  }
  const counts = (statuses: number[]) => {
    const count: Record<number, number> = {}
    for (const status of statuses) count[status] = (count[status] ?? 0) + 1
    return count
  }

  test("a stranger's wrong tries do not lock the owner out, and not even the owner's own are let through for ever", async () => {
    assert.equal(await signUp(OWNER, 'ada@example.com'), 201)
    const tries: number[] = []
    for (let n = 0; n < 7; n++) tries.push(await logIn(STRANGER, 'ada@example.com', 'wrong password'))
    assert.deepEqual(tries, [401, 401, 401, 401, 401, 429, 429])
    assert.equal(await logIn(OWNER, 'ada@example.com', PASSWORD), 200)
    assert.equal(await logIn(STRANGER, 'ada@example.com', PASSWORD), 429, 'though the owner has logged in')
  })

  test('sixty e-mails from one address do not go through', async () => {
    const emails = Array.from({ length: 60 }, (_, n) => `user${n}@example.com`)
    const logins = emails.map((email) => () => logIn('127.0.0.4', email, 'wrong password'))
    await onlySoMany(401, 30, logins)
    assert.equal(await logIn('127.0.0.5', emails[0]!, 'wrong password'), 401, 'another address has its own count')
  })

  test('a good login does not count for its address', async () => {
    for (let round = 0; round < 8; round++) {
      const statuses = await Promise.all(Array.from({ length: 5 }, () => logIn(OWNER, 'ada@example.com', PASSWORD)))
      assert.deepEqual(counts(statuses), { 200: 5 })
    }
  })

  test('twenty sign-ups from one address in a minute, and no more', async () => {
    const flood = Array.from({ length: 64 }, (_, n) => () => signUp('127.0.0.6', `flood${n}@example.com`))
    await onlySoMany(201, 20, flood)
    assert.equal(await logIn(OWNER, 'ada@example.com', PASSWORD), 200)
    assert.equal(await signUp(OWNER, 'eve@example.com'), 201)
  })

  test('a login that cannot be tried does not count', async (t) => {
    const env = { AUTH_HASH_THREADS: '1', AUTH_HASH_QUEUE: '0', SIGNUP_MAX_PER_ADDRESS: '1000' }
    const { port } = await startHeddle(t, { lanes: 1, env })
    const ada = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }
    assert.equal(await postFrom(OWNER, port, '/users', ada), 201)
    assert.equal(await postFrom(OWNER, port, '/login', ada), 200)
    let isOver = false
    const busy = (async () => {
      while (!isOver) await postFrom(STRANGER, port, '/users', ada)
    })()
    const statuses: number[] = []
    while (statuses.filter((status) => status === 503).length < 8) {
      statuses.push(await postFrom(OWNER, port, '/login', ada))
    }
    isOver = true
    await busy
    assert.ok(!statuses.includes(429), statuses.join(' '))
  })
})
