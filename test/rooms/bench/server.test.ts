import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { test } from 'node:test'
import { ProfileFolder } from '../../../bench/profiles.ts'
import { startHeddle, startServer } from '../../../bench/server.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { LOADER } from '../../support/loader.ts'
import { haveEnded, isRunning } from '../../support/servers/process-tree.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const DEADLINE_MS = 5000

async function untilGone(pid: number): Promise<void> {
  assert.ok(await haveEnded([pid], DEADLINE_MS), `process ${pid} is still there`)
}

test('a server serves on a free port of its own until it is stopped', async (t) => {
  const servers = [
    await startServer({ name: 'uws', script: 'bench/baselines/hello-uws.ts' }),
    await startServer({ name: 'fastify', script: 'bench/baselines/hello-fastify.ts' }),
  ]
  t.after(() => Promise.all(servers.map((server) => server.stop())))
  for (const server of servers) {
    const response = await fetch(`http://${server.host}:${server.port}/hello/ada`)
    assert.equal(await response.text(), '{"success":true,"data":{"hello":"ada"}}')
    assert.match(response.headers.get('x-request-id') ?? '', /^[\da-f-]{36}$/)
    assert.ok(server.bootMs > 10)
    await server.stop()
    await server.stop()
    assert.equal(isRunning(server.pid), false)
  }
})

test('a server that does not come up is reported with what it wrote to stderr', async () => {
  await assert.rejects(
    startServer({ name: 'gone', script: 'bench/baselines/no-such-server.ts' }),
    /gone ended with code 1, before it was ready.*no-such-server/s,
  )
})

test('a server ends when the benchmark that started it is killed', async () => {
  const script = new URL('./fixtures/abandoned-bench.ts', import.meta.url)
  const abandoned = fork(script, { execArgv: [...LOADER] })
  const [{ pid, directory }] = (await once(abandoned, 'message')) as [{ pid: number; directory: string }]
  assert.ok(isRunning(pid) && existsSync(directory))
  abandoned.kill('SIGKILL')
  await untilGone(pid)
  assert.equal(existsSync(directory), false)
})

test('a profile is left of the primary and of its lane', async (t) => {
  const results = temporaryFolder(t)
  const profiles = new ProfileFolder(results)
  const server = await startHeddle({
    name: 'laned',
    lanes: 1,
    domains: [relative(process.cwd(), SHIPPED)],
    profileDir: profiles.directoryFor('laned'),
  })
  // Enough work for a profiler that looks a thousand times a second.
  for (let n = 0; n < 300; n++) await (await fetch(`http://${server.host}:${server.port}/hello/x`)).text()
  await server.stop()
  const paths = profiles.collect('case')
  const lane = paths.find((path) => basename(path) === 'case-laned-lane-0.cpuprofile')
  assert.ok(lane && paths.some((path) => basename(path) === 'case-laned-primary.cpuprofile'), paths.join(', '))
  const { nodes, samples } = JSON.parse(readFileSync(lane, 'utf8'))
  assert.ok(nodes.length > 0 && samples.length > 0)
})
