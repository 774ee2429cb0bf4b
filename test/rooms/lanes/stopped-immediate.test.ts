// What is stopped in a thread in the midst of its immediates holds up nothing else there.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../../support/until.ts'

const REGISTER = createRequire(import.meta.url).resolve('../../support/typescript/register.cjs')
const STOPPABLE = [
  '--no-force-async-hooks-checks',
  ...(process.version < 'v24' ? ['--experimental-async-context-frame'] : []),
]

async function said(fixture: string, workerData: object): Promise<{ texts: string[]; code: number }> {
  const texts: string[] = []
  const worker = new Worker(new URL(`../../fixtures/${fixture}.ts`, import.meta.url), {
    execArgv: [...STOPPABLE, '--require', REGISTER],
    workerData,
  })
  worker.on('message', (text) => texts.push(text))
  const exited = once(worker, 'exit')
  const code = await until(
    () => Promise.race([exited, null]).then((ended) => ended && { code: ended[0] as number }),
    'its end',
  )
  return { texts, ...code }
}

test('immediates behind one that was stopped run, each once, and the thread ends by itself', async () => {
  assert.deepEqual(await said('stopped-immediate', { isKnown: true }), {
    texts: ['before', 'after', 'later immediate', 'last'],
    code: 0,
  })
})

test('a thread ends at once where it is not known which immediate was stopped', async () => {
  const { texts, code } = await said('stopped-immediate', { isKnown: false })
  assert.deepEqual([texts, code], [['before'], 1])
})

test('a thread in which immediates were lost behind a stopped one ends by itself', async () => {
  for (const lost of [1, 5])
    assert.deepEqual(await said('lost-immediates', { lost }), { texts: ['one more', 'the last'], code: 0 })
})
