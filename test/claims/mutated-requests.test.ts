import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseAnswers } from '../rooms/hostile/answers.ts'
import { makePlan, type Plan } from '../rooms/hostile/mutation.ts'
import { MIB, residentBytes, TARGET_DOMAINS } from '../rooms/hostile/target.ts'
import { makeToken, TOKEN } from '../rooms/hostile/valid-requests.ts'
import { Random } from '../support/random.ts'
import { ask, jsonOf, RawConnection } from '../support/raw-client.ts'
import { assertAnswers, shareHeddle } from '../support/shared-process.ts'
import { until } from '../support/until.ts'

const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 32)
/** Every run has a seed of its own, so that many short ones find what a long one would. A count: a slow machine need not find less. */
const CONNECTIONS = Number(process.env.FUZZ_CONNECTIONS ?? 2_000)
/** What the process needs at first says nothing about its growth. */
const WARM_UP_CONNECTIONS = Math.min(2_500, CONNECTIONS / 2)
/** Connections at a time. */
const CLIENTS = 64
const WAIT_MAX_MS = 250
const QUIET_MS = 30
/** A library that cannot read a request at all takes it for a wrong version. There is no other answer of that kind. */
const ALLOWED_5XX = new Set([505])
const MEMORY_GROWTH_MAX = 128 * MIB

const heddle = shareHeddle({ env: { DOMAINS_DIR: TARGET_DOMAINS, HTTP_CORS_ORIGINS: 'http://elsewhere.test' } })

/** Of every request that was ever sent, and the connection that sent it. */
const owners = new Map<string, string>()
const statuses = new Map<number, number>()
let connections = 0

/** Each connection has a seed of its own: what it sends does not hang on what the others do. */
function seedOf(client: number, round: number): number {
  return (SEED ^ Math.imul(client + 1, 0x9e3779b1) ^ Math.imul(round + 1, 0x85ebca6b)) >>> 0
}

async function run(client: number, round: number): Promise<void> {
  const name = `client ${client}, round ${round}`
  const plan = makePlan(new Random(seedOf(client, round)))
  for (const token of plan.tokens) owners.set(token, name)
  const { bytes, isLeft } = await perform(plan)
  try {
    check(bytes, isLeft, name)
  } catch (cause) {
    const sent = plan.writes.map((write) => JSON.stringify(write.toString('latin1'))).join('\n')
    const came = JSON.stringify(bytes.toString('latin1'))
    throw new Error(`FUZZ_SEED=${SEED}, ${name}: ${(cause as Error).message}\nsent:\n${sent}\ncame:\n${came}`, {
      cause,
    })
  }
}

async function perform({ writes, ending }: Plan): Promise<{ bytes: Buffer; isLeft: boolean }> {
  const connection = await RawConnection.open(heddle.port)
  connections++
  for (const [n, bytes] of writes.entries()) {
    if (n > 0) await new Promise((resolve) => setTimeout(resolve, 2))
    await connection.send(bytes)
  }
  if (ending === 'wait') await quiet(connection)
  else connection[ending]()
  if (ending === 'halfClose') await quiet(connection)
  const isLeft = !connection.isClosed || ending === 'drop' || ending === 'reset'
  const bytes = connection.rest
  connection.drop()
  return { bytes, isLeft }
}

/** Until the other side has closed, or has said all that it is going to say. */
async function quiet(connection: RawConnection): Promise<void> {
  const startedMs = performance.now()
  let bytes = 0
  let changedMs = startedMs
  for (;;) {
    const nowMs = performance.now()
    if (connection.rest.length !== bytes) {
      bytes = connection.rest.length
      changedMs = nowMs
    }
    const waitMs = bytes > 0 ? QUIET_MS : WAIT_MAX_MS
    if (connection.isClosed || nowMs - changedMs > waitMs) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function check(bytes: Buffer, isLeft: boolean, name: string): void {
  const { all, cutShort } = parseAnswers(bytes)
  for (const { status, head, body } of all) {
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    assert.ok(status < 500 || ALLOWED_5XX.has(status), `an answer of ${status}`)
    for (const [token] of (head + body.toString('latin1')).matchAll(TOKEN)) {
      const owner = owners.get(token)
      assert.ok(owner === undefined || owner === name, `the answer belongs to ${owner}`)
    }
  }
  // The library closes a connection on which a second request comes too early: inside a stream, but never inside an answer.
  assert.ok(isLeft || cutShort !== 'answer', 'the server closed inside an answer')
}

/** A client that does nothing wrong all the while. Resolves with its slowest answer, milliseconds. */
async function behave(isOver: () => boolean): Promise<number> {
  const random = new Random(SEED)
  let worstMs = 0
  for (let n = 0; !isOver(); n++) {
    const token = makeToken(random)
    const startedMs = performance.now()
    const response = await ask(heddle.port, 'GET', `${n % 2 ? '/w' : '/p'}/echo/${token}`)
    assert.equal(response.status, 200)
    assert.equal(jsonOf(response).data.data.id, token)
    worstMs = Math.max(worstMs, performance.now() - startedMs)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return worstMs
}

/** @returns the slowest answer to the client that does nothing wrong, milliseconds */
async function fuzz(count: number, firstRound: number): Promise<number> {
  const enough = connections + count
  const isOver = (): boolean => connections >= enough
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let round = firstRound; !isOver(); round++) await run(client, round)
  })
  const [worstMs] = await Promise.all([behave(isOver), ...clients])
  return worstMs
}

it(`survives ${CONNECTIONS} connections with mutated requests`, { timeout: 120_000 + CONNECTIONS * 10 }, async (t) => {
  t.diagnostic(`FUZZ_SEED=${SEED} FUZZ_CONNECTIONS=${CONNECTIONS}`)
  await fuzz(WARM_UP_CONNECTIONS, 1_000_000)
  const before = await residentBytes(heddle.pid)
  const pid = heddle.pid
  const worstMs = await fuzz(CONNECTIONS - WARM_UP_CONNECTIONS, 0)
  t.diagnostic(`${connections} connections; answers: ${JSON.stringify(Object.fromEntries([...statuses].sort()))}`)
  t.diagnostic(`the slowest answer to a client that does nothing wrong took ${worstMs.toFixed(0)} ms`)

  assert.equal(heddle.pid, pid)
  await assertAnswers(heddle.port)
  assert.equal((await ask(heddle.port, 'GET', '/system/health/ready')).status, 200)
  assert.equal((await ask(heddle.port, 'GET', '/system/health/live')).status, 200)
  const lanes = jsonOf(await ask(heddle.port, 'GET', '/system/lanes'))
  assert.equal(lanes.length, 2)
  for (const lane of lanes) assert.equal(lane.restarts, 0, JSON.stringify(lane))
  await until(
    async () =>
      jsonOf(await ask(heddle.port, 'GET', '/system/lanes')).every(
        (lane: { requests_in_flight: number }) => lane.requests_in_flight === 0,
      ),
    'no request is left behind in a lane',
    15_000,
  )
  if (before !== undefined) {
    let now = 0
    await until(
      async () => {
        now = (await residentBytes(heddle.pid))!
        return now < before + MEMORY_GROWTH_MAX
      },
      'the memory is back',
      20_000,
    )
    t.diagnostic(`memory: ${(before / MIB).toFixed(0)} MiB before, ${(now / MIB).toFixed(0)} MiB after`)
  }
})
