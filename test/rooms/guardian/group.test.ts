import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { guardFake } from './fake-guarded.ts'
import { isRunning } from './guarded.ts'

const ABORTED = 128 + 6

/** What the processes have said so far: `<number> <what>`. */
function saidBy(child: ChildProcess): (...whats: string[]) => string[] {
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return (...whats) =>
    text
      .split('\n')
      .filter((line) => whats.includes(line.split(' ')[1]!))
      .map((line) => line.split(' ').slice(0, 2).join(' '))
}

async function pidOf(child: ChildProcess, number: number): Promise<number> {
  let text = ''
  child.stdout!.on('data', (chunk: string) => (text += chunk))
  const line = await until(() => new RegExp(`^${number} serves (\\d+) of [23]$`, 'm').exec(text), 'it serves')
  return Number(line[1])
}

test('who has started the guardian is told once, when all processes are ready', async (t) => {
  const { child } = await guardFake(t, 'talk', { processes: 3 })
  const said = saidBy(child)
  const messages: unknown[] = []
  child.on('message', (message) => messages.push([message, said('serves').length]))
  const first = await pidOf(child, 0)
  await until(() => messages.length > 0, 'the message')
  await until(() => said('serves').length === 3, 'all serve')
  process.kill(first, 'SIGKILL')
  await until(() => said('serves').length === 4, 'it is there again')
  assert.equal(messages.length, 1)
  assert.equal((messages[0] as [string])[0], 'ready')
  assert.equal(
    said('serves')[0],
    '0 serves',
    'the first has found out that the settings are good before the others start',
  )
  child.kill('SIGTERM')
  assert.equal((await once(child, 'exit'))[0], 0)
  assert.deepEqual(said('ends').sort(), ['0 ends', '1 ends', '2 ends'])
})

test('SIGQUIT drains all processes, as SIGTERM does', async (t) => {
  const { child } = await guardFake(t, 'talk', { processes: 2 })
  const said = saidBy(child)
  await until(() => said('serves').length === 2, 'both serve')
  child.kill('SIGQUIT')
  assert.equal((await once(child, 'exit'))[0], 0)
  assert.deepEqual(said('ends').sort(), ['0 ends', '1 ends'])
})

test('a process that dies too often ends the service: the others drain, and the code is its own', async (t) => {
  const { child, errors } = await guardFake(t, 'talk', { processes: 2, env: { FAKE_1: 'abort' } })
  const said = saidBy(child)
  assert.equal((await once(child, 'exit'))[0], ABORTED)
  assert.equal(errors().match(/process 1 died of SIGABRT: it is started again/g)?.length, 10)
  assert.match(errors(), /process 1 died of SIGABRT, 11 times within 60 s: it is not started again/)
  assert.deepEqual(said('serves', 'ends'), ['0 serves', '0 ends'])
})

test('a process whose settings are refused ends the service with 78', async (t) => {
  const { child, errors } = await guardFake(t, 'talk', { processes: 2, env: { FAKE_1: 'refuse' } })
  const said = saidBy(child)
  assert.equal((await once(child, 'exit'))[0], 78)
  assert.match(errors(), /process 1 is not started again: the others drain and end, too/)
  assert.deepEqual(said('ends'), ['0 ends'])
})

test('a process that somebody has told to end is started again, without a crash report', async (t) => {
  const { child, errors, reports } = await guardFake(t, 'talk', { processes: 2 })
  const said = saidBy(child)
  const pid = await pidOf(child, 1)
  process.kill(pid, 'SIGTERM')
  await until(() => said('serves').length === 3, 'the next one')
  assert.equal(isRunning(pid), false)
  assert.deepEqual(said('serves').slice(2), ['1 serves'])
  await until(() => errors().includes('process 1 has ended with code 0: it is started again'), 'the line')
  await assert.rejects(readFile(reports), { code: 'ENOENT' })
  child.kill('SIGTERM')
  assert.equal((await once(child, 'exit'))[0], 0)
})

test('SIGHUP reloads one after the other', async (t) => {
  const { child } = await guardFake(t, 'talk', { processes: 2 })
  const said = saidBy(child)
  await until(() => said('serves').length === 2, 'both serve')
  child.kill('SIGHUP')
  await until(() => said('reloaded').length === 2, 'both have reloaded')
  assert.deepEqual(said('reloads', 'reloaded'), ['0 reloads', '0 reloaded', '1 reloads', '1 reloaded'])
  child.kill('SIGTERM')
  await once(child, 'exit')
})

test('code that does not boot in the first is not tried in the next', async (t) => {
  const { child } = await guardFake(t, 'talk', { processes: 2, env: { FAKE_BAD: '0' } })
  const said = saidBy(child)
  await until(() => said('serves').length === 2, 'both serve')
  child.kill('SIGHUP')
  await until(() => said('reloaded').length === 1, 'the first has tried')
  // The next signal finds it at rest, and begins with the first again.
  child.kill('SIGHUP')
  await until(() => said('reloaded').length === 2, 'the first has tried again')
  assert.deepEqual(said('reloads'), ['0 reloads', '0 reloads'])
  child.kill('SIGTERM')
  await once(child, 'exit')
})

test('the service manager is told of all processes as of one', async (t) => {
  const folder = temporaryFolder(t)
  const told = join(folder, 'told')
  await writeFile(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$@" >> ${told}\n`)
  await chmod(join(folder, 'systemd-notify'), 0o755)
  const env = { NOTIFY_SOCKET: '/run/notify', PATH: `${folder}:${process.env.PATH}` }
  const { child } = await guardFake(t, 'talk', { processes: 2, env })
  const lines = async (): Promise<string[]> => (await readFile(told, 'utf8').catch(() => '')).split('\n').slice(0, -1)
  await until(async () => (await lines()).length === 1, 'ready')
  child.kill('SIGHUP')
  await until(async () => (await lines()).length === 3, 'reloaded')
  child.kill('SIGTERM')
  await once(child, 'exit')
  assert.deepEqual(
    (await lines()).map((line) => line.replace(/USEC=\d+/, 'USEC=n')),
    [
      'READY=1 STATUS=Serving with 2 processes',
      'RELOADING=1 MONOTONIC_USEC=n STATUS=Reloading',
      'READY=1 STATUS=Reloaded',
      'STOPPING=1 STATUS=Draining',
    ].map((line) => `--pid=${child.pid} ${line}`),
  )
})
