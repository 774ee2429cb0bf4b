import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { DOMAINS, seen } from '../events/contract/driving.ts'
import { streamStore } from '../redis-streams/fixture.ts'

const LOCKED_MS = 1500
const WELL_MS = 40_000
const SEEN_MS = 4000
const ANSWER_MS = 8000
const MANY = 3000
const MIB_8 = 'x'.repeat(8 * 1024 * 1024)
const REPLICA = 'neighbour'

type Command = [name: string, ...args: (string | number)[]]

/** What a neighbour does to a kind of key, by fault; whatever it was, it is deleted afterwards. */
interface Kind {
  key: string
  malformed: Command[]
  foreign: Command[]
  huge: Command[]
}

const many = (of: (n: number) => Command): Command[] => Array.from({ length: MANY }, (_, n) => of(n))
const envelope = (id: string): string =>
  `{"id":"evt_${id}","parent_id":null,"emitter":"x","request_id":null,"timestamp":1,"payload_keys":[],"replica":"others"}`
/** The type that none of them has. */
const wrongType = (key: string): Command[] => [
  ['DEL', key],
  ['RPUSH', key, 'x'],
]

const KINDS: Kind[] = [
  {
    key: 'heddle:event:plain',
    malformed: [
      ['XADD', 'heddle:event:plain', '*', 'e', '{', 'p', '}'],
      ['XADD', 'heddle:event:plain', '*', 'x', 'y'],
      ['XADD', 'heddle:event:plain', '*', 'e', envelope('a'), 'p', '[]', 'a', 'b'],
    ],
    foreign: [['XGROUP', 'CREATE', 'heddle:event:plain', 'others.Plugin.on', '0', 'MKSTREAM']],
    huge: [
      ['XADD', 'heddle:event:plain', '*', 'e', envelope('a'), 'p', `{"text":"${MIB_8}"}`],
      ...many((n) => ['XADD', 'heddle:event:plain', '*', 'e', envelope(`${n}`), 'p', '{}']),
    ],
  },
  {
    key: 'heddle:attempts:plain',
    malformed: [['HSET', 'heddle:attempts:plain', 'none', 'odd']],
    foreign: [['HSET', 'heddle:attempts:plain', 'others.Plugin.on 1-0', '[1,0,""]']],
    huge: [['HSET', 'heddle:attempts:plain', 'none', MIB_8]],
  },
  {
    key: 'heddle:dead',
    malformed: [['XADD', 'heddle:dead', '*', 'x', 'y']],
    foreign: [['XADD', 'heddle:dead', '*', 'e', envelope('a'), 'p', '{}', 's', 'heddle:event:others', 'g', 'others']],
    huge: many((n) => [
      'XADD',
      'heddle:dead',
      '*',
      'e',
      envelope(`${n}`),
      'p',
      '{}',
      's',
      'heddle:event:others',
      'g',
      'g',
    ]),
  },
  {
    key: 'heddle:delayed',
    malformed: [
      ['ZADD', 'heddle:delayed', 1, 'none'],
      ['ZADD', 'heddle:delayed', '-inf', '{'],
      ['ZADD', 'heddle:delayed', 2, '[]'],
    ],
    foreign: [['ZADD', 'heddle:delayed', 9e12, 'of others']],
    huge: [['ZADD', 'heddle:delayed', 1, MIB_8], ...many((n): Command => ['ZADD', 'heddle:delayed', 1, `none ${n}`])],
  },
  {
    key: 'heddle:up',
    malformed: [['SET', 'heddle:up', 'odd']],
    foreign: [['SET', 'heddle:up', 1]],
    huge: [['SET', 'heddle:up', MIB_8]],
  },
]

interface Seen {
  refused: string[]
  answeredMs: number
  seenMs: number | null
  readiness: number
}

let probes = 0

/** Publishes an event without a key and one with, and looks whether they are handled. */
async function probe(heddle: Heddle): Promise<Seen> {
  const tag = `probe ${probes++}`
  const startMs = performance.now()
  const events = ['plain', 'keyed']
  const answers = await Promise.all(
    events.map(async (event) => {
      const body = JSON.stringify({ event, count: 1, keys: event === 'keyed' ? 1 : 0, payload: { tag } })
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
      try {
        return (await heddle.json('/publish-many', { ...init, signal: AbortSignal.timeout(ANSWER_MS) })).body
      } catch {
        return { taken: [], refused: ['no answer'] }
      }
    }),
  )
  const answeredMs = Math.round(performance.now() - startMs)
  const wanted = events.flatMap((event, n) =>
    answers[n].taken?.length > 0 ? [event === 'plain' ? event : 'keyed-ends'] : [],
  )
  let seenMs: number | null = null
  while (seenMs === null && performance.now() - startMs < answeredMs + SEEN_MS) {
    if (wanted.every((name) => seen(heddle, name, tag).length > 0)) seenMs = Math.round(performance.now() - startMs)
    else await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const readiness = await heddle.fetch('/system/health/ready').then(
    ({ status }) => status,
    () => 0,
  )
  return { refused: answers.flatMap(({ refused }) => refused ?? ['an error']), answeredMs, seenMs, readiness }
}

const isWell = ({ refused, seenMs }: Seen): boolean => refused.length === 0 && seenMs !== null

test('neighbours in Redis: what they do to each kind of key ends no process, and all is well when they have gone', async (t) => {
  const store = await streamStore(t)
  if (store === null) return
  const { redis, server } = store
  const env = { ...server.env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: REPLICA }
  const heddle = await startHeddle(t, { domains: [...DOMAINS, SYSTEM_ROUTES], lanes: 1, env })
  const isWellAgain = (cell: string) =>
    until(async () => isWell(await probe(heddle)), `all well again after ${cell}`, WELL_MS)
  const cell = async (name: string, what: Promise<Seen>): Promise<void> => {
    const { refused, answeredMs, seenMs, readiness } = await what
    const handled = seenMs === null ? 'not all handled' : `handled in ${seenMs} ms`
    t.diagnostic(
      `${name}: answered in ${answeredMs} ms, ${refused.length} refused (${refused}), ${handled}; readiness ${readiness}`,
    )
    const { exitCode, signalCode } = heddle.process
    assert.deepEqual([exitCode, signalCode], [null, null], `${name}: the process has ended`)
    for (const code of refused) assert.match(code, /^(EVENT_BUS_|KV_|no answer)/, name)
  }
  await isWellAgain('the start')
  for (const { key, malformed, foreign, huge } of KINDS) {
    const gone: Command[] = [['DEL', key]]
    for (const [fault, commands] of Object.entries({ malformed, foreign, huge, type: wrongType(key), gone })) {
      const name = `${key} × ${fault}`
      await Promise.all(commands.map(([command, ...args]) => redis.command(command, args)))
      await cell(name, probe(heddle))
      await redis.command('del', [key])
      await isWellAgain(name)
    }
  }
  // Commands of all clients wait.
  await redis.command('client', ['PAUSE', LOCKED_MS, 'ALL'])
  await cell('all keys × locked', probe(heddle))
  await isWellAgain('the lock')
  await redis.command('del', [`heddle:replica:${REPLICA}`])
  await cell('heddle:replica × gone', probe(heddle))
  await isWellAgain('the lock of the replica')
  await redis.command('flushall', [])
  await cell('all keys × gone', probe(heddle))
  await isWellAgain('the end of all keys')
  await server.stop()
  await cell('the server × gone', probe(heddle))
  const isSaid = async (): Promise<boolean> => {
    const { status, body } = await heddle.json('/system/health/ready')
    return status === 503 && JSON.stringify(body).includes('event bus: ')
  }
  await until(isSaid, 'not ready, with the reason')
  await server.start()
  await isWellAgain('the server is back')
  assert.equal(await heddle.stop(), 0)
})
