import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { State } from '../../src/contracts/state.ts'
import RedisStateTool from '../../src/extras/redis-state/index.ts'
import MemoryStateTool from '../../src/tools/memory-state/index.ts'
import { SEED, seededRandom } from '../support/random.ts'
import { connect, settingsOf, sharedServer } from '../support/redis-under-test.ts'
import { buildTool } from '../support/tool-runtime.ts'

const shared = sharedServer()
const TURNS = 400
const CALLS_OF_A_TURN = 12

type Call = [method: keyof State, ...args: unknown[]]

const NAMES = ['a', 'b', 'ключ', 'a:b', '%3A', '']
const NUMBERS = [
  0,
  1,
  -1,
  7,
  1.5,
  2 ** 52,
  -(2 ** 52),
  2 ** 53 - 2,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  2 ** 53,
  2 ** 53 + 2,
  1e21,
]
const VALUES = [...NUMBERS, null, true, '', '5', 'null', [], [1, [null]], {}, { a: 1, b: [2] }, { b: [2], a: 1 }]

test('both implementations give the same answers and errors to the same calls', async (t) => {
  const server = await shared(t)
  if (server === null) return
  const settings = settingsOf(server)
  await connect(t, settings).command('flushdb', [])
  const { tool: memory } = buildTool(MemoryStateTool)
  const { tool: redis } = buildTool(RedisStateTool, { settings })
  t.after(() => redis.stop())
  const [here, there] = [memory.api(), redis.api()]

  const random = seededRandom(SEED)
  const pick = <T>(items: readonly T[]): T => items[random(items.length)]!
  for (let turn = 0; turn < TURNS; turn++) {
    const calls = Array.from({ length: CALLS_OF_A_TURN }, () => randomCall(pick))
    const [expected, actual] = await Promise.all([answers(here, calls), answers(there, calls)])
    for (const [index, call] of calls.entries()) {
      assert.deepEqual(actual[index], expected[index], `SEED=${SEED}, turn ${turn}, ${index}: ${JSON.stringify(call)}`)
    }
  }
})

function randomCall(pick: <T>(items: readonly T[]) => T): Call {
  const key = pick(NAMES)
  const options = pick([undefined, undefined, { namespace: pick(NAMES) }, { ttlMs: 3_600_000 }])
  switch (
    pick(['get', 'set', 'set', 'delete', 'has', 'increment', 'increment', 'increment', 'swap', 'swap', 'keys', 'clear'])
  ) {
    case 'get':
      return ['get', key, options]
    case 'set':
      return ['set', key, pick(VALUES), options]
    case 'delete':
      return ['delete', key, options]
    case 'has':
      return ['has', key, options]
    case 'increment':
      return ['increment', key, pick([1, ...NUMBERS]), options]
    case 'swap':
      return ['compareAndSet', key, pick(VALUES), pick(VALUES), options]
    case 'keys':
      return ['keys', options]
    default:
      return ['clear', pick([{ namespace: pick(NAMES) }, options])]
  }
}

/** The calls of one turn, made without waiting for one another: except for those that are made of several steps. */
async function answers(state: State, calls: readonly Call[]): Promise<unknown[]> {
  const results: Promise<unknown>[] = []
  for (const [method, ...args] of calls) {
    const result = (state[method] as (...args: unknown[]) => Promise<unknown>)(...args).then(
      (value) => (method === 'keys' ? (value as string[]).sort() : value),
      (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
    )
    results.push(result)
    if (method === 'keys' || method === 'clear' || method === 'compareAndSet') await Promise.all(results)
  }
  return Promise.all(results)
}
