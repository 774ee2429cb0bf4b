import { test } from 'node:test'
import { logContract } from '../../contracts/log.ts'
import { benchOn } from '../../contracts/log-bench.ts'
import { SQLITE } from '../../contracts/log-kinds.ts'
import { handled, numbers } from '../../contracts/log-rule.ts'

logContract(SQLITE, 'own')

test('32 keys that wait, each with 150 events, hold up no other key', async (t) => {
  const store = await benchOn({ after: (end) => t.after(end) }, SQLITE.place).own(t, false)
  const log = { ...store!, patienceMs: 10_000 }
  const process = await log.open('first')
  for (const key of numbers(32).map((n) => `slow ${n}`))
    await process.burst(
      'work',
      numbers(150).map((n) => ({ tag: 't', n, key, course: ['hold t' as const] })),
    )
  const ids = await Promise.all(
    numbers(100).map((n) => process.publish('work', { tag: 'other', n }, { key: `other ${n}` })),
  )
  await handled(log, 'other', 'work', ids)
})
