import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { guardFake } from './fake-guarded.ts'

const ABORTED = 128 + 6

test('after ten deaths within a minute the guardian gives up, ends with the code of the last, and has kept the newest reports', async (t) => {
  const { child, reports, errors } = await guardFake(t, 'abort')
  assert.equal((await once(child, 'exit'))[0], ABORTED)
  assert.equal(errors().match(/it is started again/g)?.length, 10)
  assert.match(errors(), /11 times within 60 s: it is not started again/)
  const names = await readdir(reports)
  assert.equal(names.length, 3)
  const file = join(reports, names[0]!, 'report.json')
  const { signal, code, had_served } = JSON.parse(await readFile(file, 'utf8'))
  assert.deepEqual({ signal, code, had_served }, { signal: 'SIGABRT', code: null, had_served: true })
  assert.equal((await stat(file)).mode & 0o077, 0, 'others can read it')
  assert.equal((await stat(reports)).mode & 0o077, 0, 'others can list it')
})

test('a runtime that dies before it serves is started again after a pause that grows; a stop meanwhile ends at once', async (t) => {
  const { child, errors } = await guardFake(t, 'early')
  await until(() => errors().includes('started again in 400 ms'), 'the third death')
  assert.deepEqual(
    [...errors().matchAll(/started again in (\d+) ms/g)].slice(0, 3).map(([, ms]) => ms),
    ['100', '200', '400'],
  )
  await until(() => errors().includes('started again in 800 ms'), 'the fourth death')
  child.kill('SIGTERM')
  assert.equal((await once(child, 'exit'))[0], 0)
})

test('a runtime is not held up by a standard error that nobody reads, and what it says to its starter is handed on', async (t) => {
  const { child } = await guardFake(t, 'shout')
  const messages: unknown[] = []
  child.on('message', (message) => messages.push(message))
  const [written] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string]
  t.diagnostic(written.trim())
  await until(() => messages.length > 0, 'the message')
  assert.deepEqual(messages, ['ready'])
})

test('a runtime that ends by a signal that was meant for it is not started again', async (t) => {
  const { child, errors } = await guardFake(t, 'wait')
  await once(child, 'message')
  child.kill('SIGTERM')
  assert.equal((await once(child, 'exit'))[0], 128 + 15)
  assert.doesNotMatch(errors(), /started again/)
})

test('a runtime that says nothing is ended, but not one that somebody has stopped', async (t) => {
  const hanging = await guardFake(t, 'hang')
  const stopped = await guardFake(t, 'wait')
  const pid = Number(((await once(stopped.child.stdout!.setEncoding('utf8'), 'data')) as [string])[0])
  t.after(() => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended, as it should.
    }
  })
  process.kill(pid, 'SIGSTOP')
  // Both have the same limit, so the one is over when the other has had its time.
  await until(() => hanging.errors().includes('SIGKILL ends it'), 'the end of the one that hangs', 20_000)
  await until(() => hanging.errors().match(/SIGKILL ends it/g)?.length === 2, 'the end of the next one', 20_000)
  assert.equal(stopped.errors(), '')
  hanging.child.kill('SIGTERM')
  // Its runtime does not hear it, and is ended at its deadline.
  assert.equal((await once(hanging.child, 'exit'))[0], 128 + 9)
  process.kill(pid, 'SIGCONT')
  stopped.child.kill('SIGTERM')
  assert.equal((await once(stopped.child, 'exit'))[0], 128 + 15)
})
