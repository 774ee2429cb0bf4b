import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { VARIABLES } from '../../../src/core/config/schema.ts'
import { spawnHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

/** A start takes a second of a core, and so does a stop at most. */
const START_MS = 120_000
/** `ALL_VALUES=true npm test settings-alone` takes the bounds of the numbers, too: some 150 s of a core. */
const HAS_BOUNDS = process.env.ALL_VALUES === 'true'

/** Not started, each for its reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'HTTP_PORT=0': 'every other test has it, and the client of this one has to know the port',
  'SYSTEM_PORT=1': 'only root may listen there',
  'PROCESSES=99': 'a hundred processes; under a guardian only, where test/rooms/guardian has two',
  'LANES=256': 'takes a minute of a core',
  'SHUTDOWN_DELAY_MS=86400000': 'its stop takes a day',
  'WATCHDOG_PID=1': 'systemd sets it',
  'WATCHDOG_USEC=1': 'systemd sets it',
}

/** What is seen instead where the value says so. */
interface Outcome {
  /** Of `GET /notes/none`. */
  readonly get?: number
  /** Of the first `POST /notes`. Another than 201 is the last one that is asked. */
  readonly post?: readonly number[]
  /** It does not start, and names what contradicts the value. */
  readonly refused?: RegExp
}
const OTHERWISE: Readonly<Record<string, Outcome>> = {
  'HTTP_BODY_LIMIT=1': { post: [413] },
  'HTTP_HANDLER_TIMEOUT_MS=1': { post: [201, 504] },
  'DB_AUTO_MIGRATE=false': { get: 500, post: [500, 503] },
  'RDB_MIN_POOL=10000': { refused: /RDB_MAX_POOL/ },
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1000000': { refused: /OTEL_BSP_MAX_QUEUE_SIZE/ },
  'LANE_STALL_MS=50': { post: [201, 500, 503, 504] },
  'HTTP_REUSE_PORT=true': { refused: /AUTH_SECRET_KEY/ },
}

const JSON_TYPE = { 'content-type': 'application/json' }

interface Case {
  readonly name: string
  readonly value: string
}

/** The values that the page of variables names: it takes them from `wanted`. */
function valuesOf(name: string): string[] {
  const { wanted } = VARIABLES[name as keyof typeof VARIABLES]
  if (wanted === 'true or false') return ['true', 'false']
  const [, choices] = /^one of (.*)$/.exec(wanted) ?? []
  if (choices !== undefined) return choices.split(', ')
  if (!HAS_BOUNDS) return []
  const [, min, max] = /^a (?:whole )?number from (\S+) to (\S+)/.exec(wanted) ?? []
  if (min !== undefined) return [min, max!]
  const [, least] = /^a (?:whole )?number, (\S+) or more/.exec(wanted) ?? []
  return least === undefined ? [] : [least, String(Number.MAX_SAFE_INTEGER)]
}

/** A value that says what is so without it gives the same settings as none. */
const CASES = Object.entries(VARIABLES).flatMap(([name, row]): Case[] =>
  valuesOf(name)
    .filter((value) => row.read(value) !== row.default)
    .map((value) => ({ name, value })),
)

describe('the default service with one setting alone', { concurrency: 2 }, () => {
  for (const { name, value } of CASES) {
    const setting = `${name}=${value}`
    test(setting, { skip: LEFT_OUT[setting] ?? false, timeout: START_MS }, async (t) => {
      const env: Record<string, string> = { [name]: value }
      if (value === 'keyvalue_streams') {
        const redis = await redisServer(t)
        if (redis === null) return
        Object.assign(env, redis.env)
      }
      await serves(t, env, OTHERWISE[setting] ?? {})
    })
  }
})

async function serves(
  t: Parameters<typeof spawnHeddle>[0],
  env: Record<string, string>,
  { get, post, refused }: Outcome,
) {
  const port = Number(env.HTTP_PORT ?? (await freePort()))
  const { child, logs, errors } = await spawnHeddle(t, {
    domains: [fixtureDomains('settings')],
    // Empty is unset: what other tests choose for themselves is as it comes.
    env: { HTTP_PORT: String(port), LANES: '', LOG_FORMAT: '', HISTORY_ENABLED: '', SYSTEM_DOMAIN: '', ...env },
  })
  const ask = (path: string, init?: RequestInit): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`, init)
  const told = (): string => `${errors.join('')}${logs.map((line) => JSON.stringify(line)).join('\n')}`
  if (refused !== undefined) {
    await once(child, 'close')
    assert.equal(child.exitCode, 78)
    return assert.match(told(), refused)
  }
  const isReady = async (): Promise<boolean> => {
    assert.equal(child.exitCode ?? child.signalCode, null, told())
    return (await ask('/notes/none').catch(() => null))?.status === (get ?? 200)
  }
  await until(isReady, 'the service', START_MS)

  const text = 'as it comes'
  const posted = await ask('/notes', {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify({ text }),
  })
  const body = (await posted.json()) as { data: { id: string; token: string } }
  assert.ok((post ?? [201]).includes(posted.status), `${posted.status} ${JSON.stringify(body)} ${told()}`)
  if (posted.status === 201) {
    const { id, token } = body.data
    // The event has been handled by then.
    const note = await until(async () => {
      const { data } = (await (await ask(`/notes/${id}`)).json()) as { data: Record<string, unknown> }
      return data?.is_filed === 1 ? data : null
    }, 'the event')
    assert.deepEqual(note, { text, is_filed: 1, kept: { text } })
    const own = await ask('/own', { headers: { authorization: `Bearer ${token}` } })
    assert.deepEqual([own.status, await own.json()], [200, { success: true, data: id }])
    assert.equal((await ask('/notes', { method: 'POST', headers: JSON_TYPE, body: '{' })).status, 400)
    assert.equal((await ask('/fails')).status, 500)
  }

  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
  assert.deepEqual([child.exitCode, child.signalCode], [0, null], told())
}
